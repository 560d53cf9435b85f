"""The file descriptors that an end of the tunnel needs, and the remedy when they run out."""

import errno
import logging
import resource

from appliance.tunnel.limits.connection_limit import WAITING_MAX
from appliance.tunnel.limits.pending_handshakes import PENDING_MAX, PENDING_OF_ONE_MAX

log = logging.getLogger("appliance.tunnel")

EXHAUSTED = (errno.EMFILE, errno.ENFILE)
"""The error codes of a process, and of a system, without a free descriptor."""

_CURE = "raise the limit (ulimit -n; LimitNOFILE in systemd; ulimits in compose) or lower TUNNEL_CONNECTIONS_MAX"

FD_REMEDY = f"out of file descriptors: {_CURE}"

_OWN = 64
"""Descriptors for Python, the log, DNS and the status page."""


def needed(connections_max: int) -> int:
    """The most descriptors that an end needs: two for each connection, one for each that waits or is unproved."""
    return 2 * connections_max + WAITING_MAX + PENDING_MAX + PENDING_OF_ONE_MAX + _OWN


def raise_to_need(connections_max: int) -> None:
    """Raise the process's limit as far as permitted, and warn if that is too low for all its connections."""
    limit, wanted = _raise_limit(), needed(connections_max)
    if limit != resource.RLIM_INFINITY and limit < wanted:
        fields = {"limit": limit, "needed": wanted, "connections": connections_max}
        log.warning(f"too few file descriptors for all connections: {_CURE}", extra={"fields": fields})


def _raise_limit() -> int:
    """Raise the soft limit to the hard one, which needs no privilege; return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft  # a system whose hard limit is above what its kernel grants
    return hard
