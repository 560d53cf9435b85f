"""What the tunnel by SSH does with its one connection and the channels in it."""

import asyncio
import logging
import random

import asyncssh
import pytest

from appliance.settings.target import Target
from appliance.tunnel.ssh import options
from appliance.tunnel.ssh.channel import open_channel
from tests.support.carrying import echoed, exchange
from tests.support.patience import PATIENCE
from tests.support.ssh import link_to, logged_in, running_server
from tests.support.tunnel import HOST, echo, target_server

MEGABYTE = 2**20
pytestmark = pytest.mark.usefixtures("no_secret_in_the_log")


async def test_many_connections_at_once_share_one_ssh_connection(monkeypatch):
    made = []
    connect = asyncssh.connect

    async def counted(*arguments, **options):
        made.append(arguments)
        return await connect(*arguments, **options)

    monkeypatch.setattr(asyncssh, "connect", counted)
    async with link_to(echo) as link:
        assert await asyncio.gather(*(echoed(link.endpoint) for _ in range(50))) == [b"x"] * 50
    assert len(made) == 1


async def test_new_session_keys_on_the_way_change_nothing(monkeypatch):
    monkeypatch.setitem(options._ALGORITHMS, "rekey_bytes", 100_000)
    data = random.Random(7).randbytes(10 * MEGABYTE)
    async with link_to(echo) as link:
        assert await asyncio.gather(*(exchange(link, data) for _ in range(2))) == [data, data]


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
        await asyncio.wait_for(told, PATIENCE)
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
