"""What a Spark task reads from the source: a Fetch in flight to every leader, and a bounded buffer a partition.

Reading runs ahead of writing by the buffers' size, so that fetching and committing overlap. The buffers and the
Fetches outlive a slice: nothing is read twice because Spark took a breath.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from appliance.errors import ApplianceError, BatchCorrupt, BrokerBusy, GapFound, PartitionStopped
from appliance.kafka import batch
from appliance.kafka.answer import failure
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.committed import committed
from appliance.kafka.fetch import Fetched, FetchLimits, Wanted, fetch
from appliance.kafka.legacy import convert
from appliance.kafka.metadata import Metadata
from appliance.kafka.offsets import Bound, Partition, list_offsets
from appliance.kafka.outgoing import UNLIMITED, outgoing
from appliance.replicator.plan import Replica
from appliance.replicator.portion import Portion

_READ_AHEAD_BYTES = 32 * 1024 * 1024
"""What the buffers of a process hold together, by and large: see ``Intake._room_of``."""

_RESPONSE_BYTES = 8 * 1024 * 1024
_ASKED_BYTES = range(64 * 1024, 2 * 1024 * 1024)
"""The least and the most that a Fetch asks for of one partition."""

_IDLE_WAIT = 0.5
_HURRIED_WAIT = 0.01
"""How long a Fetch waits while a full buffer is left out: it may have room long before new records come to others."""

_BACKOFF = 0.2
_METADATA_AGE = 30.0

Notice = Callable[[str, ApplianceError | None], None]
"""Told what is wrong with what; with an error of None, that it is over."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a partition may be read: batches of at most so many bytes, and not to the offset of a refused one."""

    batch_bytes: int = UNLIMITED
    refused_at: int | None = None
    refusal: str = ""


@dataclass(slots=True, eq=False)
class _Buffer:
    """One partition: where the next Fetch begins, and what waits to be taken."""

    replica: Replica
    position: int
    epoch: int
    arrived: asyncio.Event
    limits: Limits
    portions: deque[Portion] = field(default_factory=deque)
    bytes: int = 0
    stopped: PartitionStopped | None = None

    def wanted(self, size: int) -> Wanted:
        return Wanted(_key(self.replica), self.replica.source_id, self.position, size, self.epoch)


