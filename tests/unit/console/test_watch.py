import asyncio
from dataclasses import replace

from appliance.clock import now_ms
from appliance.console.watch import LinkWatch
from appliance.status.model.document import STALE_SECONDS
from appliance.status.model.running import Running
from appliance.status.model.snapshot import Snapshot
from tests.support.clock import Clock
from tests.support.facts import NOW, snapshot


def watched(clock: Clock) -> LinkWatch:
    async def collect() -> Snapshot:
        return snapshot(now=now_ms())

    async def ask_replicator() -> Running:
        return Running()

    async def ask_tunnel() -> str:
        return ""

    return LinkWatch(collect, ask_replicator, ask_tunnel, clock)


def test_case_281_an_old_snapshot_is_old_although_the_time_was_set_back() -> None:
    clock = Clock(1000.0)
    watch = watched(clock)
    assert not watch.fresh
    watch.add(snapshot(now=NOW))
    assert watch.fresh
    clock.now += STALE_SECONDS + 1
    assert not watch.fresh
    watch.add(replace(snapshot(), at=now_ms() - 60_000))
    assert not watch.fresh


async def test_case_280_who_looks_seldom_waits_for_the_next_look_at_the_clusters() -> None:
    clock = Clock(1000.0)
    watch = watched(clock)
    watch.add(snapshot(now=NOW))
    clock.now += 60
    running = asyncio.create_task(watch.run())
    await watch.renew()
    assert watch.fresh
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
