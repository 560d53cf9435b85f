"""The addresses of listeners: a refused port as one line that names the setting to change, and files of any length."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from appliance.errors import SettingsError, os_reason
from appliance.settings.target import Target

_CURES = {
    errno.EACCES: "; ports below 1024 need root or CAP_NET_BIND_SERVICE",
    errno.EADDRINUSE: "; stop the program that has it, or choose another",
    errno.EADDRNOTAVAIL: "; choose an address that this machine has",
}


@contextlib.contextmanager
def port_refused(variable: str, at: Target) -> Iterator[None]:
    """Translate the system's error in the block."""
    try:
        yield
    except OSError as error:
        cure = _CURES.get(error.errno or 0, "")
        raise SettingsError([f"{variable}: cannot listen on {at}: {os_reason(error).lower()}{cure}"]) from error


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Another name of the same file, since a socket's has at most 107 bytes (unix(7))."""
    descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
