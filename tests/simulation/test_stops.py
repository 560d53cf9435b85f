"""Stops of a task while a broker of the destination does not answer."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.simulation.scenario import Link, copied

FOR_LONG = 1000.0
"""Seconds of the simulation, longer than anything may take."""


def hang(link: Link, when: Callable[..., bool], seconds: float = FOR_LONG) -> None:
    """Have the destination keep what ``when`` is true for waiting: a connection for a purpose, or a request."""
    cluster: Any = link.process._destination
    broker = cluster.broker

    async def hanging(node: int, purpose: str = "control") -> Any:
        if when(purpose):
            await asyncio.sleep(seconds)
        connection = await broker(node, purpose)
        call = connection.call

        async def hanging_call(request: Any, *rest: Any) -> Any:
            if when(type(request).__name__):
                await asyncio.sleep(seconds)
            return await call(request, *rest)

        connection.call = hanging_call
        return connection

    cluster.broker = hanging


def stopped_while_hanging(what: str, seconds: float) -> Link:
    """A link whose task was copying, met that, was told to stop, and had so many seconds since."""
    link = Link()
    log = link.source.make("aaa", 1).logs[0]
    link.process.start(link.replicas())
    link.write(log)
    link.go_on(2)
    assert copied(link, "aaa.copy") == 1
    hang(link, what.__eq__)
    link.write(log)
    link.go_on(1)
    assert link.process.runs
    link.process._stop()
    link.go_on(seconds)
    return link


def test_case_62_a_stop_does_not_wait_for_a_broker_that_is_dialled() -> None:
    # Docker had killed the container by the time that the dials of all lanes had failed.
    link = stopped_while_hanging("produce", 0.5)
    assert link.process.task.done()
    assert link.faults() == {}


def test_case_64_a_stop_waits_ten_seconds_for_a_transaction_to_end_and_not_for_all_its_timeout() -> None:
    # EndTxn may take a minute, and Docker gives half of one.
    link = stopped_while_hanging("EndTxnRequest", 9.5)
    assert not link.process.task.done()
    link.go_on(1)
    assert link.process.task.done()
    assert "has not ended 10 s after the stop" in link.faults()["lane 0"]


def test_case_530_a_stop_in_the_midst_of_a_lanes_start_lets_its_transaction_end() -> None:
    # It was cut off. A change of lanes behind it was not visible until it timed out, and nothing was copied so long.
    link = Link()
    link.source.make("aaa", 1)
    hang(link, "EndTxnRequest".__eq__, 1.0)
    link.process.start(link.replicas())
    while not link.positions.logs[0].open:
        link.go_on(0.1)
    link.process._stop()
    link.go_on(0.5)
    assert not link.process.task.done()
    link.go_on(2)
    assert link.process.task.done()
    assert not link.positions.logs[0].open
    assert link.faults() == {}
