"""A DNS client and a scripted DNS server for tests, written on bare sockets and dnslib."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

from dnslib import EDNS0, QTYPE, RR, A, DNSRecord

from appliance.settings.target import Target
from tests.support.patience import PATIENCE

ANY_PORT = Target("127.0.0.1", 0)

Script = Callable[[bytes], Awaitable[list[bytes]]]
"""A function from a query to the messages that the server sends, in order."""


def query(name: str, kind: str = "A", identifier: int = 4711, udp_size: int = 0, version: int = 0) -> bytes:
    """A query's bytes; with an OPT record if ``udp_size`` is given."""
    record = DNSRecord.question(name, kind)
    record.header.id = identifier
    if udp_size:
        record.add_ar(EDNS0(udp_len=udp_size, version=version))
    return record.pack()


def answer(query_bytes: bytes, *addresses: str) -> bytes:
    """A resolver's reply with A records."""
    asked = DNSRecord.parse(query_bytes)
    reply = asked.reply(aa=0)
    for address in addresses:
        reply.add_answer(RR(asked.q.qname, QTYPE.A, ttl=60, rdata=A(address)))
    return reply.pack()


def addresses(reply: DNSRecord) -> list[str]:
    """The A records of a reply."""
    return [str(record.rdata) for record in reply.rr if record.rtype == QTYPE.A]


async def send_udp(port: int, *messages: bytes) -> None:
    """Send datagrams without waiting for replies."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        client.connect(("127.0.0.1", port))
        for message in messages:
            await asyncio.get_running_loop().sock_sendall(client, message)


async def ask_udp(port: int, *messages: bytes, timeout: float = PATIENCE, address: str = "127.0.0.1") -> bytes:
    """Send datagrams, and return the first answer; TimeoutError if there is none."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        client.connect((address, port))
        for message in messages:
            await loop.sock_sendall(client, message)
        async with asyncio.timeout(timeout):
            return await loop.sock_recv(client, 65535)


async def resolve(port: int, name: str, kind: str = "A", udp_size: int = 0, address: str = "127.0.0.1") -> DNSRecord:
    """The reply by UDP, parsed by dnslib."""
    return DNSRecord.parse(await ask_udp(port, query(name, kind, udp_size=udp_size), address=address))


async def ask_tcp(port: int, *messages: bytes) -> list[bytes]:
    """Send several queries in one write on one connection, and return their replies."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"".join(struct.pack("!H", len(message)) + message for message in messages))
        async with asyncio.timeout(PATIENCE):
            return [await read_tcp(reader) for _ in messages]
    finally:
        writer.close()


async def read_tcp(reader: asyncio.StreamReader) -> bytes:
    """The next message of a connection."""
    (length,) = struct.unpack("!H", await reader.readexactly(2))
    return await reader.readexactly(length)


class _Scripted(asyncio.DatagramProtocol):
    def __init__(self, script: Script) -> None:
        self.script = script
        self.tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        self.tasks.add(asyncio.create_task(self._play(data, sender)))

    async def _play(self, data: bytes, sender: tuple[str, int]) -> None:
        for message in await self.script(data):
            self.transport.sendto(message, sender)


@contextlib.asynccontextmanager
async def scripted_server(udp: Script, tcp: Script | None = None, listen: Target = ANY_PORT) -> AsyncIterator[Target]:
    """A DNS server that answers by its scripts; by TCP only if there is a script for it."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for message in await tcp(await read_tcp(reader)):
            writer.write(struct.pack("!H", len(message)) + message)
        await reader.read()
        writer.close()

    streams = await asyncio.start_server(converse, listen.host, listen.port)
    address = streams.sockets[0].getsockname()
    loop = asyncio.get_running_loop()
    transport, scripted = await loop.create_datagram_endpoint(lambda: _Scripted(udp), local_addr=address)
    if tcp is None:
        streams.close()
    try:
        yield Target(*address)
    finally:
        transport.close()
        streams.close()
        for task in scripted.tasks:
            task.cancel()
        await asyncio.gather(*scripted.tasks, return_exceptions=True)


async def truncated(message: bytes) -> list[bytes]:
    """The script of a server whose reply is too long for a datagram."""
    reply = DNSRecord.parse(answer(message))
    reply.header.tc = 1
    return [reply.pack()]


async def silence(_query: bytes) -> list[bytes]:
    """The script of a server that never answers."""
    return []


def noting(asked: list[bytes]) -> Script:
    """The script of a server that never answers, but notes the queries."""

    async def script(message: bytes) -> list[bytes]:
        asked.append(message)
        return []

    return script


def losing_the_first(address: str) -> Script:
    """The script of a server that the first query does not reach; it answers all others with ``address``."""
    asked = 0

    async def script(message: bytes) -> list[bytes]:
        nonlocal asked
        asked += 1
        return [answer(message, address)] if asked > 1 else []

    return script


def dead_port() -> int:
    """A free port, which was bound and closed a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]