class Intake:
    """The buffers of the partitions that the lanes of one process copy, filled while its event loop runs."""

    def __init__(self, source: KafkaCluster, notice: Notice) -> None:
        self._cluster = source
        self._notice = notice
        self._buffers: dict[Partition, _Buffer] = {}
        self._bytes = 0
        self._metadata: Metadata | None = None
        self._metadata_at = 0.0
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._fetchers: dict[int, asyncio.Task[None]] = {}
        self._failing: set[str] = set()
        self._router = asyncio.create_task(self._route(), name="intake-router")

    async def close(self) -> None:
        """End all reading."""
        tasks = [self._router, *self._fetchers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def read(self, replica: Replica, position: int, epoch: int, arrived: asyncio.Event, limits: Limits) -> None:
        """Read a partition from ``position`` on; what was buffered of it, or is on its way, counts no more.

        ``epoch`` is the leader epoch of what was read before the position, -1 when that is not known. ``arrived`` is
        set whenever there is something to ``take``, or to be told by ``stopped``.
        """
        self.forget([replica])
        self._buffers[_key(replica)] = _Buffer(replica, position, epoch, arrived, limits)
        self._changed.set()
        self._room.set()

    def forget(self, replicas: Iterable[Replica]) -> None:
        """Read these partitions no more."""
        for replica in replicas:
            buffer = self._buffers.pop(_key(replica), None)
            self._bytes -= buffer.bytes if buffer is not None else 0

    def take(self, replicas: Iterable[Replica], limit: int) -> list[Portion]:
        """What is there of these partitions now, up to about ``limit`` bytes, in turn."""
        buffers = [self._buffers[_key(replica)] for replica in replicas if _key(replica) in self._buffers]
        taken: list[Portion] = []
        size = 0
        while size < limit and (buffers := [buffer for buffer in buffers if buffer.portions]):
            for buffer in buffers:
                portion = buffer.portions.popleft()
                buffer.bytes -= portion.bytes
                size += portion.bytes
                taken.append(portion)
        self._bytes -= size
        if taken:
            self._room.set()
        return taken

    def waiting(self, replicas: Iterable[Replica]) -> bool:
        """Whether anything of these partitions can be taken now."""
        return any((b := self._buffers.get(_key(replica))) is not None and bool(b.portions) for replica in replicas)

    def full(self, replicas: Iterable[Replica]) -> bool:
        """Whether so much of one of these partitions waits to be taken that it is not fetched until then."""
        buffers = (self._buffers.get(_key(replica)) for replica in replicas)
        return any(buffer is not None and bool(buffer.portions) and not self._room_of(buffer) for buffer in buffers)

    def _room_of(self, buffer: _Buffer) -> int:
        """How many bytes may be fetched into a buffer; 0 when it is full.

        One buffer may hold half of what is left of the whole (the dynamic threshold of shared-memory switches,
        Choudhury and Hahne 1998): a partition alone gets much, many get their shares, and what one lane cannot get rid
        of leaves room for the others. An empty buffer may always be filled.
        """
        room = (_READ_AHEAD_BYTES - self._bytes) // 2 - buffer.bytes
        if room < _ASKED_BYTES.start:
            return 0 if buffer.portions else _ASKED_BYTES.start
        return min(room, _ASKED_BYTES.stop)

    def stopped(self, replicas: Iterable[Replica]) -> list[tuple[Replica, PartitionStopped]]:
        """Of these partitions the ones that can be read no further, all that was read before taken; each told once."""
        told = []
        for replica in replicas:
            buffer = self._buffers.get(_key(replica))
            if buffer is not None and buffer.stopped is not None and not buffer.portions:
                self.forget([replica])
                told.append((replica, buffer.stopped))
        return told

    def _stop(self, buffer: _Buffer, reason: PartitionStopped) -> None:
        buffer.stopped = reason
        buffer.arrived.set()

    def _wrong(self, subject: str, error: ApplianceError) -> None:
        self._failing.add(subject)
        self._notice(subject, error)

    def _well(self, subject: str) -> None:
        if subject in self._failing:
            self._failing.discard(subject)
            self._notice(subject, None)

    async def _route(self) -> None:
        """Keep one fetcher for each broker that leads a partition."""
        while True:
            # Before the look, so that what comes while it waits for an answer is looked at again.
            self._changed.clear()
            try:
                await self._look_up()
                self._well("source")
            except ApplianceError as error:
                self._wrong("source", error)
                await asyncio.sleep(_BACKOFF)
                continue
            leaders = {self._leader(buffer) for buffer in self._buffers.values() if buffer.stopped is None}
            for node in leaders - {-1}:
                fetcher = self._fetchers.get(node)
                if fetcher is None or fetcher.done():
                    self._fetchers[node] = asyncio.create_task(self._fetch_from(node), name=f"intake-{node}")
            try:
                async with asyncio.timeout(_BACKOFF if -1 in leaders else _METADATA_AGE):
                    await self._changed.wait()
            except TimeoutError:
                self._metadata = None

    async def _look_up(self) -> None:
        topics = {buffer.replica.source_topic for buffer in self._buffers.values()}
        known = self._metadata
        if known is not None and all(topic in known.topics for topic in topics):
            return
        self._metadata = await self._cluster.metadata(sorted(topics))
        for buffer in self._buffers.values():
            topic = self._metadata.topics.get(buffer.replica.source_topic)
            if topic is not None and topic.id != buffer.replica.source_id:
                self._stop(buffer, PartitionStopped(f"source topic {topic.name} was deleted and made anew"))

    def _leader(self, buffer: _Buffer) -> int:
        if self._metadata is None or buffer.stopped is not None:
            return -1
        return self._metadata.leader(*_key(buffer.replica))

    async def _fetch_from(self, node: int) -> None:
        while led := [buffer for buffer in self._buffers.values() if self._leader(buffer) == node]:
            wanted = {buffer: room for buffer in led if (room := self._room_of(buffer))}
            if not wanted:
                self._room.clear()
                await self._room.wait()
                continue
            try:
                await self._fetch(node, wanted, _IDLE_WAIT if len(wanted) == len(led) else _HURRIED_WAIT)
            except ApplianceError as error:
                self._lost(f"source broker {node}", error)
                await asyncio.sleep(_BACKOFF)
                # Only a fetcher that has ended is followed by another one, and it does so now.
                self._changed.set()
                return
            self._well(f"source broker {node}")

    async def _fetch(self, node: int, wanted: Mapping[_Buffer, int], wait: float) -> None:
        connection = await self._cluster.broker(node, "fetch")
        limits = FetchLimits(_RESPONSE_BYTES, wait)
        everything = await fetch(connection, [buffer.wanted(room) for buffer, room in wanted.items()], limits)
        asked = {_key(buffer.replica): buffer for buffer in wanted}
        for fetched in everything:
            buffer = asked[fetched.partition]
            if self._buffers.get(fetched.partition) is not buffer:
                continue
            if fetched.error is ErrorCode.offset_out_of_range:
                self._stop(buffer, await self._out_of_range(buffer))
            elif fetched.diverges_at is not None:
                self._stop(buffer, _truncated(buffer, fetched.diverges_at))
            else:
                self._absorb(buffer, fetched)

    def _absorb(self, buffer: _Buffer, fetched: Fetched) -> None:
        if fetched.error is not ErrorCode.none:
            self._failed(buffer, fetched)
            return
        try:
            portion = _portion(buffer, fetched)
        except BatchCorrupt as error:
            self._stop(buffer, PartitionStopped(f"{_name(buffer.replica)} from offset {buffer.position}: {error}"))
            return
        if portion is None:
            return
        self._well(f"{_name(buffer.replica)} at its leader")
        refused_at = buffer.limits.refused_at
        if refused_at is not None and portion.next_offset > refused_at:
            portion = portion.before(refused_at)
            self._stop(buffer, PartitionStopped(buffer.limits.refusal))
        buffer.position, buffer.epoch = portion.next_offset, portion.leader_epoch
        buffer.portions.append(portion)
        buffer.bytes += portion.bytes
        self._bytes += portion.bytes
        buffer.arrived.set()
        # The broker serves a full response from the front of the request: who was served goes to the back.
        key = fetched.partition
        self._buffers[key] = self._buffers.pop(key)

    def _failed(self, buffer: _Buffer, fetched: Fetched) -> None:
        name = _name(buffer.replica)
        error = failure(fetched.error, f"fetch {name} from offset {buffer.position}")
        if isinstance(error, BrokerBusy):
            self._lost(f"{name} at its leader", error)
        else:
            self._stop(buffer, PartitionStopped(str(error)))

    async def _out_of_range(self, buffer: _Buffer) -> PartitionStopped:
        """Which end of the log the position lies beyond."""
        name, position, key = _name(buffer.replica), buffer.position, _key(buffer.replica)
        assert self._metadata is not None
        start = (await list_offsets(self._cluster, self._metadata, [key], Bound.START))[key]
        if position < start:
            what = f"offsets {position} to {start - 1} were deleted at the source before they were copied"
            return GapFound(f"{name}: {what}", position, start, "deleted at the source")
        return _truncated(buffer, (await list_offsets(self._cluster, self._metadata, [key], Bound.END))[key])

    def _lost(self, subject: str, error: ApplianceError) -> None:
        """A leader is gone, or leads no more: ask the metadata anew."""
        if time.monotonic() - self._metadata_at > _BACKOFF:
            self._metadata_at = time.monotonic()
            self._metadata = None
        self._changed.set()
        self._wrong(subject, error)


def _portion(buffer: _Buffer, fetched: Fetched) -> Portion | None:
    """What a partition's share of an answer brings; None when that is nothing new."""
    batches = list(batch.split(fetched.records, convert))
    while batches and batches[0].header.last_offset < buffer.position:
        batches.pop(0)
    if not batches:
        return None
    copied = tuple(outgoing(committed(batches, fetched.aborted), buffer.position, buffer.limits.batch_bytes))
    last = batches[-1].header
    return Portion(buffer.replica, copied, last.last_offset + 1, last.leader_epoch)


def _truncated(buffer: _Buffer, offset: int) -> PartitionStopped:
    return PartitionStopped(
        f"{_name(buffer.replica)}: the source's log was truncated: from offset {offset} on it does not hold what was "
        f"copied up to {buffer.position}"
    )


def _name(replica: Replica) -> str:
    return f"{replica.source_topic}-{replica.partition}"


def _key(replica: Replica) -> Partition:
    return replica.source_topic, replica.partition
