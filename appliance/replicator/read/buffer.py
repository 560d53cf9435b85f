"""The buffer of a partition's chunks, and the queue of the buffers that have something for their lane."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass, field

from appliance.errors import BatchCorrupt, PartitionStopped
from appliance.kafka.client.fetch import Fetched, Wanted
from appliance.kafka.protocol.metadata import NOBODY, UNKNOWN_EPOCH, Partition
from appliance.kafka.records import batch
from appliance.kafka.records.committed import committed
from appliance.kafka.records.legacy import convert
from appliance.kafka.records.outgoing import UNLIMITED, outgoing
from appliance.link.model.replicas import Replica
from appliance.replicator.model.chunk import Chunk


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on reading a partition: the largest batch in bytes, and the offset of a batch that was refused."""

    batch_bytes: int = UNLIMITED
    refused_at: int | None = None
    refusal: str = ""


class ReadyQueue(asyncio.Event):
    """The buffers that are ready for a lane: set whenever there is something to be taken, or a partition stops.

    What it costs to look is by the partitions that have something, however many have nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._filled: OrderedDict[Buffer, None] = OrderedDict()
        self._stopped: dict[Buffer, PartitionStopped] = {}

    @property
    def filled(self) -> Collection["Buffer"]:
        """The buffers from which something can be taken now."""
        return self._filled.keys()

    def take(self, limit: int) -> list[Chunk]:
        """Take what is there now, up to about ``limit`` bytes, of each partition in turn, also from call to call."""
        taken: list[Chunk] = []
        size = 0
        while size < limit and self._filled:
            buffer, _ = self._filled.popitem(last=False)
            chunk = buffer.take(limit - size)
            size += chunk.bytes
            taken.append(chunk)
            if buffer.chunks:
                self._filled[buffer] = None
        return taken

    def stopped(self) -> list[tuple[Replica, PartitionStopped]]:
        """The partitions that can be read no further, all that was read before taken; each told once."""
        told = [buffer for buffer in self._stopped if buffer not in self._filled]
        return [(buffer.replica, self._stopped.pop(buffer)) for buffer in told]

    def has_more(self, buffer: "Buffer") -> None:
        """Something can be taken from a buffer."""
        self._filled[buffer] = None
        self.set()

    def stops(self, buffer: "Buffer", reason: PartitionStopped) -> None:
        """A buffer will have no more than it has."""
        self._stopped[buffer] = reason
        self.set()

    def forget(self, buffer: "Buffer") -> None:
        """Forget a buffer that is not wanted any more."""
        self._filled.pop(buffer, None)
        self._stopped.pop(buffer, None)


@dataclass(slots=True, eq=False)
class Buffer:
    """One partition: where the next Fetch begins, and what waits to be taken.

    ``epoch`` is the leader epoch of what was read last; ``leader`` is the node that is asked now, as the one
    of ``leader_epoch``. ``doubted``: a leader has refused it, and none has served it since.
    """

    replica: Replica
    position: int
    epoch: int
    ready: ReadyQueue
    limits: Limits
    stopped: bool = False
    leader: int = NOBODY
    leader_epoch: int = UNKNOWN_EPOCH
    doubted: bool = False
    chunks: deque[Chunk] = field(default_factory=deque)
    bytes: int = 0
    key: Partition = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.replica.source

    def __str__(self) -> str:
        return self.replica.name

    @property
    def subject(self) -> str:
        """The name of its reading, where problems are told."""
        return f"{self} at its leader"

    def wanted(self, size: int) -> Wanted:
        """The next request to the leader."""
        return Wanted(self.key, self.replica.source_id, self.position, size, self.epoch, self.leader_epoch)

    def absorb(self, fetched: Fetched) -> int:
        """Take in what a Fetch brought; the bytes that wait to be taken more than before."""
        try:
            chunk = self._chunk(fetched)
        except BatchCorrupt as error:
            self.stop(PartitionStopped(f"{self} from offset {self.position}: {error}"))
            return 0
        if chunk is None:
            return 0
        refused_at = self.limits.refused_at
        if refused_at is not None and chunk.next_offset > refused_at:
            chunk = chunk.before(refused_at)
            self.stop(PartitionStopped(self.limits.refusal))
        self.position, self.epoch = chunk.next_offset, chunk.leader_epoch
        self.chunks.append(chunk)
        size = chunk.bytes
        self.bytes += size
        self.ready.has_more(self)
        return size

    def take(self, limit: int) -> Chunk:
        """The first of what waits, up to ``limit`` bytes but at least one batch."""
        chunk, rest = self.chunks.popleft().cut(limit)
        if rest is not None:
            self.chunks.appendleft(rest)
        self.bytes -= chunk.bytes
        return chunk

    def stop(self, reason: PartitionStopped) -> None:
        """Note that no more can be read of the partition."""
        if not self.stopped:
            self.stopped = True
            self.ready.stops(self, reason)

    def _chunk(self, fetched: Fetched) -> Chunk | None:
        """The chunk of a partition's share of an answer; None when that is nothing new.

        Where a new leader epoch begins, the chunk ends, and what follows is fetched again: the position after any
        part of a chunk has the epoch of what was read before it (KIP-320).
        """
        batches = list(batch.split(fetched.records, convert))
        while batches and batches[0].header.last_offset < self.position:
            batches.pop(0)
        if not batches:
            return None
        batches = [each for each in batches if each.header.leader_epoch == batches[0].header.leader_epoch]
        copied = tuple(outgoing(committed(batches, fetched.aborted), self.position, self.limits.batch_bytes))
        last = batches[-1].header
        return Chunk(self.replica, copied, last.last_offset + 1, last.leader_epoch)
