"""Reading the positions topic for the audit: one Fetch to each leader, of the lanes that are behind."""

from collections.abc import AsyncIterator, Collection, Mapping

from kio.schema.errors import ErrorCode

from appliance.audit.model.entries import Stretch, stretch
from appliance.audit.model.state import LaneKnown
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.fetch import FetchLimits, Wanted, fetch
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic

_LANE_BYTES = 1024 * 1024
_LIMITS = FetchLimits(4 * _LANE_BYTES, wait=0)


async def stretches(
    cluster: KafkaCluster, metadata: Metadata, topic: Topic, lanes: Mapping[int, LaneKnown], behind: Collection[int]
) -> AsyncIterator[tuple[int, Stretch | None, bool]]:
    """The next stretch of each lane that is ``behind``, and True if its log ends there.

    None in its place: the log ends before the offset that was read last, or did, and holds other records there; or it
    begins after that offset.
    """
    own = {lane: Partition(topic.name, lane) for lane in sorted(behind)}
    new = [own[lane] for lane in own if lanes[lane].read_to < 0]
    starts = await list_offsets(cluster, metadata, new, Bound.START)
    offsets = {lane: starts.get(own[lane], lanes[lane].read_to) for lane in own}
    for leader in sorted({topic.leaders[lane] for lane in behind}):
        connection = await cluster.broker(leader, "audit")
        wanted = [
            Wanted(own[lane], topic.id, offsets[lane], _LANE_BYTES, lanes[lane].leader_epoch, topic.epochs[lane])
            for lane in own
            if topic.leaders[lane] == leader
        ]
        for fetched in await fetch(connection, wanted, _LIMITS):
            lane = fetched.partition.number
            if fetched.error is ErrorCode.offset_out_of_range or fetched.diverges is not None:
                yield lane, None, False
                continue
            check(fetched.error, f"fetch {fetched.partition}")
            read = stretch(fetched.batches(), fetched.aborted, offsets[lane])
            yield lane, read, read.following >= fetched.stable_end
