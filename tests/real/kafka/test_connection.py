"""Answers reach their requests, however they are cut and however many come at once, in plain text and by TLS."""

import asyncio
import contextlib
import random
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.errors import PeerError, Unreachable
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.dial import connect
from appliance.kafka.protocol.wire import SIZE, check_correlation
from appliance.settings.target import Target
from appliance.settings.values import Side
from tests.support.authority import Authority
from tests.support.patience import PATIENCE

HOST = "tunnel.example"
REQUEST = struct.Struct(">iii")
AROUND_64_KIB = range(65_530, 65_540)

Cut = Callable[[bytes], Iterable[bytes]]
Tls = tuple[ssl.SSLContext, ssl.SSLContext]
"""The TLS contexts of a server and a client."""


@dataclass(frozen=True)
class Wanted:
    """A request for an answer of ``size`` bytes."""

    size: int
    name: str = "Wanted"

    def frame(self, correlation: int, client_id: str) -> bytes:  # noqa: ARG002
        return REQUEST.pack(REQUEST.size - SIZE.size, correlation, self.size)

    def answer(self, frame: bytearray, correlation: int) -> bytes:
        check_correlation(frame, correlation)
        return bytes(frame)


def content(correlation: int, size: int) -> bytes:
    return SIZE.pack(correlation) + random.Random(correlation).randbytes(size - SIZE.size)


async def as_loopback(host: str) -> tuple[str, ...]:
    assert host == HOST
    return ("127.0.0.1",)


@contextlib.asynccontextmanager
async def answering(cut: Cut, asked: int, answered: int, tls: Tls | None) -> AsyncIterator[Target]:
    """A broker that reads ``asked`` requests of a connection, answers the first ones, in pieces, and closes it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(asked):
            _, correlation, size = REQUEST.unpack(await reader.readexactly(REQUEST.size))
            if number >= answered:
                continue
            for piece in cut(SIZE.pack(size) + content(correlation, size)):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls[0] if tls else None)
    try:
        yield Target(HOST, server.sockets[0].getsockname()[1])
    finally:
        server.close()


@contextlib.asynccontextmanager
async def connected(cut: Cut, asked: int, answered: int, tls: Tls | None = None) -> AsyncIterator[BrokerConnection]:
    async with asyncio.timeout(PATIENCE), answering(cut, asked, answered, tls) as target:
        connection = await connect(target, as_loopback, "test", tls[1] if tls else None)
        try:
            yield connection
        finally:
            await connection.close()


@pytest.fixture(params=["plain text", "TLS"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> Tls | None:
    if request.param == "plain text":
        return None
    authority = Authority()
    leaf = authority.leaf(Side.SOURCE)
    file = tmp_path / "leaf.pem"
    file.write_bytes(leaf.certificate + leaf.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=authority.pem.decode())


def whole(data: bytes) -> Iterable[bytes]:
    return (data,)


def anywhere(data: bytes) -> Iterator[bytes]:
    chance = random.Random(len(data))
    at = 0
    while at < len(data):
        size = chance.choice([1, 3, 4, 5, 1000, 65_536, 100_000])
        yield data[at : at + size]
        at += size


@pytest.mark.parametrize("cut", [whole, anywhere])
async def test_every_answer_reaches_whoever_asked_in_one_piece(cut: Cut, tls: Tls | None) -> None:
    chance = random.Random(1)
    sizes = [chance.choice([4, 5, 60, 60, 60, 3000, *AROUND_64_KIB, 300_000]) for _ in range(400)]
    async with connected(cut, len(sizes), len(sizes), tls) as connection:
        answers = [await connection.send(Wanted(size)) for size in sizes]
        for number, (size, answer) in enumerate(zip(sizes, answers, strict=True), start=1):
            assert await answer == content(number, size)


async def test_an_answer_that_comes_byte_by_byte_is_one_answer() -> None:
    async with connected(lambda data: (data[at : at + 1] for at in range(len(data))), 3, 3) as connection:
        answers = [await connection.send(Wanted(size)) for size in (4, 5, 40)]
        assert [len(await answer) for answer in answers] == [4, 5, 40]


async def test_a_connection_that_ends_answers_what_was_answered_and_fails_the_rest(
    tls: Tls | None,
) -> None:
    async with connected(whole, 100, 40, tls) as connection:
        answers = [await connection.send(Wanted(60)) for _ in range(100)]
        ends = await asyncio.gather(*answers, return_exceptions=True)
    assert [len(end) for end in ends[:40] if isinstance(end, bytes)] == [60] * 40
    assert all(isinstance(end, Unreachable) for end in ends[40:])


async def test_bytes_that_are_no_answer_end_the_connection_for_all() -> None:
    async with connected(lambda _: (b"HTTP/1.1 400 Bad Request\r\n\r\n",), 30, 1) as connection:
        answers = [await connection.send(Wanted(60)) for _ in range(30)]
        ends = await asyncio.gather(*answers, return_exceptions=True)
    assert [type(end) for end in ends] == [PeerError] * 30
    assert "does not speak Kafka's protocol" in str(ends[0])


class Unforeseen(Wanted):
    """A request whose answer has content that its reader does not know."""

    def answer(self, frame: bytearray, correlation: int) -> bytes:
        raise KeyError(f"tag 9 of {len(frame)} bytes, answer {correlation}")


async def test_case_19_an_answer_that_nobody_foresaw_keeps_no_one_waiting() -> None:
    # Before, the request waited for ever: the answer ended its deadline, and the error went to the event loop.
    async with connected(whole, 2, 2) as connection:
        answers = [await connection.send(wanted) for wanted in (Unforeseen(60), Wanted(60))]
        ends = await asyncio.gather(*answers, return_exceptions=True)
    assert [type(end) for end in ends] == [PeerError] * 2
    assert "unreadable answer to a Wanted" in str(ends[0])
