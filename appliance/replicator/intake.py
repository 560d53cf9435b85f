"""What a Spark task reads from the source: a Fetch in flight to every leader, and a bounded buffer a partition.

Reading runs ahead of writing by the buffers' size, so that fetching and committing overlap. The buffers and the
Fetches outlive a slice: nothing is read twice because Spark took a breath.
"""

import asyncio
import time
from collections.abc import Iterable

from appliance.errors import ApplianceError, PartitionStopped
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.metadata import NOBODY, Metadata
from appliance.kafka.offsets import Partition
from appliance.replicator.buffer import Arrivals, Buffer, Limits
from appliance.replicator.failing import Failing, Notice
from appliance.replicator.fetcher import Fetcher
from appliance.replicator.plan import Replica
from appliance.replicator.portion import Portion
from appliance.replicator.read_ahead import ReadAhead

_BACKOFF = 0.2
_SHARE = 0.2
"""How much of the time may go into looking for leaders while there are none: metadata of many topics take long."""

_METADATA_AGE = 300.0
"""A leader says when it is none any more; so all topics are looked at only to find those that were made anew."""


class Intake:
    """The buffers of the partitions that the lanes of one process copy, filled while its event loop runs."""

    def __init__(self, source: KafkaCluster, notice: Notice) -> None:
        self._cluster = source
        self._failing = Failing(notice)
        self._read_ahead = ReadAhead()
        self._buffers: dict[Partition, Buffer] = {}
        self._unplaced: dict[Partition, Buffer] = {}
        self._placed: dict[Partition, Fetcher] = {}
        self._fetchers: dict[int, Fetcher] = {}
        self._changed = asyncio.Event()
        self._tasks = [asyncio.create_task(self._route(), name="intake-router")]

    async def close(self) -> None:
        """End all reading."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def bound(self, bytes_per_second: int) -> None:
        """Read so much in a second, at most; 0: as much as comes."""
        self._read_ahead.allowance.bound(bytes_per_second)

    def read(self, replica: Replica, position: int, epoch: int, arrivals: Arrivals, limits: Limits) -> None:
        """Read a partition from ``position`` on; what was buffered of it, or is on its way, counts no more.

        ``epoch`` is the leader epoch of what was read before the position, -1 when that is not known. ``arrivals`` is
        the lane's: what is there to ``take``, or to be told by ``stopped``.
        """
        self.forget([replica])
        buffer = Buffer(replica, position, epoch, arrivals, limits)
        self._buffers[buffer.key] = self._unplaced[buffer.key] = buffer
        self._changed.set()

    def forget(self, replicas: Iterable[Replica]) -> None:
        """Read these partitions no more."""
        for replica in replicas:
            buffer = self._buffers.pop((replica.source_topic, replica.partition), None)
            if buffer is not None:
                self._take_away(buffer)
                buffer.arrivals.forget(buffer)
                self._read_ahead.bytes -= buffer.bytes
        self._look_again()

    def take(self, arrivals: Arrivals, limit: int) -> list[Portion]:
        """What is there for a lane now, up to about ``limit`` bytes, of each partition in turn."""
        taken = arrivals.take(limit)
        self._read_ahead.bytes -= sum(portion.bytes for portion in taken)
        if taken:
            self._look_again()
        return taken

    def full(self, arrivals: Arrivals) -> bool:
        """Whether so much of one of a lane's partitions waits to be taken that it is not fetched until then."""
        return not all(map(self._read_ahead.room, arrivals.filled))

    def stopped(self, arrivals: Arrivals) -> list[tuple[Replica, PartitionStopped]]:
        """Of a lane's partitions the ones that can be read no further, all that was read before taken; each once."""
        told = arrivals.stopped()
        self.forget(replica for replica, _ in told)
        return told

    def _look_again(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.look_again()

    def _release(self, buffers: Iterable[Buffer]) -> None:
        """A leader does not have these any more: find out, a moment later, which one has."""
        for buffer in buffers:
            self._placed.pop(buffer.key, None)
            self._unplaced[buffer.key] = buffer
        asyncio.get_running_loop().call_later(_BACKOFF, self._changed.set)

    def _take_away(self, buffer: Buffer) -> None:
        self._unplaced.pop(buffer.key, None)
        fetcher = self._placed.pop(buffer.key, None)
        if fetcher is not None:
            fetcher.drop(buffer)

    async def _route(self) -> None:
        """Give each buffer to the fetcher of the broker that leads its partition."""
        looked_for = self._unplaced
        while True:
            # Before the look, so that what comes while it waits for an answer is looked at again.
            self._changed.clear()
            began = time.monotonic()
            try:
                await self._look_up(list(looked_for.values()))
            except ApplianceError as error:
                self._failing.tell("source", error)
                await asyncio.sleep(_BACKOFF)
                continue
            self._failing.over("source")
            looked_for = self._unplaced
            pause = max(_BACKOFF, (time.monotonic() - began) / _SHARE) if self._unplaced else _METADATA_AGE
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                looked_for = self._unplaced or self._buffers

    async def _look_up(self, buffers: list[Buffer]) -> None:
        if not buffers:
            return
        metadata = await self._cluster.metadata(sorted({buffer.replica.source_topic for buffer in buffers}))
        for buffer in buffers:
            if self._buffers.get(buffer.key) is buffer and not buffer.stopped:
                self._place(buffer, metadata)

    def _place(self, buffer: Buffer, metadata: Metadata) -> None:
        topic = metadata.topics.get(buffer.replica.source_topic)
        leader = metadata.leader(*buffer.key)
        if topic is not None and topic.id != buffer.replica.source_id:
            self._take_away(buffer)
            buffer.stop(PartitionStopped(f"source topic {topic.name} was deleted and made anew"))
        elif leader != NOBODY and buffer.key in self._unplaced:
            del self._unplaced[buffer.key]
            self._placed[buffer.key] = fetcher = self._fetcher(leader)
            fetcher.add(buffer)

    def _fetcher(self, node: int) -> Fetcher:
        fetcher = self._fetchers.get(node)
        if fetcher is None:
            fetcher = Fetcher(node, self._cluster, self._read_ahead, self._failing, self._release)
            self._fetchers[node] = fetcher
            self._tasks.append(asyncio.create_task(fetcher.run(), name=f"intake-{node}"))
        return fetcher
