"""Ask another DNS server: one question, one reply, nothing kept.

Each try has a random id and a connected socket of its own, so its source port is random too, and the kernel drops
packets from other addresses. A packet that does not answer the question is ignored, and the wait continues until its
timeout (RFC 5452).
"""

import asyncio
import contextlib
import dataclasses
import logging
import secrets
import struct
from collections.abc import Awaitable, Callable, Sequence

from appliance.clock import deadline
from appliance.dns.messages.answers import servfail
from appliance.dns.messages.question import Question, is_reply_to
from appliance.errors import Unreachable
from appliance.settings.target import Target

_LENGTH = struct.Struct("!H")
"""The length before each message on a TCP connection (RFC 1035, section 4.2.2)."""

_Converse = Callable[[str, int, Question], Awaitable[bytes]]


async def ask_by_udp(server: Target, question: Question, timeouts: Sequence[float]) -> bytes:
    """The server's reply in a datagram, under the question's own id.

    ``timeouts`` are the seconds of each try, one at least.
    """
    for timeout in timeouts[:-1]:
        with contextlib.suppress(Unreachable):
            return await _attempt(_by_datagram, server, question, timeout)
    return await _attempt(_by_datagram, server, question, timeouts[-1])


async def ask_by_tcp(server: Target, question: Question, timeout: float) -> bytes:
    """The server's reply by TCP, under the question's own id."""
    return await _attempt(_by_stream, server, question, timeout)


async def _attempt(converse: _Converse, server: Target, question: Question, timeout: float) -> bytes:
    query = dataclasses.replace(question, identifier=secrets.randbelow(1 << 16))
    try:
        async with deadline(timeout, f"DNS server {server} does not answer", Unreachable):
            reply = await converse(server.host.strip("[]"), server.port, query)
    except (OSError, EOFError) as error:
        raise Unreachable(f"DNS server {server} does not answer: {error}") from error
    return question.identifier.to_bytes(2, "big") + reply[2:]


class _Datagrams(asyncio.DatagramProtocol):
    """Waits for the one datagram that answers the question."""

    def __init__(self, query: Question) -> None:
        self._query = query
        self.reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, _sender: object) -> None:
        if not self.reply.done() and is_reply_to(self._query, data):
            self.reply.set_result(data)

    def error_received(self, error: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)


async def _by_datagram(host: str, port: int, query: Question) -> bytes:
    loop = asyncio.get_running_loop()
    transport, datagrams = await loop.create_datagram_endpoint(lambda: _Datagrams(query), remote_addr=(host, port))
    try:
        transport.sendto(query.encode())
        return await datagrams.reply
    finally:
        transport.close()


async def _by_stream(host: str, port: int, query: Question) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(framed(query.encode()))
        while not is_reply_to(query, reply := await read_framed(reader)):
            pass
        return reply
    finally:
        writer.close()


def framed(message: bytes) -> bytes:
    """The message with its length before it."""
    return _LENGTH.pack(len(message)) + message


async def read_framed(reader: asyncio.StreamReader) -> bytes:
    """The next message of a connection."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)


FORWARDS_MAX = 128
"""Most questions in flight. The bound also ends undetectable loops through other servers."""

TIMEOUTS = (1.5, 2.5)
"""Seconds for each try; together less than the 5 s that glibc and musl wait for the shim."""

log = logging.getLogger("appliance.dns")


class Upstream:
    """The resolver behind the shim.

    ``timeouts`` are the seconds of each try by UDP; by TCP there is one try, as long as all of them.
    """

    def __init__(self, server: Target, timeouts: tuple[float, ...] = TIMEOUTS) -> None:
        self._server = server
        self._timeouts = timeouts
        self._in_flight = 0

    async def forward(self, question: Question, by_tcp: bool) -> bytes:
        """The upstream's reply, or SERVFAIL.

        A client uses TCP for a reply that is too large for a datagram, so the upstream is queried by TCP as well. A
        truncated reply to a UDP client is passed on unchanged: the client asks again by TCP.
        """
        if self._in_flight >= FORWARDS_MAX:
            return servfail(question)
        self._in_flight += 1
        try:
            return await self._ask(question, by_tcp)
        except Unreachable as error:
            log.warning("dns upstream does not answer", extra={"fields": {"host": question.host, "reason": str(error)}})
            return servfail(question)
        finally:
            self._in_flight -= 1

    async def _ask(self, question: Question, by_tcp: bool) -> bytes:
        if by_tcp:
            return await ask_by_tcp(self._server, question, sum(self._timeouts))
        return await ask_by_udp(self._server, question, self._timeouts)
