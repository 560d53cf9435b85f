"""What the tunnel by SSH carries: real SSH between its two ends on loopback."""

import asyncio
import hashlib
import logging
import random
import socket

import asyncssh
import psutil
import pytest

from appliance.settings.target import Target
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.ssh import options
from appliance.tunnel.ssh.channel import open_channel
from tests.support.carrying import exchange
from tests.support.ssh import link_to, logged_in, running_server
from tests.support.tunnel import HOST, SECRET, echo, logged, target_server

MEGABYTE = 2**20


@pytest.fixture(autouse=True)
def no_secret_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    yield
    assert SECRET not in logged(caplog.get_records("call"))
    assert not [record for record in caplog.get_records("call") if record.name.startswith("asyncssh")]


async def test_megabytes_go_through_unchanged_both_ways():
    data = random.Random(1).randbytes(20 * MEGABYTE)
    async with link_to(echo) as link:
        assert await exchange(link, data) == data


async def test_many_connections_at_once_share_one_ssh_connection_and_do_not_mix(monkeypatch):
    generator = random.Random(2)
    messages = [generator.randbytes(generator.randrange(1, 300_000)) for _ in range(50)]
    made = []
    connect = asyncssh.connect

    async def counted(*arguments, **options):
        made.append(arguments)
        return await connect(*arguments, **options)

    monkeypatch.setattr(asyncssh, "connect", counted)
    async with link_to(echo) as link:
        assert await asyncio.gather(*(exchange(link, message) for message in messages)) == messages
    assert len(made) == 1


async def test_new_session_keys_on_the_way_change_nothing(monkeypatch):
    monkeypatch.setitem(options._ALGORITHMS, "rekey_bytes", 100_000)
    data = random.Random(7).randbytes(10 * MEGABYTE)
    async with link_to(echo) as link:
        assert await asyncio.gather(*(exchange(link, data) for _ in range(2))) == [data, data]


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


class Collected:
    """A receiver that keeps what it is told."""

    def __init__(self):
        self.data = bytearray()
        self.told = []
        self.over = asyncio.Event()

    def received(self, data):
        self.data += data

    def ended(self):
        self.told.append("ended")
        self.over.set()

    def lost(self, _error):
        self.told.append("lost")
        self.over.set()

    def relieved(self):
        pass


def closed_by_the_server():
    """Is done when the server has told its log that a connection is closed."""
    done = asyncio.get_running_loop().create_future()
    logger = logging.getLogger("appliance.tunnel")

    def see(record):
        if record.getMessage() == "tunnel connection closed" and "peer" in record.fields:
            logger.removeFilter(see)
            done.set_result(None)
        return True

    logger.addFilter(see)
    return done


async def test_what_came_before_anybody_was_there_comes_first_and_in_order():
    data = random.Random(6).randbytes(500_000)

    async def speak(reader, writer):
        writer.write(data)
        writer.write_eof()
        await reader.read(-1)

    async with link_to(speak) as link, logged_in(link.server.port) as connection:
        channel = await open_channel(connection, link.target, 5)
        await asyncio.sleep(0.3)
        everything = Collected()
        channel.attach(everything)
        await everything.over.wait()
        assert everything.data == data
        channel.reset()


async def test_an_end_behind_bytes_that_nobody_takes_yet_is_still_an_end():
    """asyncssh alone would forget it when the channel is closed behind it."""
    data = random.Random(3).randbytes(500_000)

    async def answer_all_at_once(reader, writer):
        await reader.read(-1)
        writer.write(data)
        await writer.drain()

    async with (
        target_server(answer_all_at_once) as port,
        running_server(Target(HOST, port)) as server,
        logged_in(server.port) as connection,
    ):
        told = closed_by_the_server()
        channel = await open_channel(connection, Target(HOST, port), 5)
        channel.send_eof()
        await channel.receive()
        channel.pause()
        await asyncio.wait_for(told, 5)
        rest = Collected()
        channel.attach(rest)
        await rest.over.wait()
        assert rest.data == data[-len(rest.data) :]
        assert rest.told[0] == "ended"
        channel.reset()


async def test_a_close_behind_bytes_that_nobody_takes_yet_follows_them_and_their_end():
    data = random.Random(5).randbytes(5 * MEGABYTE)
    may_read = asyncio.Event()
    heard = asyncio.get_running_loop().create_future()

    async def read_late(reader, writer):
        writer.write_eof()
        await may_read.wait()
        heard.set_result(await reader.read(-1))

    async with link_to(read_late) as link, logged_in(link.server.port) as connection:
        channel = await open_channel(connection, link.target, 5)
        assert await channel.receive() == b""
        while not channel.congested:
            channel.send(data)
        channel.send(b"the last")
        channel.send_eof()
        channel.close()
        may_read.set()
        assert (await heard).endswith(b"the last")


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


@pytest.mark.parametrize("cut", ["channel", "connection"])
async def test_ssh_that_is_cut_off_is_a_reset_for_the_target_and_not_an_end(cut):
    fate = asyncio.get_running_loop().create_future()

    async def tell_fate(reader, _writer):
        try:
            await reader.readexactly(11)
            fate.set_result(await reader.read(-1))
        except ConnectionError as error:
            fate.set_result(error)

    async with (
        target_server(tell_fate) as port,
        running_server(Target(HOST, port)) as server,
        logged_in(server.port) as connection,
    ):
        _, writer = await connection.open_connection(HOST, port)
        writer.write(b"half a mess")
        await writer.drain()
        (writer.channel if cut == "channel" else connection).abort()
        assert isinstance(await fate, ConnectionResetError)


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


async def test_a_reader_that_never_reads_holds_up_nobody_else():
    served = 0

    async def flood_the_first(reader, writer):
        nonlocal served
        served += 1
        if served > 1:
            await echo(reader, writer)
        while True:
            writer.write(bytes(MEGABYTE))
            await writer.drain()

    async with link_to(flood_the_first) as link:
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


async def test_each_connection_is_told_to_the_log_with_its_bytes(caplog):
    async with link_to(echo) as link:
        await exchange(link, b"x" * 1000)
        await link.server.drain(10)
    told = [record.fields for record in caplog.records if record.message == "tunnel connection closed"]
    (closed,) = [fields for fields in told if "peer" in fields]
    assert (closed["target"], closed["bytes_to_target"], closed["bytes_from_target"]) == (str(link.target), 1000, 1000)
    assert closed["end"] == "both directions ended"
    assert closed["peer"].startswith("127.0.0.1:")
