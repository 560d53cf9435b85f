"""The tunnel's handling of TLS records."""

import asyncio
import time

import pytest

from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tls.engine import TlsLayer
from appliance.tls.first_flight import ClientWire
from appliance.tunnel.stream.tcp_channel import TcpChannel
from tests.support.tls import ask_connect, connect_request, identity, running_server
from tests.support.tunnel import HOST, target_server

pytestmark = pytest.mark.usefixtures("no_secret_in_the_log")


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
            status, channel = await ask_connect(server.port, connect_request(target))
            assert status == b"HTTP/1.1 200 connected"
            channel.send(b"half a mess")
            TcpChannel.send_eof(channel)
            assert isinstance(await fate, ConnectionResetError)
            channel.reset()


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
            known = identity(Side.DESTINATION).tls
            tls = TlsLayer(known.context, ClientWire(known.tokens, time.time()))
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
