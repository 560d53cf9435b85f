"""The order of events: start everything, copy a part of the input, kill the replicator and start it again.

::

    produce one half, and copy it -> SIGKILL in the middle -> produce the other half -> start again -> copy the rest
    -> measure the latency at rest -> read both sides again, and compare
"""

import asyncio
import functools
import time

from appliance.errors import ApplianceError, ProcessFailed
from appliance.link.model.naming import REGISTRY, Naming
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from demo.arrivals import Arrivals, follow
from demo.display import Display
from demo.input import COPIED, PROBE_RECORDS, TOPICS, Input
from demo.latency import Latency, measure
from demo.producing import produce
from demo.report import DemoReport
from demo.running_link import RunningLink
from demo.verification import CopyCheck, verify
from testbed.tasks import Reached, end, failure_of, in_thread, watched

_KILLED_AT = 0.15
"""Share of all records at the destination at which the replicator is killed; less than a third of the first half."""
_STALLED_SECONDS = 90.0
_CHECK_SECONDS = 0.02


class Scenario:
    """One run of the scenario on a link that has not been started.

    Args:
        link: the link, not yet started.
        records: the number of records to copy.
        display: shows the progress.
    """

    def __init__(self, link: RunningLink, records: int, display: Display) -> None:
        self._link = link
        self._display = display
        self._input = Input(records, now=int(time.time() * 1000))
        self._arrivals = Arrivals()
        self._restarts = 0

    async def run(self) -> DemoReport:
        """Run the scenario.

        Raises:
            ApplianceError: it could not run to its end.
        """
        begin = time.monotonic()
        with self._display.step("starting two Kafka clusters, and making topics"):
            await self._link.start_clusters()
        with self._display.step("starting the link: source, destination, replicator"):
            await self._link.start_link()
        try:
            rate, latency, check = await watched(self._play(), self._link.watch())
        except ApplianceError:
            # The failure may come from a process that has ended, whose error says more.
            self._link.require_running()
            raise
        return DemoReport(
            records=check.records,
            bytes=check.bytes,
            restarts=self._restarts,
            records_per_second=rate,
            latency_p50_ms=latency.p50_ms,
            latency_p99_ms=latency.p99_ms,
            seconds=time.monotonic() - begin,
            differences=check.differences,
            unasked=check.unasked,
        )

    async def _play(self) -> tuple[float, Latency, CopyCheck]:
        copies = [topic.copy for topic in TOPICS]
        work = functools.partial(follow, self._link.destination_client, copies, self._arrivals)
        following = asyncio.create_task(in_thread(work), name="arrivals")
        try:
            rate = await watched(self._copy(), failure_of(following))
        finally:
            await end(following)
        return rate, await self._measure(), await self._verify()

    async def _copy(self) -> float:
        """Copy all but the probe, with a kill in the middle; return the rate of the copy after the kill."""
        total = self._input.records - PROBE_RECORDS
        producing = asyncio.create_task(self._produce(second_half=False), name="first half")
        try:
            with self._display.step("copying, until SIGKILL", int(total * _KILLED_AT)) as reached:
                await watched(self._arrived(int(total * _KILLED_AT), reached), failure_of(producing))
                await self._link.appliances.kill_replicator()
            self._display.say(f"replicator killed with {self._arrivals.count:,} of {total:,} records copied")
            await producing
        finally:
            await end(producing)
        await self._produce(second_half=True)
        with self._display.step("copying the rest, after the restart", total) as reached:
            begin = time.monotonic()
            await self._link.appliances.start_replicator()
            self._restarts += 1
            await self._arrived(total, reached)
        return self._arrivals.rate_since(begin)

    async def _produce(self, second_half: bool) -> None:
        ordinal = "second" if second_half else "first"
        total = sum(len(self._input.half(topic, second_half)) for topic in TOPICS)
        client = self._link.source_client
        with self._display.step(f"producing the {ordinal} half", total) as reached:
            await in_thread(functools.partial(produce, client, self._input, second_half, reached))

    async def _arrived(self, count: int, reached: Reached) -> None:
        """Wait until that many records have arrived.

        Raises:
            ProcessFailed: no record came for a while; the text has the tail of the replicator's log.
        """
        latest, moved = self._arrivals.count, time.monotonic()
        while (there := self._arrivals.count) < count:
            if there != latest:
                latest, moved = there, time.monotonic()
            elif time.monotonic() > moved + _STALLED_SECONDS:
                what = f"copied nothing for {_STALLED_SECONDS:g} s, {there:,} of {count:,} records are there"
                raise self._link.appliances.replicator.failure(what)
            reached(there)
            await asyncio.sleep(_CHECK_SECONDS)
        reached(count)

    async def _measure(self) -> Latency:
        with self._display.step("measuring the latency", PROBE_RECORDS) as reached:
            clients = self._link.source_client, self._link.destination_client
            return await in_thread(functools.partial(measure, *clients, reached))

    async def _verify(self) -> CopyCheck:
        naming = Naming.of(read_settings(self._link.env_file, Role.REPLICATOR, process={}))
        with self._display.step("comparing both sides, record by record", 2 * self._input.records) as reached:
            check = await verify(
                self._link.source_client,
                self._link.destination_client,
                {topic.name: topic.copy for topic in COPIED},
                [naming.positions_topic, naming.offsets_topic, REGISTRY],
                reached,
            )
        if check.records != self._input.records:
            raise ProcessFailed(f"the source has {check.records:,} records, {self._input.records:,} were produced")
        return check
