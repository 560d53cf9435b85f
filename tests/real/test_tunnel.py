"""What the tunnel carries: real TLS between its two ends on loopback."""

import asyncio
import hashlib
import logging
import random
import socket

import psutil
import pytest

from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.dial import dial
from appliance.tunnel.tcp_channel import TcpChannel
from appliance.tunnel.tls import TlsLayer
from tests.support.tunnel import (
    HOST,
    SECRET,
    ask_connect,
    connect_request,
    echo,
    identity,
    link_to,
    logged,
    running_server,
    target_server,
)

MEGABYTE = 2**20


@pytest.fixture(autouse=True)
def no_secret_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    yield
    assert SECRET not in logged(caplog.get_records("call"))


async def exchange(link, data):
    """Send ``data`` and our end while reading until the target's end; what came."""
    reader, writer = await link.connect()

    async def send():
        for start in range(0, len(data), 100_000):
            writer.write(data[start : start + 100_000])
            await writer.drain()
        writer.write_eof()

    received, _ = await asyncio.gather(reader.read(-1), send())
    writer.close()
    return received


async def test_megabytes_go_through_unchanged_both_ways():
    data = random.Random(1).randbytes(20 * MEGABYTE)
    async with link_to(echo) as link:
        assert await exchange(link, data) == data


async def test_many_connections_at_once_do_not_mix():
    generator = random.Random(2)
    messages = [generator.randbytes(generator.randrange(1, 300_000)) for _ in range(50)]
    async with link_to(echo) as link:
        assert await asyncio.gather(*(exchange(link, message) for message in messages)) == messages


async def test_a_small_message_comes_back_before_any_end():
    async with link_to(echo) as link:
        reader, writer = await link.connect()
        for message in (b"one", b"two", b"three"):
            writer.write(message)
            assert await reader.readexactly(len(message)) == message
        writer.close()


async def test_a_target_that_speaks_first_is_heard():
    async def greet(_reader, writer):
        writer.write(b"220 hello")

    async with link_to(greet) as link:
        reader, writer = await link.connect()
        assert await reader.read(-1) == b"220 hello"
        writer.close()


async def test_the_clients_end_reaches_the_target_and_the_answer_still_comes_back():
    async def digest(reader, writer):
        question = await reader.read(-1)
        for _ in range(100):
            writer.write(hashlib.sha256(question).digest() * 1000)
            await writer.drain()

    async with link_to(digest) as link:
        assert await exchange(link, b"question") == hashlib.sha256(b"question").digest() * 100_000


async def test_the_targets_end_reaches_the_client_and_the_target_still_listens():
    heard = asyncio.get_running_loop().create_future()

    async def turn_away(reader, writer):
        writer.write_eof()
        heard.set_result(await reader.read(-1))

    async with link_to(turn_away) as link:
        reader, writer = await link.connect()
        assert await reader.read(-1) == b""
        writer.write(b"last will" * 10_000)
        writer.write_eof()
        assert await heard == b"last will" * 10_000
        writer.close()


async def test_a_connection_that_is_silent_after_a_half_close_is_cut():
    async def never_answer(reader, _writer):
        await reader.read(-1)
        await asyncio.Event().wait()

    async with link_to(never_answer, Deadlines(linger=0.2)) as link:
        reader, writer = await link.connect()
        writer.write_eof()
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)


async def test_a_connection_that_still_moves_after_a_half_close_is_not():
    async def answer_slowly(reader, writer):
        await reader.read(-1)
        for _ in range(6):
            await asyncio.sleep(0.1)
            writer.write(b"x")

    async with link_to(answer_slowly, Deadlines(linger=0.3)) as link:
        assert await exchange(link, b"") == b"xxxxxx"


async def test_a_connection_that_carries_nothing_for_too_long_is_ended_and_the_log_says_why(caplog):
    async with link_to(echo, idle_seconds=0.2) as link:
        reader, _ = await link.connect()
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)
        await link.server.drain(10)
    (closed,) = [record.fields for record in caplog.records if record.message == "tunnel connection closed"]
    assert closed["end"] == "nothing was carried for longer than TUNNEL_IDLE_SECONDS"


