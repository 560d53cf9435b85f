import asyncio
import contextlib

import pytest

from appliance.errors import TimedOut, Unreachable
from appliance.tunnel.limits.connection_limit import WAITING_MAX, ConnectionLimit
from appliance.tunnel.limits.counters import Counters, Refusal
from tests.support.patience import PATIENCE


@contextlib.asynccontextmanager
async def tasks(count, work):
    running = [asyncio.create_task(work()) for _ in range(count)]
    await asyncio.sleep(0)
    try:
        yield running
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def holder(limit):
    async def hold():
        async with limit.slot():
            await asyncio.Event().wait()

    return hold


async def test_a_connection_that_finds_all_slots_taken_gets_the_one_that_comes_free():
    limit = ConnectionLimit(1, 10, Counters())
    served = asyncio.Event()

    async def be_served():
        async with limit.slot():
            served.set()

    async with tasks(1, holder(limit)) as (first,), tasks(1, be_served):
        assert not served.is_set()
        first.cancel()
        async with asyncio.timeout(PATIENCE):
            await served.wait()


async def test_an_error_after_too_long_a_wait_names_the_limit_to_raise():
    limit = ConnectionLimit(1, 0.01, Counters())
    async with tasks(1, holder(limit)):
        with pytest.raises(TimedOut, match=r"TUNNEL_CONNECTIONS_MAX=1 connections are in use for 0\.01 s"):
            async with limit.slot():
                pass


async def test_only_so_many_may_wait():
    limit = ConnectionLimit(1, 10, Counters())
    async with tasks(1 + WAITING_MAX, holder(limit)):
        with pytest.raises(Unreachable, match="TUNNEL_CONNECTIONS_MAX=1 connections are in use, and 256 wait"):
            async with limit.slot():
                pass


async def test_as_many_connections_may_be_without_a_slot_as_may_wait_for_one():
    counters = Counters()
    limit = ConnectionLimit(1, 10, counters)
    with contextlib.ExitStack() as present:
        for _ in range(1 + WAITING_MAX):
            present.enter_context(limit.room())
        with pytest.raises(Unreachable, match="TUNNEL_CONNECTIONS_MAX=1 "), limit.room():
            pass
    assert counters.refused == {Refusal.FULL: 1}
    with limit.room():
        pass


async def test_a_slot_comes_back_from_a_wait_that_was_given_up():
    limit = ConnectionLimit(1, 10, Counters())
    async with tasks(3, holder(limit)):
        pass
    async with asyncio.timeout(PATIENCE), limit.slot():
        pass


async def test_full_slots_are_logged_once_and_free_ones_again(caplog):
    caplog.set_level("INFO")
    limit = ConnectionLimit(10, 10, Counters())
    async with tasks(10, holder(limit)) as running:
        async with tasks(100, holder(limit)):
            pass
        for task in running[:3]:
            task.cancel()
        await asyncio.gather(*running[:3], return_exceptions=True)
        async with limit.slot():
            pass
    assert [record.message for record in caplog.records] == [
        "all connections are in use, new ones wait: raise TUNNEL_CONNECTIONS_MAX",
        "connections are free again",
    ]
