"""Bytes through the tunnel, directly and inside SSH: its two real ends on loopback."""

import asyncio
import hashlib
import random
import socket
from pathlib import Path

import psutil
import pytest

from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.stream.tcp_channel import TcpChannel, dial
from tests.support.carrying import exchange
from tests.support.tunnel import echo, target_server

MEGABYTE = 2**20
pytestmark = pytest.mark.usefixtures("no_secret_in_the_log")

TICKS = 40
"""Single bytes at short intervals: each interval is far below the timeout of 1.5 seconds, and their sum above it."""


async def test_megabytes_go_through_unchanged_both_ways(ends):
    data = random.Random(1).randbytes(20 * MEGABYTE)
    async with ends.link_to(echo) as link:
        assert await exchange(link, data) == data


async def test_many_connections_at_once_do_not_mix(ends):
    generator = random.Random(2)
    messages = [generator.randbytes(generator.randrange(1, 300_000)) for _ in range(50)]
    async with ends.link_to(echo) as link:
        assert await asyncio.gather(*(exchange(link, message) for message in messages)) == messages


async def test_a_small_message_comes_back_before_any_end(ends):
    async with ends.link_to(echo) as link:
        reader, writer = await link.connect()
        for message in (b"one", b"two", b"three"):
            writer.write(message)
            assert await reader.readexactly(len(message)) == message
        writer.close()


async def test_a_target_that_speaks_first_is_heard(ends):
    async def greet(_reader, writer):
        writer.write(b"220 hello")

    async with ends.link_to(greet) as link:
        reader, writer = await link.connect()
        assert await reader.read(-1) == b"220 hello"
        writer.close()


async def test_the_clients_end_reaches_the_target_and_the_answer_still_comes_back(ends):
    async def digest(reader, writer):
        question = await reader.read(-1)
        for _ in range(100):
            writer.write(hashlib.sha256(question).digest() * 1000)
            await writer.drain()

    async with ends.link_to(digest) as link:
        assert await exchange(link, b"question") == hashlib.sha256(b"question").digest() * 100_000


async def test_the_targets_end_reaches_the_client_and_the_target_still_listens(ends):
    heard = asyncio.get_running_loop().create_future()

    async def turn_away(reader, writer):
        writer.write_eof()
        heard.set_result(await reader.read(-1))

    async with ends.link_to(turn_away) as link:
        reader, writer = await link.connect()
        assert await reader.read(-1) == b""
        writer.write(b"last will" * 10_000)
        writer.write_eof()
        assert await heard == b"last will" * 10_000
        writer.close()


async def test_a_connection_that_is_silent_after_a_half_close_is_cut(ends):
    async def never_answer(reader, _writer):
        await reader.read(-1)
        await asyncio.Event().wait()

    async with ends.link_to(never_answer, Timeouts(linger=0.2)) as link:
        reader, writer = await link.connect()
        writer.write_eof()
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)


async def test_a_connection_that_still_moves_after_a_half_close_is_not(ends):
    async def answer_slowly(reader, writer):
        await reader.read(-1)
        for _ in range(TICKS):
            await asyncio.sleep(0.05)
            writer.write(b"x")

    async with ends.link_to(answer_slowly, Timeouts(linger=1.5)) as link:
        assert await exchange(link, b"") == b"x" * TICKS


async def test_a_connection_that_carries_nothing_for_too_long_is_ended_and_the_log_says_why(ends, caplog):
    async with ends.link_to(echo, idle_seconds=0.2) as link:
        reader, _ = await link.connect()
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)
        await link.server.drain(10)
    (closed,) = [record.fields for record in caplog.records if record.message == "tunnel connection closed"]
    assert closed["end"] == "nothing was carried for longer than TUNNEL_IDLE_SECONDS"


async def test_a_connection_that_moves_in_one_direction_is_not_idle(ends):
    async def tick(_reader, writer):
        for _ in range(TICKS):
            await asyncio.sleep(0.05)
            writer.write(b"x")

    async with ends.link_to(tick, idle_seconds=1.5) as link:
        reader, writer = await link.connect()
        assert await reader.read(-1) == b"x" * TICKS
        writer.close()


async def test_a_reset_of_the_target_is_a_reset_for_the_client_and_not_an_end(ends):
    async def reset(reader, writer):
        await reader.read(1)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    async with ends.link_to(reset) as link:
        reader, writer = await link.connect()
        writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)


def largest_buffers() -> int:
    """Maximum size of Linux's two buffers for one direction of a connection, in bytes."""
    limits = (Path(f"/proc/sys/net/ipv4/tcp_{name}").read_text().split() for name in ("rmem", "wmem"))
    return sum(int(largest) for _, _, largest in limits)


