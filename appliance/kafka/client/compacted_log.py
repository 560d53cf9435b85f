"""A partition of a compacted topic of ours, followed: all of it at first, then the records that are new."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from appliance.errors import raise_first
from appliance.kafka.client.fetch import FetchLimits, committed_records, fetch_partition
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, epoch_ends, list_offsets
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records.records import Record

_LIMITS = FetchLimits(4 * 1024 * 1024, wait=0.1)


class Progress(Protocol):
    """The offset up to which a log was read, and the epoch of its leader then; -1: nothing has been read yet."""

    read_to: int
    read_epoch: int


@dataclass(slots=True)
class _Progress:
    read_to: int = -1
    read_epoch: int = -1


def _nothing() -> None:
    pass


@dataclass(slots=True)
class CompactedLog:
    """The reader of one partition: ``take`` gets its committed records, in order, and again those that it refuses.

    ``forget`` is called when the log was truncated or recreated, before it is read from its start again.
    """

    cluster: Cluster
    partition: Partition
    take: Callable[[Sequence[Record]], object]
    forget: Callable[[], object] = _nothing
    progress: Progress = field(default_factory=_Progress)
    topic_id: UUID | None = None

    async def refresh(self, doing: str) -> bool:
        """Read what is new in the topic of this name; False if there is none now. ``doing`` begins a refusal's text."""
        metadata = await self.cluster.metadata([self.partition[0]])
        topic = metadata.topics.get(self.partition[0])
        if topic is None or topic.id != self.topic_id:
            self.topic_id = topic.id if topic else None
            self._restart()
        if topic is None:
            return False
        check(topic.error, doing)
        await self.read(metadata)
        return True

    async def read(self, metadata: Metadata) -> None:
        """Read what is new, up to the last stable offset."""
        end = (await list_offsets(self.cluster, metadata, [self.partition], Bound.STABLE_END))[self.partition]
        if self.progress.read_to > end or await self._has_diverged(metadata):
            self._restart()
        self.progress.read_epoch = metadata.leader_epoch(*self.partition)
        while self.progress.read_to < end:
            await self.read_some(metadata)

    async def read_some(self, metadata: Metadata) -> None:
        """Read what is new by one Fetch."""
        records, following = await read_records(self.cluster, metadata, self.partition, self.progress.read_to)
        self.take(records)
        self.progress.read_to = following  # not earlier: a refused record is met again

    async def follow(self, metadata: Metadata, purpose: str, wait: float) -> bool:
        """Read what is new by one Fetch, which waits for it; True if all was read that is decided.

        The connection is of this ``purpose`` alone: a Fetch that waits delays what comes after it.
        """
        if self.progress.read_to > 0 and await self._has_diverged(metadata):
            self._restart()
        offset, limits = self.progress.read_to, FetchLimits(_LIMITS.response_bytes, wait)
        if offset < 0:
            offset = (await list_offsets(self.cluster, metadata, [self.partition], Bound.START))[self.partition]
        fetched = await fetch_partition(self.cluster, metadata, self.partition, offset, purpose, limits)
        records, following = committed_records(fetched, offset)
        self.take(records)
        self.progress.read_to, self.progress.read_epoch = following, metadata.leader_epoch(*self.partition)
        return following >= fetched.stable_end

    async def _has_diverged(self, metadata: Metadata) -> bool:
        """True if the present leader's log does not hold what was read from a former one: it may be as long again."""
        progress = self.progress
        if progress.read_to <= 0 or progress.read_epoch in (-1, metadata.leader_epoch(*self.partition)):
            return False
        ends, failures = await epoch_ends(self.cluster, metadata, {self.partition: progress.read_epoch})
        raise_first(failures.values())
        return ends.get(self.partition, progress.read_to) < progress.read_to

    def _restart(self) -> None:
        self.progress.read_to = self.progress.read_epoch = -1
        self.forget()


async def read_records(
    cluster: Cluster, metadata: Metadata, partition: Partition, offset: int
) -> tuple[list[Record], int]:
    """One Fetch of the committed records from ``offset`` on, -1 the log's start, and the offset to continue from."""
    if offset < 0:
        offset = (await list_offsets(cluster, metadata, [partition], Bound.START))[partition]
    return committed_records(await fetch_partition(cluster, metadata, partition, offset, "positions", _LIMITS), offset)
