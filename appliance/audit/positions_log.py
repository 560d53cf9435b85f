"""The positions topic as the audit reads it: by one Fetch to each leader, of the lanes that are behind."""

from collections.abc import AsyncIterator, Collection, Mapping

from kio.schema.errors import ErrorCode

from appliance.audit.model.entries import LogRange, log_range
from appliance.audit.model.state import LaneProgress
from appliance.errors import BrokerBusy
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.fetch import FetchLimits, Wanted, fetch
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition, Topic
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.naming import Naming

_LANE_BYTES = 1024 * 1024
_LIMITS = FetchLimits(4 * _LANE_BYTES, wait=0)


class PositionsLog:
    """The lanes' logs of a link; ``copy_of`` gives the name of a topic's copy."""

    def __init__(self, destination: KafkaCluster, naming: Naming) -> None:
        self.copy_of = naming.destination
        self._cluster = destination
        self._name = naming.positions_topic
        self._metadata = Metadata("", NOBODY, {}, {})

    async def topic(self) -> Topic | None:
        """The topic as it is now; None before the link is made."""
        self._metadata = await self._cluster.metadata([self._name])
        topic = self._metadata.topics.get(self._name)
        if topic is None:
            return None
        check(topic.error, f"look for {self._name}")
        if -1 in topic.leaders:
            raise BrokerBusy(f"a partition of {self._name} has no leader now", "LEADER_NOT_AVAILABLE")
        return topic if topic.leaders else None

    async def checkpoint(self, lane: int) -> LaneCheckpoint:
        """The lane's positions now."""
        checkpoint = LaneCheckpoint()
        await peek_checkpoint(self._cluster, self._name, lane, checkpoint)
        return checkpoint

    async def ranges(
        self, topic: Topic, lanes: Mapping[int, LaneProgress], behind: Collection[int]
    ) -> AsyncIterator[tuple[int, LogRange | None, bool]]:
        """The next range of each lane that is ``behind``, and True if its log ends there.

        None in its place: the log ends before the offset that was read last, or did, and holds other records there; or
        it begins after that offset.
        """
        partitions = {lane: Partition(topic.name, lane) for lane in sorted(behind)}
        unread = [partitions[lane] for lane in behind if lanes[lane].read_to < 0]
        starts = await list_offsets(self._cluster, self._metadata, unread, Bound.START) if unread else {}
        offsets = {lane: starts.get(partition, lanes[lane].read_to) for lane, partition in partitions.items()}
        for leader in sorted({topic.leaders[lane] for lane in behind}):
            connection = await self._cluster.broker(leader, "audit")
            wanted = [
                Wanted(partition, topic.id, offsets[lane], _LANE_BYTES, lanes[lane].leader_epoch, topic.epochs[lane])
                for lane, partition in partitions.items()
                if topic.leaders[lane] == leader
            ]
            for fetched in await fetch(connection, wanted, _LIMITS):
                lane = fetched.partition.number
                if fetched.error is ErrorCode.offset_out_of_range or fetched.diverges is not None:
                    yield lane, None, False
                    continue
                check(fetched.error, f"fetch {fetched.partition}")
                read = log_range(fetched.batches(), fetched.aborted, offsets[lane])
                yield lane, read, read.following >= fetched.stable_end