async def test_a_connection_that_moves_in_one_direction_is_not_idle():
    async def tick(_reader, writer):
        for _ in range(8):
            await asyncio.sleep(0.1)
            writer.write(b"x")

    async with link_to(tick, idle_seconds=0.3) as link:
        reader, writer = await link.connect()
        assert await reader.read(-1) == b"xxxxxxxx"
        writer.close()


async def test_a_reset_of_the_target_is_a_reset_for_the_client_and_not_an_end():
    async def reset(reader, writer):
        await reader.read(1)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    async with link_to(reset) as link:
        reader, writer = await link.connect()
        writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)


async def test_tls_that_is_cut_off_is_a_reset_for_the_target_and_not_an_end():
    fate = asyncio.get_running_loop().create_future()

    async def tell_fate(reader, _writer):
        try:
            fate.set_result(await reader.read(-1))
        except ConnectionError as error:
            fate.set_result(error)

    async with target_server(tell_fate) as port:
        target = Target(HOST, port)
        async with running_server(target) as server:
            status, _, writer = await ask_connect(server.port, connect_request(target))
            assert status == b"HTTP/1.1 200 connected"
            writer.write(b"half a mess")
            await writer.drain()
            with writer.get_extra_info("socket").dup() as connection:
                connection.shutdown(socket.SHUT_WR)
            assert isinstance(await fate, ConnectionResetError)
            writer.transport.abort()


async def test_bytes_behind_the_end_of_a_direction_do_not_end_the_other():
    ended = asyncio.Event()

    async def answer_late(reader, writer):
        await reader.read(-1)
        ended.set()
        await asyncio.sleep(0.2)
        writer.write(b"answer")

    async with target_server(answer_late) as port:
        target = Target(HOST, port)
        async with running_server(target) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            tls = TlsLayer(identity(Side.DESTINATION).context)
            tls.start()

            async def take_turn():
                writer.write(tls.outgoing())
                return tls.receive(await reader.read(2**16))

            while not tls.handshaken:
                await take_turn()
            tls.send(connect_request(target))
            assert (await take_turn()).startswith(b"HTTP/1.1 200 ")
            tls.send_eof()
            writer.write(tls.outgoing())
            await ended.wait()
            writer.write(b"\x17\x03\x03\x00\x04junk")
            assert await take_turn() == b"answer"
            writer.close()


async def test_a_slow_reader_slows_its_writer_down_and_no_memory_grows():
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

    async with link_to(flood) as link:
        before = psutil.Process().memory_info().rss
        reader, writer = await link.connect()
        await stalled.wait()
        growth = psutil.Process().memory_info().rss - before
        # What the kernel's socket buffers take in is not ours to bound: at most 10 MB on each of three hops.
        assert written < 40 * MEGABYTE
        assert growth < 10 * MEGABYTE
        received = 0
        while data := await reader.read(MEGABYTE):
            received += len(data)
        assert received == written
        writer.close()


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


async def test_what_a_client_sends_before_the_tunnel_stands_waits_outside_of_the_process():
    data = bytes(40 * MEGABYTE)
    may_resolve = asyncio.Event()

    async def find_late(_host):
        await may_resolve.wait()
        return ["127.0.0.1"]

    async with link_to(echo, resolve=find_late) as link:
        before = psutil.Process().memory_info().rss
        exchanging = asyncio.create_task(exchange(link, data))
        done, _ = await asyncio.wait([exchanging], timeout=0.5)
        growth = psutil.Process().memory_info().rss - before
        may_resolve.set()
        assert not done
        assert growth < 5 * MEGABYTE
        assert await exchanging == data


async def test_connections_are_told_apart_from_dead_ones_and_sent_without_delay(monkeypatch):
    options = {}
    set_option = socket.socket.setsockopt

    def spy(connection, level, option, value):
        options[level, option] = value
        set_option(connection, level, option, value)

    monkeypatch.setattr(socket.socket, "setsockopt", spy)
    async with link_to(echo) as link:
        await exchange(link, b"x")
    assert options[socket.SOL_SOCKET, socket.SO_KEEPALIVE] == 1
    assert options[socket.IPPROTO_TCP, socket.TCP_KEEPIDLE] == 30
    assert options[socket.IPPROTO_TCP, socket.TCP_NODELAY] == 1


async def test_each_connection_is_told_to_the_log_with_its_bytes(caplog):
    async with link_to(echo) as link:
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
