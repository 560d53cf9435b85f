"""Reads the committed batches of one partition, Fetch by Fetch, and waits for leaders that move."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import TypeVar

from appliance.errors import BatchCorrupt, BrokerBusy, BrokerRefused, PartitionStopped, Unreachable
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.fetch import FetchedPartition, FetchLimits, fetch_partition
from appliance.kafka.client.offsets import Bound, list_offsets, offsets_at
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records import batch
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.committed import committed
from appliance.kafka.records.decompression import within_memory
from appliance.kafka.records.legacy import convert
from appliance.link.client.origins import Origins
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.naming import Naming
from appliance.logs.model.span import Span

_FETCH_BYTES = 4 * 1024 * 1024
_DELETED = "OFFSET_OUT_OF_RANGE"
_PAUSE_MAX = 0.2

Answer = TypeVar("Answer")

Choose = Callable[[list[Batch]], Awaitable[list[Batch]]]
"""Returns those of some batches that are to be compared."""


class WriterFilter:
    """Chooses what a link copies, and what it has copied, where other links write too; ``None`` chooses everything."""

    def __init__(self, source: KafkaCluster, destination: KafkaCluster, naming: Naming) -> None:
        self._at_source = Origins(source)
        self._at_destination = Origins(destination)
        self._link = naming.replicator
        self.at_source: Choose | None = self._not_of_links if naming.sharing.tells_origins else None
        self.in_copy: Choose | None = self._of_this_link if naming.sharing.others_write else None

    async def _not_of_links(self, batches: list[Batch]) -> list[Batch]:
        await self._at_source.learn([each.header for each in batches])
        return [each for each in batches if not self._at_source.producers.is_copy(each.header)]

    async def _of_this_link(self, batches: list[Batch]) -> list[Batch]:
        await self._at_destination.learn([each.header for each in batches])
        ours = self._at_destination.producers.of_link(self._link)
        return [each for each in batches if each.header.producer_id in ours]


async def spans(cluster: KafkaCluster, metadata: Metadata, partitions: Collection[Partition]) -> dict[Partition, Span]:
    """The spans of the logs, from the start of each to its last stable offset."""
    starts = await list_offsets(cluster, metadata, partitions, Bound.START)
    ends = await list_offsets(cluster, metadata, partitions, Bound.STABLE_END)
    return {partition: Span(starts[partition], max(starts[partition], ends[partition])) for partition in partitions}


@dataclass(slots=True)
class LogReader:
    """Reads a partition from ``position`` on; ``stable_end`` is its last stable offset as the last Fetch saw it.

    ``aborted`` are the batches of aborted transactions that the last Fetch brought. ``purpose`` names the connection:
    readers that share one wait for each other. Without ``choose`` all are compared. ``decodes`` bounds each read.
    """

    cluster: KafkaCluster
    partition: Partition
    purpose: str
    position: int
    choose: Choose | None = None
    decodes: bool = False
    stable_end: int = field(init=False)
    aborted: list[Batch] = field(default_factory=list)
    _metadata: Metadata | None = None

    def __post_init__(self) -> None:
        self.stable_end = self.position

    def at(self, position: int) -> "LogReader":
        """Another reader of the same partition, with another position."""
        return LogReader(self.cluster, self.partition, self.purpose, position, self.choose, self.decodes)

    async def read(self, wait: float = 0.0, known_end: int = 0) -> list[Batch]:
        """The batches of one Fetch; the position moves past them, and past markers and aborted batches.

        Nothing comes, and the position stays, when all stable records have been read; then the broker may wait for more
        for ``wait`` seconds. A log that ends below its ``known_end`` is as busy as one without a leader. Transient
        errors are retried for three quarters of a minute.

        Raises:
            PartitionStopped: the log no longer holds the position.
        """
        return await self._patiently(lambda metadata: self._read(metadata, wait, known_end))

    async def until(self, end: int, wait: float = 0.0) -> AsyncIterator[list[Batch]]:
        """The batches up to an offset, which the last ones may pass, Fetch by Fetch; raises as ``read``."""
        while self.position < end:
            yield await self.read(wait, end)

    async def offset_at(self, timestamp: int) -> int | None:
        """The offset of the first committed record from ``timestamp`` on, in milliseconds; None: there is none.

        A negative time, that of a record without one, is older than all: its offset is the position.
        """
        if timestamp < 0:
            return self.position
        offsets = await self._patiently(
            lambda metadata: offsets_at(self.cluster, metadata, [self.partition], timestamp),
        )
        return offsets[self.partition]

    async def _patiently(self, ask: Callable[[Metadata], Awaitable[Answer]]) -> Answer:
        async def attempt() -> Answer:
            metadata, self._metadata = self._metadata or await self.cluster.metadata([self.partition[0]]), None
            answer = await ask(metadata)
            self._metadata = metadata
            return answer

        return await retry_while_busy(attempt, lambda error: error.retriable, _PAUSE_MAX)

    async def _read(self, metadata: Metadata, wait: float, known_end: int) -> list[Batch]:
        limits, where = FetchLimits(_FETCH_BYTES, wait), f"{self} of the {self.cluster.settings.side} cluster"
        try:
            fetched = await fetch_partition(self.cluster, metadata, self.partition, self.position, self.purpose, limits)
            batches, following = self._batches(fetched, known_end)
            batches, following = within_memory(batches, following) if self.decodes else (batches, following)
            batches = await self.choose(batches) if self.choose else batches
        except BrokerRefused as error:
            if error.code != _DELETED:
                raise
            text = f"{where} holds no offset {self.position} any more, retention was faster: verify again"
            raise PartitionStopped(text) from error
        except (BatchCorrupt, PartitionStopped) as error:
            raise type(error)(f"{where}: {error}") from error
        self.position = following
        return batches

    def _batches(self, answer: FetchedPartition, known_end: int) -> tuple[list[Batch], int]:
        """The committed batches, and the offset that follows all batches."""
        batches = [each for each in answer.batches(convert) if each.header.last_offset >= self.position]
        self.stable_end = answer.stable_end
        self.aborted = []
        if not batches:
            if self.position < self.stable_end:  # a quota can make a broker answer with nothing
                raise Unreachable(f"the leader of {self} brings nothing from offset {self.position} on")
            if self.position < known_end:
                text = f"{self} ended at offset {known_end}, and its leader has it end at {self.position} now"
                raise BrokerBusy(text, "OFFSET_NOT_AVAILABLE")
            return [], self.position
        visible = list(committed(batches, answer.aborted))
        for each in visible:
            batch.verify(each)
        visible_at = {each.header.base_offset for each in visible}
        others = [each for each in batches if each.header.base_offset not in visible_at]
        self.aborted = [each for each in others if not each.header.attributes & batch.CONTROL]
        return visible, batches[-1].header.last_offset + 1

    def __str__(self) -> str:
        return str(self.partition)
