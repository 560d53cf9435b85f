"""The fault suite's proxies inject the requested fault into a connection, and otherwise change nothing."""

import asyncio
import contextlib
import random
import struct
import time
from collections.abc import AsyncIterator

import pytest

from appliance.settings.target import Target
from tests.faults.kafka_proxy import Api, KafkaProxy, Moment, Tripwire
from tests.faults.proxy import Proxy
from tests.support.patience import PATIENCE
from tests.support.tunnel import Handler, echo, target_server

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]

ANYWHERE = Target("127.0.0.1", 0)
SILENCE = 0.2
"""Seconds in which a possible answer would have come."""


@contextlib.asynccontextmanager
async def proxy_before(handler: Handler, tripwire: Tripwire | None = None) -> AsyncIterator[Proxy]:
    async with asyncio.timeout(PATIENCE), target_server(handler) as port:
        target = Target("127.0.0.1", port)
        proxy = KafkaProxy(ANYWHERE, target, None, tripwire) if tripwire else Proxy(ANYWHERE, target)
        await proxy.start()
        try:
            yield proxy
        finally:
            await proxy.close()


async def connect(proxy: Proxy) -> Ends:
    return await asyncio.open_connection(proxy.listen.host, proxy.listen.port)


async def echoes(ends: Ends, data: bytes = b"hello") -> bool:
    """True if sent bytes come back."""
    reader, writer = ends
    writer.write(data)
    return await reader.readexactly(len(data)) == data


async def is_silent(ends: Ends) -> bool:
    """True if no sent byte comes back."""
    reader, writer = ends
    writer.write(b"hello")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SILENCE):
            await reader.read(1)
        return False
    return True


async def is_reset(ends: Ends) -> bool:
    with pytest.raises(ConnectionResetError):
        await ends[0].readexactly(1)
    return True


def request(api: Api, body: bytes = b"") -> bytes:
    return struct.pack(">ih", 2 + len(body), api) + body


async def test_bytes_and_the_end_of_one_direction_are_carried() -> None:
    async with proxy_before(echo) as proxy:
        reader, writer = await connect(proxy)
        writer.write(b"x" * 1_000_000)
        writer.write_eof()
        assert await reader.read(-1) == b"x" * 1_000_000


async def test_a_cut_resets_what_is_connected_and_what_connects_until_it_is_healed() -> None:
    async with proxy_before(echo) as proxy:
        before = await connect(proxy)
        assert await echoes(before)
        proxy.cut()
        assert await is_reset(before)
        assert await is_reset(await connect(proxy))
        proxy.heal()
        assert await echoes(await connect(proxy))


async def test_half_open_connections_are_silent_for_ever_and_new_ones_until_they_are_healed() -> None:
    async with proxy_before(echo) as proxy:
        before = await connect(proxy)
        assert await echoes(before)
        proxy.half_open()
        meanwhile = await connect(proxy)
        assert await is_silent(before)
        assert await is_silent(meanwhile)
        proxy.heal()
        assert await is_silent(before)
        assert await is_silent(meanwhile)
        assert await echoes(await connect(proxy))


async def test_the_target_is_not_told_that_the_client_of_a_half_open_connection_has_gone() -> None:
    ended = asyncio.Event()

    async def read_to_end(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(-1)
        ended.set()

    async with proxy_before(read_to_end) as proxy:
        _, writer = await connect(proxy)
        while not proxy.wires:
            await asyncio.sleep(0)
        proxy.half_open()
        writer.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SILENCE):
                await ended.wait()
        assert not ended.is_set()


async def test_of_many_connections_some_are_swallowed_for_ever_and_new_ones_are_good() -> None:
    async with proxy_before(echo) as proxy:
        before = [await connect(proxy) for _ in range(8)]
        assert all([await echoes(ends) for ends in before])
        swallowed = proxy.swallow(random.Random(2))
        assert sum([await is_silent(ends) for ends in before]) == swallowed
        assert 0 < swallowed < len(before)
        assert await echoes(await connect(proxy))


async def test_a_slow_wire_takes_its_delay_and_the_time_of_its_bytes() -> None:
    async with proxy_before(echo) as proxy:
        proxy.slow(delay=0.01, bandwidth=100_000)
        reader, writer = await connect(proxy)
        began = time.monotonic()
        writer.write(b"x" * 10_000)
        await reader.readexactly(10_000)
        assert time.monotonic() - began >= 2 * (0.01 + 0.1)


async def test_a_reset_in_a_request_lets_half_of_it_pass_and_only_once() -> None:
    tripwire = Tripwire()
    async with proxy_before(echo, tripwire) as proxy:
        tripwire.arm(Api.PRODUCE, Moment.IN_REQUEST)
        client = await connect(proxy)
        assert await echoes(client, request(Api.END_TXN))
        client[1].write(request(Api.PRODUCE, bytes(100)))
        assert await is_reset(client)
        assert tripwire.sprung.is_set()
        assert await echoes(await connect(proxy), request(Api.PRODUCE, bytes(100)))


async def test_a_request_that_goes_silent_passes_no_more_than_what_was_before_it_and_ends_for_nobody() -> None:
    tripwire = Tripwire()
    passed: list[bytes] = []

    async def remember(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passed.append(await reader.readexactly(6))
        writer.write(passed[-1])
        passed.append(await reader.read(-1))

    async with proxy_before(remember, tripwire) as proxy:
        tripwire.arm(Api.PRODUCE, Moment.SILENT)
        client = await connect(proxy)
        assert await echoes(client, request(Api.END_TXN))
        client[1].write(request(Api.PRODUCE))
        await tripwire.sprung.wait()
        assert await is_silent(client)
        client[1].close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SILENCE):
                while len(passed) == 1:
                    await asyncio.sleep(0)
        assert passed == [request(Api.END_TXN)]


async def test_a_reset_before_an_answer_lets_the_request_and_earlier_answers_pass() -> None:
    tripwire = Tripwire()
    taken: list[bytes] = []

    async def remember(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            head = await reader.readexactly(4)
            taken.append(head + await reader.readexactly(struct.unpack(">i", head)[0]))
            writer.write(taken[-1])

    async with proxy_before(remember, tripwire) as proxy:
        tripwire.arm(Api.END_TXN, Moment.BEFORE_ANSWER)
        client = await connect(proxy)
        client[1].write(request(Api.PRODUCE) + request(Api.END_TXN))
        await tripwire.sprung.wait()
        assert taken == [request(Api.PRODUCE), request(Api.END_TXN)]
        assert await client[0].readexactly(6) == request(Api.PRODUCE)
        assert await is_reset(client)
