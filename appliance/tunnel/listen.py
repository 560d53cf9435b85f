"""From a bound port to channels."""

import asyncio
import errno
import os
from collections.abc import Callable

from appliance.errors import SettingsError
from appliance.settings.target import Target
from appliance.tunnel.tcp_channel import TcpChannel

_BACKLOG = 512
"""Connections that may wait to be accepted: all clients of a cluster come back at once after an outage."""

_CURES = {
    errno.EACCES: "; ports below 1024 need root or CAP_NET_BIND_SERVICE",
    errno.EADDRINUSE: "; stop the program that has it, or choose another",
    errno.EADDRNOTAVAIL: "; choose an address that this machine has",
}


async def listen(variable: str, at: Target, make: Callable[[], TcpChannel]) -> asyncio.Server:
    """Listen on an address and port, 0 for any; every connection is a channel that ``make`` makes.

    Raises:
        SettingsError: the system does not give it; ``variable`` is what to change.
    """
    try:
        return await asyncio.get_running_loop().create_server(make, at.host.strip("[]"), at.port, backlog=_BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        cure = _CURES.get(error.errno or 0, "")
        raise SettingsError([f"{variable}: cannot listen on {at}: {reason.lower()}{cure}"]) from error


def port_of(server: asyncio.Server) -> int:
    """The port that a server listens on."""
    port: int = server.sockets[0].getsockname()[1]
    return port
