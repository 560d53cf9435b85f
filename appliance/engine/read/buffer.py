"""The buffer of a partition's chunks, and the queue of the buffers with chunks for their lane."""

import asyncio
import traceback
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from appliance.engine.model.chunk import Chunk
from appliance.errors import ApplianceError, BatchCorrupt, PartitionStopped, ProducersLost
from appliance.kafka.client.configs import WriteLimits
from appliance.kafka.client.fetch import FetchedPartition, WantedPartition
from appliance.kafka.protocol.metadata import NOBODY, UNKNOWN_EPOCH, Partition
from appliance.kafka.records.batch import NO_END, Batch
from appliance.kafka.records.committed import committed
from appliance.kafka.records.decompression import LIMIT
from appliance.kafka.records.legacy import convert
from appliance.kafka.records.outgoing import UNLIMITED, Outgoing, outgoing
from appliance.link.client.origins import Origins
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica
from appliance.link.model.stops import FOLLOWING, StopKind


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on reading a partition: the largest batch in bytes, and the offsets where batches are ``cut``.

    With a ``refusal``, reading stops at the last of these. ``refused_by`` is the topic that refused a batch, with its
    limits then: the copy's, or that of the dead letters. ``position`` is that then, or since it has stopped.
    """

    batch_bytes: int = UNLIMITED
    cut: tuple[int, ...] = ()
    refusal: str = ""
    refused_by: tuple[str, WriteLimits | None] = ("", None)
    position: Position | None = None

    def hold_at(self, position: Position) -> bool:
        """True unless the position has passed the refused batch, or the operator has moved it or let it go on."""
        before, at = self.position, position.next_offset
        return before is not None and before.stopped == position.stopped and before.next_offset <= at <= self.cut[-1]


class ReadyQueue(asyncio.Event):
    """The buffers that are ready for a lane; set whenever there are chunks to take, or a partition stops.

    A look costs by the partitions with chunks, not by the idle ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self._filled: OrderedDict[Buffer, None] = OrderedDict()
        self._stopped: dict[Buffer, PartitionStopped] = {}

    @property
    def buffers_with_chunks(self) -> Collection["Buffer"]:
        """The buffers with chunks to take now."""
        return self._filled.keys()

    def take(self, limit: int) -> list[Chunk]:
        """Take the ready chunks, up to about ``limit`` bytes, of each partition in turn, also from call to call."""
        chunks: list[Chunk] = []
        size = 0
        while size < limit and self._filled:
            buffer, _ = self._filled.popitem(last=False)
            chunk = buffer.take(limit - size)
            size += chunk.bytes
            chunks.append(chunk)
            if buffer.chunks:
                self._filled[buffer] = None
        return chunks

    def take_stops(self) -> list[tuple[Replica, PartitionStopped]]:
        """The partitions that can be read no further and whose chunks are all taken; each is returned once."""
        stops = [buffer for buffer in self._stopped if buffer not in self._filled]
        return [(buffer.replica, self._stopped.pop(buffer)) for buffer in stops]

    def has_more(self, buffer: "Buffer") -> None:
        """A buffer has chunks to take."""
        self._filled[buffer] = None
        self.set()

    def stops(self, buffer: "Buffer", reason: PartitionStopped) -> None:
        """A buffer will get no more chunks."""
        self._stopped[buffer] = reason
        self.set()

    def forget(self, buffer: "Buffer") -> None:
        """Forget a buffer that is no longer wanted."""
        self._filled.pop(buffer, None)
        self._stopped.pop(buffer, None)


