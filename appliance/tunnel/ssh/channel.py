"""A channel that is a share of an SSH connection (RFC 4254, section 5): it has its own flow control and its own ends.

What waits in this process is bounded for each direction by ``WINDOW``, which the receiving end grants and the sending
end has under way, and one read. Two mebibytes are 20 MB/s for each channel at a round trip of 100 ms.

SSH has no reset. Its like is a close without an end of file before it, and is taken for one here; an OpenSSH peer,
however, makes a regular end of it, and of its own targets' resets.
"""

import asyncio
import contextlib
from collections.abc import Awaitable

import asyncssh
from asyncssh.constants import MSG_CHANNEL_EOF
from asyncssh.packet import SSHPacket

from appliance.errors import TimedOut
from appliance.settings.target import Target
from appliance.tunnel.channel import Channel
from appliance.tunnel.ssh.errors import connection_error, target_error

WINDOW = 2 * 2**20
"""Bytes that the peer may send before it hears that they were taken."""

PACKET_SIZE = 32 * 1024
"""Bytes that one packet carries, at most: what every SSH takes (RFC 4253, section 6.1)."""

Connection = asyncssh.SSHClientConnection | asyncssh.SSHServerConnection


class SshChannel(Channel, asyncssh.SSHTCPSession[bytes]):
    """One connection through the tunnel, inside the SSH connection of all.

    ``share`` is asyncssh's side of it.
    """

    def __init__(self, connection: Connection, peer: str) -> None:
        super().__init__()
        self._peer = peer
        self._end_announced = False
        self._closes_when_sent = False
        self._paused = False
        self._standing = asyncio.Event()
        self.share = _Share(self, connection)

    @property
    def peer(self) -> str:
        """The other end's address, for the log."""
        return self._peer

    async def stands(self) -> bool:
        """Wait until the channel is open; false when it is lost before."""
        await self._standing.wait()
        return not self._lost

    def send(self, data: bytes | memoryview) -> None:
        """Send ``data``; heed ``congested``."""
        if not self.share.is_closing():
            self.share.write(bytes(data))

    def send_eof(self) -> None:
        """End our direction once all is sent; the peer's goes on."""
        self.share.write_eof()

    def pause(self) -> None:
        """Stop reading: the peer's window will close."""
        self._paused = True
        self.share.pause_reading()

    def resume(self) -> None:
        """Read again: soon, because asyncssh delivers what waits before it returns, and this must not."""
        self._paused = False
        asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        if not self._paused:
            self.share.resume_reading()

    def close(self) -> None:
        """Close when all is sent; for a connection whose two directions have ended.

        asyncssh would leave out the end of file that waits behind unsent bytes, and the close be taken for a reset.
        """
        if self.congested:
            self._closes_when_sent = True
        else:
            self.share.close()

    def reset(self) -> None:
        """Close now, without an end of file."""
        self.share.give_up()

    def end_announced(self) -> None:
        """Called by the share: the peer's end of file has arrived, perhaps behind bytes not yet delivered."""
        self._end_announced = True

    def cut(self, error: Exception | None) -> None:
        """Called by the share: the SSH connection is closed, whatever was still to be delivered."""
        self._fail(connection_error(error))
        self._closed.set()
        self._standing.set()

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        """Called by asyncssh: the channel is open."""
        chan.set_write_buffer_limits(high=0)  # what the peer's window does not take, is too much
        self._standing.set()

    def data_received(self, data: bytes, datatype: int | None) -> None:  # noqa: ARG002
        """Called by asyncssh: bytes have arrived."""
        if not self._lost:
            self._deliver(data)

    def eof_received(self) -> bool:
        """Called by asyncssh: the peer's end of file, all before it delivered. True: our direction stays open."""
        self._end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh: the channel is closed, all before it delivered."""
        if self._end_announced and not self._lost:
            self._end()  # asyncssh forgets an end of file to which a close came while reading was paused
        self.cut(exc)

    def pause_writing(self) -> None:
        """Called by asyncssh: the peer's window is full."""
        self.congested = True

    def resume_writing(self) -> None:
        """Called by asyncssh: all is sent, but for an end of file, which follows."""
        self.congested = False
        if self._closes_when_sent:
            asyncio.get_running_loop().call_soon(self.share.close)
        else:
            self._receiver.relieved()


class _Share(asyncssh.SSHTCPChannel[bytes]):
    """asyncssh's channel, which tells its session of two things more: an end of file at once, and the connection's end
    even before the channel is open."""

    def __init__(self, session: SshChannel, connection: Connection) -> None:
        super().__init__(connection, asyncio.get_running_loop(), None, "strict", WINDOW, PACKET_SIZE)
        self._told = session
        self._given_up = False

    def give_up(self) -> None:
        """Close now, or as soon as the peer, asked to open it, has done so."""
        self._given_up = True
        self.abort()

    def process_packet(self, pkttype: int, pktid: int, packet: SSHPacket) -> bool | Awaitable[None]:
        """Called by asyncssh: a packet for this channel has arrived."""
        if pkttype == MSG_CHANNEL_EOF:
            self._told.end_announced()
        return super().process_packet(pkttype, pktid, packet)

    def process_connection_close(self, exc: Exception | None) -> None:
        """Called by asyncssh: the connection is closed."""
        self._told.cut(exc)
        super().process_connection_close(exc)

    def process_open_confirmation(self, send_chan: int, send_window: int, send_pktsize: int, packet: SSHPacket) -> None:
        """Called by asyncssh: the peer has opened the channel."""
        super().process_open_confirmation(send_chan, send_window, send_pktsize, packet)
        if self._given_up:
            self.abort()


async def open_channel(connection: asyncssh.SSHClientConnection, target: Target, seconds: float) -> SshChannel:
    """Have the server connect a channel to ``target``.

    Raises:
        TargetRefused: it will not.
        Unreachable: it cannot, or said nothing for ``seconds``, or the connection is closed.
    """
    with contextlib.ExitStack() as unless_open:
        try:
            channel = SshChannel(connection, str(target))
            unless_open.callback(channel.reset)
            async with asyncio.timeout(seconds):
                await channel.share.connect(lambda: channel, target.host, target.port, "127.0.0.1", 0)
        except asyncssh.ChannelOpenError as error:
            raise target_error(error) from error
        except TimeoutError as error:
            raise TimedOut(f"no channel to {target} within {seconds:g} s") from error
        unless_open.pop_all()
    return channel
