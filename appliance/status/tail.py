"""The newest records of the positions topic, by one Fetch to each leader; and the newest heartbeat.

Each collection continues in the positions topic at the end of the last one. It fences no lane. Only the newest record
of a key counts, so of the thousands of records between two collections, only the last of each partition is decoded.
"""

from bisect import bisect_right
from collections.abc import Mapping

from appliance.errors import ApplianceError, BrokerRefused
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.fetch import (
    FetchedPartition,
    FetchLimits,
    WantedPartition,
    committed_records,
    fetch,
    fetch_partition,
)
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import NOWHERE, Metadata, Partition, Topic
from appliance.kafka.records.committed import marker_times
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.checkpoint_records import newest
from appliance.link.model.mirror_records import Heartbeat, decode_heartbeat
from appliance.link.model.position import Position

_LANE_BYTES = 1024 * 1024
_LIMITS = FetchLimits(4 * _LANE_BYTES, wait=0)


class PositionsTail:
    """The checkpoint of every lane, as far as the positions topic has been read."""

    def __init__(self, cluster: KafkaCluster, topic: str) -> None:
        self.checkpoints: tuple[LaneCheckpoint, ...] = ()
        self.committed_at: dict[Partition, int] = {}
        """When the newest position of a source partition was committed, by the destination's clock, in milliseconds."""
        self._cluster = cluster
        self._topic = topic
        self._id = NOWHERE

    @property
    def stable_ends(self) -> Mapping[Partition, int]:
        """The last stable offset of each lane's partition, as of the last ``advance``."""
        return {Partition(self._topic, lane): checkpoint.read_to for lane, checkpoint in enumerate(self.checkpoints)}

    async def advance(self, metadata: Metadata) -> None:
        """Read the newly committed records, to their end; ``metadata`` is the destination's.

        If it is cancelled at any await, the next call continues there. Without the topic there are no checkpoints.
        """
        topic = metadata.topics.get(self._topic)
        if topic is None:
            self._forget()
            return
        check(topic.error, f"look for {self._topic}")
        if topic.id != self._id or len(topic.leaders) != len(self.checkpoints):
            self._forget()
            starts = await list_offsets(self._cluster, metadata, topic.partitions, Bound.START)
            self._id = topic.id
            self.checkpoints = tuple(LaneCheckpoint(read_to=starts[lane]) for lane in topic.partitions)
        try:
            for leader in set(topic.leaders):
                led = {lane for lane, leads in enumerate(topic.leaders) if leads == leader}
                await self._catch_up(topic, leader, led)
        except BrokerRefused as error:
            if not error.retriable:
                self._forget()  # the log no longer holds the next offset, but still the newest record of each key
            raise

    def _forget(self) -> None:
        self._id, self.checkpoints = NOWHERE, ()
        self.committed_at.clear()

    async def _catch_up(self, topic: Topic, leader: int, behind: set[int]) -> None:
        connection = await self._cluster.broker(leader, "positions")
        while behind:
            wanted = [(lane, self.checkpoints[lane].read_to) for lane in sorted(behind)]
            requests = (
                WantedPartition(
                    Partition(self._topic, lane), self._id, offset, _LANE_BYTES, leader_epoch=topic.epochs[lane]
                )
                for lane, offset in wanted
            )
            answers = await fetch(connection, requests, _LIMITS)
            behind -= {fetched.partition.number for fetched in answers if self._take(fetched)}

    def _take(self, fetched: FetchedPartition) -> bool:
        """Add the fetched records of a lane; True if there are no more."""
        checkpoint = self.checkpoints[fetched.partition.number]
        check(fetched.error, f"fetch {fetched.partition}")
        records, following = committed_records(fetched, checkpoint.read_to)
        markers = marker_times(fetched.records)
        for offset, remembered in newest(records):
            checkpoint.add(remembered)
            if isinstance(remembered, tuple) and isinstance(remembered[1], Position):
                self._note_commit(remembered[0], offset, markers)
        checkpoint.read_to = following
        return checkpoint.read_to >= fetched.stable_end

    def _note_commit(self, partition: Partition, offset: int, markers: list[tuple[int, int]]) -> None:
        """Note the time of the marker that follows the position's record; a later Fetch may hold it, and then none."""
        self.committed_at.pop(partition, None)  # that of an older position
        following = bisect_right(markers, (offset, 0))
        if following < len(markers):
            self.committed_at[partition] = markers[following][1]


_HEARTBEAT_LIMITS = FetchLimits(64 * 1024, wait=0)


async def newest_heartbeat(cluster: KafkaCluster, metadata: Metadata, topic: str) -> Heartbeat | None:
    """The last heartbeat in ``topic``; None where there is none, or the cluster does not let us read it."""
    partition = Partition(topic, 0)
    if topic not in metadata.topics:
        return None
    try:
        end = (await list_offsets(cluster, metadata, [partition], Bound.END))[partition]
        if end == 0:
            return None
        fetched = await fetch_partition(cluster, metadata, partition, end - 1, "heartbeats", _HEARTBEAT_LIMITS)
        records, _ = committed_records(fetched, end - 1)
        return decode_heartbeat(records[-1]) if records else None
    except ApplianceError:
        return None  # it is only a measurement; everything else is known without it
