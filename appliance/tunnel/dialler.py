"""The way from the destination VM to the tunnel server: a TCP connection, or a channel of an SSH connection."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.tunnel.model.timeouts import Timeouts
from appliance.tunnel.stream.dial import dial
from appliance.tunnel.stream.tcp_channel import TcpChannel

_Kind = TypeVar("_Kind", bound=TcpChannel)


class Dialler(Protocol):
    """Connects channels to the tunnel server."""

    async def login(self) -> None:
        """Be known to the SSH server, where there is one."""

    async def dial(self, make: Callable[[], _Kind]) -> _Kind:
        """Connect the channel that ``make`` makes."""

    async def close(self) -> None:
        """Leave nothing behind."""


class TcpDialler:
    """Connects each channel by TCP."""

    def __init__(self, server: Target, timeouts: Timeouts) -> None:
        self._server = server
        self._timeouts = timeouts

    async def login(self) -> None:
        """Nobody is on the way."""

    async def dial(self, make: Callable[[], _Kind]) -> _Kind:
        """Connect the channel that ``make`` makes.

        Raises:
            TimedOut, OutOfDescriptors, Unreachable: as ``tunnel.dial``.
        """
        return await dial((self._server.host.strip("[]"),), self._server.port, self._timeouts.dial, make)

    async def close(self) -> None:
        """Each channel has an owner of its own."""


def dialler(settings: TunnelSettings, timeouts: Timeouts) -> Dialler:
    """The way that the settings name."""
    if settings.ssh is None:
        return TcpDialler(settings.server, timeouts)
    from appliance.tunnel.ssh.carrier import SshCarrier

    return SshCarrier(settings.ssh, settings.server, timeouts)
