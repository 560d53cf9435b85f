"""The destination VM's path to a target or a status: the dial to the server, by TCP or inside SSH, and the CONNECT."""

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from appliance.clock import deadline
from appliance.errors import ApplianceError, Draining, PeerError, TargetRefused
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.tunnel.model.connect import STATUS, STATUS_SIZE_MAX, Answer, ConnectClient, Timeouts
from appliance.tunnel.stream.channel import Channel
from appliance.tunnel.stream.tcp_channel import TcpChannel, dial

_Kind = TypeVar("_Kind", bound=TcpChannel)


class TargetFailed(ApplianceError):
    """The server has answered that it does not reach the target, or has no place."""

    def __init__(self, failure: ApplianceError) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Dialler(Protocol):
    """Connects channels to the tunnel server."""

    async def login(self) -> None:
        """Log in to the SSH server, where there is one."""

    async def dial(self, make: Callable[[], _Kind]) -> _Kind:
        """Connect the channel that ``make`` makes."""

    async def close(self) -> None:
        """Close all connections."""


class TcpDialler:
    """Connects each channel by TCP."""

    def __init__(self, server: Target, timeouts: Timeouts) -> None:
        self._server = server
        self._timeouts = timeouts

    async def login(self) -> None:
        """Do nothing: no SSH server is on the way."""

    async def dial(self, make: Callable[[], _Kind]) -> _Kind:
        """Connect the channel that ``make`` makes."""
        return await dial((self._server.host.strip("[]"),), self._server.port, self._timeouts.dial, make)

    async def close(self) -> None:
        """Do nothing: each channel has an owner of its own."""


def dialler(settings: TunnelSettings, timeouts: Timeouts) -> Dialler:
    """The dialler for the settings: by TCP, or inside SSH."""
    carrier = carrier_of(settings)
    return carrier(timeouts) if carrier else TcpDialler(settings.server, timeouts)


def carrier_of(settings: TunnelSettings) -> Callable[[Timeouts], Dialler] | None:
    """The dialler inside SSH; its library runs programs when it is imported here, which a confined process may not."""
    if settings.ssh is None:
        return None
    from appliance.tunnel.ssh.carrier import SshCarrier

    return partial(SshCarrier, settings.ssh, settings.server)


async def request_target(channel: Channel, target: Target, seconds: float) -> Answer:
    """The server's answer to a CONNECT to ``target``; the target's first bytes stay in the channel."""
    connect = ConnectClient(target)
    channel.send(connect.request())
    answer = None
    async with deadline(seconds, "no answer to CONNECT"):
        while answer is None:
            answer = connect.receive(await channel.receive())
    channel.unread(connect.first_bytes)
    return answer


async def request_status(channel: Channel, seconds: float) -> bytes:
    """The status document of the server's end, which ends its direction after it.

    Raises:
        TargetRefused: the server is of an older release.
        Draining: it is being stopped.
        TargetFailed: it refuses for another reason.
        ApplianceError: as ``request_target``.
    """
    answer = await request_target(channel, STATUS, seconds)
    failure = answer.error()
    if failure:
        raise failure if isinstance(failure, TargetRefused | Draining) else TargetFailed(failure)
    document = bytearray()
    while received := await channel.receive():
        document += received
        if len(document) > STATUS_SIZE_MAX:
            raise PeerError(f"a status of more than {STATUS_SIZE_MAX} bytes")
    return bytes(document)
