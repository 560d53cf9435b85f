"""The stopwatch: measures a copy as it becomes visible at the destination, in the same way for every program.

Twenty-five times a second it asks the destination for the last stable offset of each partition of the copy. A
``read_committed`` consumer may read up to it; for a writer without transactions it is the end of the replicated log.
The sum of the offsets counts transaction markers too, so it only shows the progress: the records have to be counted
afterwards.

The time runs from the first look that saw some of the copy to the look that saw the last of it. The records of the
first look do not count, because they took time before it. Fetching, compressing, writing and committing are in the
time; the start of the programs, finding the topic and making its copy are not. Data that was read ahead is not in it
either: up to 16 MiB for each of our tasks, and reading is the cheaper part.
"""

import asyncio
import math
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from appliance.errors import ApplianceError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import Metadata
from appliance.settings.values import Side
from bench.lib.clusters import kafka_cluster
from testbed.cluster import Cluster
from testbed.process import OwnedProcess

_DEADLINE = 600.0
_STALLED_SECONDS = 60.0
UNBEGUN_SECONDS = 180.0
"""Longest start of a program on a busy machine, in seconds; the slowest take a minute."""
_INTERVAL = 0.04
_SETTLED_SECONDS = 1.5


class Look(NamedTuple):
    """The number of offsets of the copy that were seen at one time, in seconds of one clock."""

    at: float
    offsets: int


@dataclass(slots=True)
class Timeline:
    """The progress of a copy of ``records``, watched since ``since``.

    ``looks`` are the last that saw nothing, and each that saw more.
    """

    records: int
    since: float
    looks: list[Look] = field(default_factory=lambda: [Look(math.nan, 0)])

    def __str__(self) -> str:
        return f"{self.offsets} offsets of {self.records} records"

    def looked(self, now: float, offsets: int) -> None:
        """Note an answer at ``now``: the sum of the partitions' last stable offsets."""
        if offsets == 0:
            self.looks = [Look(now, 0)]
        elif offsets != self.offsets:
            self.looks.append(Look(now, offsets))

    def settled(self, now: float) -> bool:
        """True when all the records may be there, and nothing has come for a while."""
        return self.offsets >= self.records and now - self.ended > _SETTLED_SECONDS

    def stalled(self, now: float) -> bool:
        """True when nothing new of the copy was seen for so long that no more will come."""
        newest = self.ended if self.offsets else self.since
        return self.offsets < self.records and now - newest > self.patience

    @property
    def patience(self) -> float:
        """Seconds without progress before a copy counts as stalled: more before it has begun."""
        return _STALLED_SECONDS if self.offsets else UNBEGUN_SECONDS

    @property
    def offsets(self) -> int:
        """The number of offsets seen."""
        return self.looks[-1].offsets

    @property
    def begun(self) -> float:
        """The last time at which nothing was seen."""
        return self.looks[0].at

    @property
    def ended(self) -> float:
        """The time at which the last of it was seen."""
        return self.looks[-1].at

    def rate(self, whole: float, after: float = 0.0) -> float:
        """The rate, where ``whole`` is all of the copy, from when a share ``after`` of it had been seen.

        A copy that one look saw whole took the time since the look before.
        """
        last = self.looks[-1]
        first = next((look for look in self.looks[1:-1] if look.offsets >= after * last.offsets), self.looks[-2])
        return whole * (last.offsets - first.offsets) / last.offsets / (last.at - first.at)


async def watch(cluster: Cluster, topic: str, records: int, copying: OwnedProcess) -> Timeline:
    """Look at ``topic``, which need not exist yet, until it is settled; begin before the first record comes.

    Raises:
        ProcessFailed: the process that copies ended, did not begin, copied no more, or was not done in time.
    """
    timeline = Timeline(records, time.perf_counter())
    try:
        async with (
            kafka_cluster(cluster, Side.DESTINATION) as destination,
            asyncio.timeout(_DEADLINE),
        ):
            await _look_until_settled(_View(destination, topic), timeline, copying)
    except TimeoutError as error:
        raise copying.failure(f"did not copy all within {_DEADLINE:g} s: {timeline}") from error
    return timeline


async def until_begun(cluster: Cluster, topic: str, copying: OwnedProcess, timeout: float) -> None:
    """Wait until some of ``topic``, which need not exist yet, is seen.

    Raises:
        ProcessFailed: the process that copies ended, or ``timeout`` seconds passed, before that.
    """
    async with kafka_cluster(cluster, Side.DESTINATION) as destination:
        view = _View(destination, topic)

        async def begun() -> bool:
            return bool(await view.offsets())

        await copying.wait_until(begun, timeout, f"copy a record to topic {topic}")


class _View:
    """The visible end of a topic that may not exist yet."""

    def __init__(self, cluster: KafkaCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._metadata: Metadata | None = None

    async def offsets(self) -> int | None:
        """The sum of its last stable offsets; 0 while there is no topic, None when there is no answer now.

        Raises:
            ApplianceError: there will be none.
        """
        try:
            return await self._offsets()
        except ApplianceError as error:
            if not error.retriable:
                raise
            self._metadata = None  # somebody else may lead it
            return None

    async def _offsets(self) -> int:
        known = self._metadata or await self._cluster.metadata([self._topic])
        if self._topic not in known.topics:
            return 0
        self._metadata = known
        partitions = [(self._topic, number) for number in range(len(known.topics[self._topic].leaders))]
        return sum((await list_offsets(self._cluster, known, partitions, Bound.STABLE_END)).values())


async def _look_until_settled(view: _View, timeline: Timeline, copying: OwnedProcess) -> None:
    while not timeline.settled(time.perf_counter()):
        copying.require_running()
        offsets = await view.offsets()
        if offsets is not None:
            timeline.looked(time.perf_counter(), offsets)
        if timeline.stalled(time.perf_counter()):
            raise copying.failure(f"copied nothing for {timeline.patience:g} s: {timeline}")
        await asyncio.sleep(_INTERVAL)