@dataclass(slots=True, eq=False)
class Buffer:
    """One partition: the offset of the next Fetch, and the chunks that wait to be taken.

    ``epoch`` is the leader epoch of the last batch read; ``leader`` is the node that is asked now, as the leader of
    ``leader_epoch``. ``doubted``: a leader has refused the partition, and none has served it since. With ``origins``,
    batches that a link wrote are dropped.
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
    origins: Origins | None = None
    chunks: deque[Chunk] = field(default_factory=deque)
    bytes: int = 0
    key: Partition = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.replica.log

    def __str__(self) -> str:
        return self.replica.name

    @property
    def subject(self) -> str:
        """The subject under which its reading's problems are logged."""
        return f"{self} at its leader"

    def fetch_entry(self, size: int) -> WantedPartition:
        """The next request to the leader."""
        return WantedPartition(self.key, self.replica.source_id, self.position, size, self.epoch, self.leader_epoch)

    def absorb(self, fetched: FetchedPartition) -> int:
        """Add the chunk of a Fetch; the growth of the waiting bytes."""
        if self.limits.refusal and self.limits.cut[-1] == self.position:
            self.stop(PartitionStopped(self.limits.refusal))
            return 0
        try:
            chunk = self._chunk(fetched)
        except (BatchCorrupt, ProducersLost) as error:
            self.stop(unreadable(self, error))
            return 0
        if chunk is None:
            return 0
        self.position, self.epoch = chunk.next_offset, chunk.leader_epoch
        self.chunks.append(chunk)
        size = chunk.bytes
        self.bytes += size
        self.ready.has_more(self)
        return size

    def take(self, limit: int) -> Chunk:
        """The first waiting chunks, up to ``limit`` bytes but at least one batch."""
        chunk, rest = self.chunks.popleft().cut(limit)
        if rest is not None:
            self.chunks.appendleft(rest)
        self.bytes -= chunk.bytes
        return chunk

    def stop(self, reason: PartitionStopped) -> None:
        """Note that the partition can be read no further."""
        if not self.stopped:
            self.stopped = True
            self.ready.stops(self, reason)

    def _chunk(self, fetched: FetchedPartition) -> Chunk | None:
        """The chunk of a partition's share of an answer; None when it brings nothing new.

        The chunk ends where a new leader epoch begins, and the rest is fetched again: the position after any part of a
        chunk has the epoch of the batches before it (KIP-320). It ends before damaged bytes, too.
        """
        batches: list[Batch] = []
        try:
            for each in fetched.batches(convert):
                if batches or each.header.last_offset >= self.position:
                    batches.append(each)
        except BatchCorrupt as error:
            if not batches:  # it is the first one: a Fetch begins with the batch that has the position
                damaged = int.from_bytes(fetched.records[:8], signed=True)
                following = damaged if self.position < damaged < fetched.stable_end else self.position
                raise BatchCorrupt(f"{error}; {FOLLOWING} {following + 1}") from error
        if not batches:
            return None
        batches = [each for each in batches if each.header.leader_epoch == batches[0].header.leader_epoch]
        return self._copied(batches, fetched, batches[-1].header.last_offset + 1)

    def _copied(self, batches: Sequence[Batch], fetched: FetchedPartition, following: int) -> Chunk:
        """The chunk of batches before the offset ``following``; of the first of them, if some are damaged."""
        data = committed(batches, fetched.aborted)
        end = min(offset for offset in (*self.limits.cut, NO_END) if offset > self.position)
        dropped: list[tuple[int, int]] = []
        if self.origins is not None:
            data = self._without_copies(data, self.origins, dropped)
        copied, room = list[Outgoing](), 2 * LIMIT
        try:
            for each in outgoing(data, self.position, self.limits.batch_bytes, end):
                copied.append(each)
                if (room := room - each.memory) < 0:  # others wait while these are rebuilt: the rest is fetched again
                    end = each.next_offset
                    break
        except BatchCorrupt as error:
            traceback.clear_frames(error.__traceback__)  # they would keep the records
            if (half := len(batches) // 2) == 0:
                raise BatchCorrupt(f"{error}; {FOLLOWING} {max(following, self.position + 1)}") from error
            return self._copied(batches[:half], fetched, batches[half].header.base_offset)
        last = batches[-1].header
        own = tuple(each for each in dropped if self.position <= each[0] < end)
        return Chunk(self.replica, tuple(copied), min(last.last_offset + 1, end), last.leader_epoch, own)

    def _without_copies(
        self, batches: Iterable[Batch], origins: Origins, dropped: list[tuple[int, int]]
    ) -> Iterator[Batch]:
        """The batches that no link wrote; the others are added to ``dropped``."""
        for each in batches:
            if origins.producers.is_copy(each.header):
                dropped.append((each.header.base_offset, each.header.records))
            else:
                yield each


def unreadable(buffer: Buffer, error: ApplianceError) -> PartitionStopped:
    """The stop of a partition at records that cannot be copied, or of which nobody knows who wrote them."""
    unknown = f"{StopKind.WRITERS_UNKNOWN.words}: " if isinstance(error, ProducersLost) else ""
    return PartitionStopped(f"{buffer} from offset {buffer.position}: {unknown}{error}")