async def test_a_slow_reader_slows_its_writer_down_and_no_memory_grows(ends):
    stalled = asyncio.Event()
    written = 0

    async def flood(_reader, writer):
        nonlocal written
        while written < 400 * MEGABYTE and not stalled.is_set():
            writer.write(bytes(MEGABYTE))
            written += MEGABYTE
            try:
                await asyncio.wait_for(writer.drain(), 1)
            except TimeoutError:
                stalled.set()
        await writer.drain()

    async with ends.link_to(flood) as link:
        before = psutil.Process().memory_info().rss
        reader, writer = await link.connect()
        await stalled.wait()
        growth = psutil.Process().memory_info().rss - before
        # The kernel's socket buffers are not bounded by us: on each hop they grow to the system's limits.
        assert written < (ends.hops + 1) * largest_buffers() + ends.window
        assert growth < 10 * MEGABYTE + ends.window
        received = 0
        while data := await reader.read(MEGABYTE):
            received += len(data)
        assert received == written
        writer.close()


async def test_a_reader_that_never_reads_holds_up_no_other(ends):
    served = 0

    async def flood_the_first(reader, writer):
        nonlocal served
        served += 1
        if served > 1:
            await echo(reader, writer)
        while True:
            writer.write(bytes(MEGABYTE))
            await writer.drain()

    async with ends.link_to(flood_the_first) as link:
        reader, idle = await link.connect()
        await reader.readexactly(1)
        data = random.Random(4).randbytes(5 * MEGABYTE)
        _, writer = await link.connect()
        writer.close()
        other, writer = await link.connect()
        for start in range(0, len(data), MEGABYTE):
            writer.write(data[start : start + MEGABYTE])
            assert await other.readexactly(MEGABYTE) == data[start : start + MEGABYTE]
        writer.close()
        idle.transport.abort()


async def test_a_view_is_sent_as_it_was_whatever_is_written_over_it_afterwards():
    data = random.Random(3).randbytes(20 * MEGABYTE)
    may_read = asyncio.Event()
    heard = asyncio.get_running_loop().create_future()

    async def read_late(reader, _writer):
        await may_read.wait()
        heard.set_result(await reader.read(-1))

    async with target_server(read_late) as port:
        channel = await dial(["127.0.0.1"], port, 10, TcpChannel)
        shared = bytearray(data)
        channel.send(memoryview(shared))
        shared[:] = bytes(len(shared))
        channel.send_eof()
        may_read.set()
        assert await heard == data
        channel.close()
        await channel.closed()


async def test_bytes_sent_before_the_tunnel_is_connected_wait_outside_of_the_process(ends):
    data = bytes(40 * MEGABYTE)
    may_resolve = asyncio.Event()

    async def find_late(_host):
        await may_resolve.wait()
        return ["127.0.0.1"]

    async with ends.link_to(echo, resolve=find_late) as link:
        before = psutil.Process().memory_info().rss
        exchanging = asyncio.create_task(exchange(link, data))
        done, _ = await asyncio.wait([exchanging], timeout=0.5)
        growth = psutil.Process().memory_info().rss - before
        may_resolve.set()
        assert not done
        assert growth < 5 * MEGABYTE
        assert await exchanging == data


async def test_connections_have_keepalive_and_are_sent_without_delay(ends, monkeypatch):
    options = {}
    set_option = socket.socket.setsockopt

    def spy(connection, level, option, value):
        options[level, option] = value
        set_option(connection, level, option, value)

    monkeypatch.setattr(socket.socket, "setsockopt", spy)
    async with ends.link_to(echo) as link:
        await exchange(link, b"x")
    assert options[socket.SOL_SOCKET, socket.SO_KEEPALIVE] == 1
    assert options[socket.IPPROTO_TCP, socket.TCP_KEEPIDLE] == 30
    assert options[socket.IPPROTO_TCP, socket.TCP_NODELAY] == 1


async def test_each_connection_is_logged_with_its_bytes(ends, caplog):
    async with ends.link_to(echo) as link:
        await exchange(link, b"x" * 1000)
        await link.server.drain(10)
        await link.client.drain(10)
    for message in ("tunnel connection closed", "endpoint connection closed"):
        (told,) = [record for record in caplog.records if record.message == message]
        closed = told.fields
        assert (told.levelname, closed["target"], closed["end"]) == ("INFO", str(link.target), "both directions ended")
        assert (closed["bytes_to_target"], closed["bytes_from_target"]) == (1000, 1000)
        assert closed["peer"].startswith("127.0.0.1:")
        assert 0 <= closed["seconds"] < 10
