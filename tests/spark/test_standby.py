"""Two replicators of one link: one copies, the other stands by, and takes over when the first is gone."""

import asyncio
import signal
from collections.abc import Callable
from typing import Any

import aiohttp
import psutil
import pytest

from testbed.process import OwnedProcess
from tests.support.link import Link
from tests.support.patience import PATIENCE
from tests.support.processes import family
from tests.support.rows import read_rows, until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

COPIES, STANDS_BY = r"replicator: copies host=", r"replicator: stands by: another replicator copies"
REASONS = {signal.SIGTERM: "was stopped", signal.SIGKILL: "is gone, or silent", signal.SIGSTOP: "is gone, or silent"}


@pytest.fixture
def orders(shared: Link) -> Link:
    """A new link with one source topic, ``orders``."""
    shared.clear()
    shared.make_topic(shared.orange, "orders", 2)
    return shared


async def both(orders: Link) -> tuple[OwnedProcess, OwnedProcess]:
    first = await orders.start("replicate", REPLICATOR_STANDBYS="1")
    await first.wait_for_line(COPIES, PATIENCE)
    second = await orders.start("replicate", REPLICATOR_STANDBYS="1")
    await second.wait_for_line(STANDS_BY, PATIENCE)
    return first, second


async def until_shown(replicator: OwnedProcess, path: str, wanted: Callable[[Any], bool]) -> Any:
    """What a replicator's page shows, once it is as wanted, with an answer 200."""
    address = await replicator.wait_for_address("status: listening", PATIENCE)
    async with asyncio.timeout(2 * PATIENCE), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"http://{address}{path}") as answer:
                told = await answer.json()
                if answer.status == 200 and wanted(told):
                    return told
            await asyncio.sleep(0.2)


def states(told: Any) -> list[str]:
    return sorted(each["state"] for each in told["replicators"]["members"])


@pytest.mark.parametrize("end", [*REASONS], ids=lambda end: end.name)
async def test_a_standby_goes_on_where_the_active_one_has_ended_and_both_say_who_copies(
    orders: Link, end: signal.Signals
) -> None:
    async with orders.tunnel():
        first, second = await both(orders)
        try:
            orders.produce("orders", 100)
            await until_rows(orders.grape, "orders.copy", 100, 0)
            for replicator, stands_by in ((first, False), (second, True)):
                told = await until_shown(replicator, "/status", lambda told: states(told) == ["active", "standing by"])
                assert (told["stands_by"], bool(told["problems_unknown"]), told["troubles"]) == (
                    stands_by,
                    stands_by,
                    [],
                )
                await until_shown(replicator, "/health", lambda told: told["state"] == "copied")
            for process in [psutil.Process(first.pid)] if end is signal.SIGTERM else family(first.pid):
                process.send_signal(end)
            orders.produce("orders", 100)
            await until_rows(orders.grape, "orders.copy", 200, 0)
            await second.wait_for_line(COPIES, PATIENCE)
            told = await until_shown(
                second, "/status", lambda told: not told["stands_by"] and states(told) == ["active"]
            )
            assert told["replicators"]["last_hand_over"]["reason"].endswith(REASONS[end])
            assert [each.startswith("standby: REPLICATOR_STANDBYS=1: active: ") for each in told["troubles"]] == [True]
        finally:
            await first.kill()
            await second.stop()  # a killed one would be a member for ten seconds more, in the next test
    assert read_rows(orders.orange, "orders", 0) == read_rows(orders.grape, "orders.copy", 0)
