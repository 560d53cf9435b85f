"""The stopwatch: a copy as it becomes visible at the destination, the same for whoever copies.

Twenty-five times a second the destination is asked for the last stable offset of each partition of the copy: that is
what a consumer at ``read_committed`` may read, and for a writer without transactions it is the end of what is
replicated. The offsets' sum counts transaction markers among the records, so it says *when* something changed and not
how much there is: the time runs from the last look that saw nothing to the look that saw the last change, and whoever
asks for it must count the records afterwards.

The time holds all that happens between the first record and the last: fetching, compressing, writing, committing. It
does not hold the start of the programs, finding the topic, making its copy, and what was fetched and written before the
first record became visible. Its error is below one look's interval and round trip, against whoever is measured.
"""

import asyncio
import math
import time
from dataclasses import dataclass

from appliance.demo.cluster import Cluster
from appliance.demo.process import OwnedProcess
from appliance.errors import ApplianceError
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.metadata import Metadata
from appliance.kafka.offsets import Bound, list_offsets
from appliance.settings.values import Side
from bench.clusters import kafka_cluster

_DEADLINE = 600.0
_INTERVAL = 0.04
_SETTLED_SECONDS = 1.5


@dataclass(slots=True)
class Timeline:
    """When a copy of ``records`` began and ended to be seen; times in seconds of one clock."""

    records: int
    empty_at: float = math.nan
    changed_at: float = math.nan
    offsets: int = 0

    def looked(self, now: float, offsets: int) -> None:
        """A look's answer came ``now``: the sum of the partitions' last stable offsets."""
        if offsets == 0:
            self.empty_at = now
        if offsets != self.offsets:
            self.offsets, self.changed_at = offsets, now

    def settled(self, now: float) -> bool:
        """Whether all the records may be there, and nothing has come for a while."""
        return self.offsets >= self.records and now - self.changed_at > _SETTLED_SECONDS

    @property
    def seconds(self) -> float:
        """From the first record seen to the last."""
        return self.changed_at - self.empty_at


async def watch(cluster: Cluster, topic: str, records: int, copying: OwnedProcess) -> Timeline:
    """Looks at ``topic``, which need not exist yet, until it is settled; begin before the first record comes.

    Raises:
        ProcessFailed: the process that copies ended, or was not done in time.
    """
    timeline = Timeline(records)
    try:
        async with (
            kafka_cluster(cluster, Side.DESTINATION) as destination,
            asyncio.timeout(_DEADLINE),
        ):
            await _look_until_settled(_View(destination, topic), timeline, copying)
    except TimeoutError as error:
        done = f"{timeline.offsets} offsets of {records} records"
        raise copying.failure(f"did not copy all within {_DEADLINE:g} s: {done}") from error
    return timeline


class _View:
    """What can be seen of a topic that may not exist yet."""

    def __init__(self, cluster: KafkaCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._metadata: Metadata | None = None

    async def offsets(self) -> int:
        """The sum of its last stable offsets; 0 while there is no topic.

        Raises:
            BrokerBusy, Unreachable: no answer now.
        """
        known = self._metadata or await self._cluster.metadata([self._topic])
        if self._topic not in known.topics:
            return 0
        self._metadata = known
        partitions = [(self._topic, number) for number in range(len(known.topics[self._topic].leaders))]
        return sum((await list_offsets(self._cluster, known, partitions, Bound.STABLE_END)).values())

    def forget(self) -> None:
        """Ask anew who leads it."""
        self._metadata = None


async def _look_until_settled(view: _View, timeline: Timeline, copying: OwnedProcess) -> None:
    while not timeline.settled(time.perf_counter()):
        copying.require_running()
        try:
            offsets = await view.offsets()
        except ApplianceError as error:
            if not error.retriable:
                raise
            view.forget()
        else:
            timeline.looked(time.perf_counter(), offsets)
        await asyncio.sleep(_INTERVAL)
