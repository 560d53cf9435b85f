"""What the system says to whoever wants to listen on a port and may not, in one line that names what to change."""

import contextlib
import errno
import os
from collections.abc import Iterator

from appliance.errors import SettingsError
from appliance.settings.target import Target

_CURES = {
    errno.EACCES: "; ports below 1024 need root or CAP_NET_BIND_SERVICE",
    errno.EADDRINUSE: "; stop the program that has it, or choose another",
    errno.EADDRNOTAVAIL: "; choose an address that this machine has",
}


@contextlib.contextmanager
def port_refused(variable: str, at: Target) -> Iterator[None]:
    """Translate what the system says to a listener.

    Raises:
        SettingsError: it does not give ``at``; ``variable`` is what to change.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        cure = _CURES.get(error.errno or 0, "")
        raise SettingsError([f"{variable}: cannot listen on {at}: {reason.lower()}{cure}"]) from error
