"""Times a copy as it becomes visible at the destination, in the same way for every program.

Twenty-five times a second it asks the destination for the last stable offset of each partition of the copy. A
``read_committed`` consumer may read up to it; for a writer without transactions it is the end of the replicated log.
The sum of the offsets includes transaction markers, so it only shows the progress. The records must be counted
afterwards.

The time runs from the first answer that shows a part of the copy to the answer that shows its end. The records of the
first answer do not count, because they took time before it. The time includes fetching, compressing, writing and
committing. It excludes the start of the programs, finding the topic and making its copy. It also excludes data that was
read ahead: up to 16 MiB for each of our tasks, and reading is the cheaper part.
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
"""Maximum start time of a program on a busy machine, in seconds; the slowest take a minute."""
_INTERVAL = 0.04
_SETTLED_SECONDS = 1.5


class Answer(NamedTuple):
    """The visible offsets of the copy at one time, in seconds of one clock."""

    at: float
    offsets: int


@dataclass(slots=True)
class Timeline:
    """The progress of a copy of ``records`` records, watched since ``since``.

    ``answers`` are the last one without offsets, and each one with more than before.
    """

    records: int
    since: float
    answers: list[Answer] = field(default_factory=lambda: [Answer(math.nan, 0)])

    def __str__(self) -> str:
        return f"{self.offsets} offsets of {self.records} records"

    def answered(self, now: float, offsets: int) -> None:
        """Note an answer at ``now``: the sum of the partitions' last stable offsets."""
        if offsets == 0:
            self.answers = [Answer(now, 0)]
        elif offsets != self.offsets:
            self.answers.append(Answer(now, offsets))

    def settled(self, now: float) -> bool:
        """True when all records may be there, and no more have come for a while."""
        return self.offsets >= self.records and now - self.ended > _SETTLED_SECONDS

    def stalled(self, now: float) -> bool:
        """True when the copy has made no progress for so long that no more will come."""
        newest = self.ended if self.offsets else self.since
        return self.offsets < self.records and now - newest > self.stalled_after

    @property
    def stalled_after(self) -> float:
        """Seconds without progress until a copy counts as stalled; more before it has begun."""
        return _STALLED_SECONDS if self.offsets else UNBEGUN_SECONDS

    @property
    def offsets(self) -> int:
        """The number of visible offsets."""
        return self.answers[-1].offsets

    @property
    def begun(self) -> float:
        """The last time at which no offset was visible."""
        return self.answers[0].at

    @property
    def ended(self) -> float:
        """The time at which the newest progress was seen."""
        return self.answers[-1].at

    def rate(self, total: float, after: float = 0.0) -> float:
        """The rate of a copy of ``total``, from the time at which a share ``after`` of it was visible.

        A copy that became visible in one answer took the time since the previous answer.
        """
        last = self.answers[-1]
        first = next((one for one in self.answers[1:-1] if one.offsets >= after * last.offsets), self.answers[-2])
        return total * (last.offsets - first.offsets) / last.offsets / (last.at - first.at)


async def watch(cluster: Cluster, topic: str, records: int, copying: OwnedProcess) -> Timeline:
    """Answer at ``topic``, which need not exist yet, until it is settled; begin before the first record comes."""
    timeline = Timeline(records, time.perf_counter())
    try:
        async with (
            kafka_cluster(cluster, Side.DESTINATION) as destination,
            asyncio.timeout(_DEADLINE),
        ):
            await _watch_until_settled(_View(destination, topic), timeline, copying)
    except TimeoutError as error:
        raise copying.failure(f"did not copy all within {_DEADLINE:g} s: {timeline}") from error
    return timeline


async def until_begun(cluster: Cluster, topic: str, copying: OwnedProcess, timeout: float) -> None:
    """Wait until a record of ``topic``, which need not exist yet, is visible."""
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
        """The sum of its last stable offsets; 0 while the topic does not exist, None if there is no answer now."""
        try:
            return await self._offsets()
        except ApplianceError as error:
            if not error.retriable:
                raise
            self._metadata = None  # another broker may lead it now
            return None

    async def _offsets(self) -> int:
        known = self._metadata or await self._cluster.metadata([self._topic])
        if self._topic not in known.topics:
            return 0
        self._metadata = known
        partitions = known.topics[self._topic].partitions
        return sum((await list_offsets(self._cluster, known, partitions, Bound.STABLE_END)).values())


async def _watch_until_settled(view: _View, timeline: Timeline, copying: OwnedProcess) -> None:
    while not timeline.settled(time.perf_counter()):
        copying.require_running()
        offsets = await view.offsets()
        if offsets is not None:
            timeline.answered(time.perf_counter(), offsets)
        if timeline.stalled(time.perf_counter()):
            raise copying.failure(f"copied nothing for {timeline.stalled_after:g} s: {timeline}")
        await asyncio.sleep(_INTERVAL)
