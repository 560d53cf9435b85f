"""What an end of the tunnel needs file descriptors for, and what it says without them."""

import errno
import resource

from appliance.tunnel.slots import WAITING_MAX
from appliance.tunnel.strangers import STRANGERS_MAX, STRANGERS_OF_ONE_MAX

EXHAUSTED = (errno.EMFILE, errno.ENFILE)
"""The errors of a process, and of a system, that has no descriptor left."""

REMEDY = (
    "out of file descriptors: raise the limit (ulimit -n; LimitNOFILE in systemd; ulimits in compose) "
    "or lower TUNNEL_CONNECTIONS_MAX"
)

_OWN = 64
"""For Python, the log, DNS and the status page."""


def needed(connections_max: int) -> int:
    """How many an end can come to need: two for each connection, one for each that waits or has yet to prove itself."""
    return 2 * connections_max + WAITING_MAX + STRANGERS_MAX + STRANGERS_OF_ONE_MAX + _OWN


def raise_limit() -> int:
    """Raise the process's soft limit to the hard one, which needs no privilege; the limit that holds now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft  # a system whose hard limit is above what its kernel grants
    return hard
