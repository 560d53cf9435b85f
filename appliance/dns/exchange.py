"""Ask another DNS server: one question, one reply, nothing kept.

Each try has a random id and a connected socket of its own, so its source port is random too, and the kernel drops
packets from other addresses. A packet that does not answer the question is ignored, and the wait continues until its
timeout (RFC 5452).
"""

import asyncio
import contextlib
import dataclasses
import secrets
import struct
from collections.abc import Awaitable, Callable, Sequence

from appliance.dns.messages.question import Question, is_reply_to
from appliance.errors import Unreachable
from appliance.settings.target import Target

_LENGTH = struct.Struct("!H")
"""The length before each message on a TCP connection (RFC 1035, section 4.2.2)."""

_Converse = Callable[[str, int, Question], Awaitable[bytes]]


async def ask_by_udp(server: Target, question: Question, timeouts: Sequence[float]) -> bytes:
    """The server's reply in a datagram, under the question's own id.

    Args:
        server: the DNS server.
        question: the question.
        timeouts: seconds to wait for each try, one at least.

    Raises:
        Unreachable: no try was answered.
    """
    for timeout in timeouts[:-1]:
        with contextlib.suppress(Unreachable):
            return await _attempt(_by_datagram, server, question, timeout)
    return await _attempt(_by_datagram, server, question, timeouts[-1])


async def ask_by_tcp(server: Target, question: Question, timeout: float) -> bytes:
    """The server's reply by TCP, under the question's own id.

    Raises:
        Unreachable: no reply within ``timeout`` seconds.
    """
    return await _attempt(_by_stream, server, question, timeout)


async def _attempt(converse: _Converse, server: Target, question: Question, timeout: float) -> bytes:
    asked = dataclasses.replace(question, identifier=secrets.randbelow(1 << 16))
    try:
        async with asyncio.timeout(timeout):
            reply = await converse(server.host.strip("[]"), server.port, asked)
    except TimeoutError as error:
        raise Unreachable(f"DNS server {server} does not answer within {timeout:g} s") from error
    except (OSError, EOFError) as error:
        raise Unreachable(f"DNS server {server} does not answer: {error}") from error
    return question.identifier.to_bytes(2, "big") + reply[2:]


class _Datagrams(asyncio.DatagramProtocol):
    """Waits for the one datagram that answers the question."""

    def __init__(self, asked: Question) -> None:
        self._asked = asked
        self.reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, _sender: object) -> None:
        if not self.reply.done() and is_reply_to(self._asked, data):
            self.reply.set_result(data)

    def error_received(self, error: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)


async def _by_datagram(host: str, port: int, asked: Question) -> bytes:
    loop = asyncio.get_running_loop()
    transport, datagrams = await loop.create_datagram_endpoint(lambda: _Datagrams(asked), remote_addr=(host, port))
    try:
        transport.sendto(asked.encode())
        return await datagrams.reply
    finally:
        transport.close()


async def _by_stream(host: str, port: int, asked: Question) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(framed(asked.encode()))
        while not is_reply_to(asked, reply := await read_framed(reader)):
            pass
        return reply
    finally:
        writer.close()


def framed(message: bytes) -> bytes:
    """The message with its length before it."""
    return _LENGTH.pack(len(message)) + message


async def read_framed(reader: asyncio.StreamReader) -> bytes:
    """The next message of a connection.

    Raises:
        asyncio.IncompleteReadError: the peer closed.
        OSError: the connection broke.
    """
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)
