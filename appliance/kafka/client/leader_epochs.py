"""OffsetForLeaderEpoch (KIP-101, KIP-320): up to which offset a log holds what its leaders of an epoch wrote."""

from collections.abc import Collection, Mapping

from kio.schema.errors import ErrorCode
from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderPartition, OffsetForLeaderTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from appliance.errors import ApplianceError
from appliance.kafka.client.by_leader import ask_leaders, by_topic
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.protocol.answer import failure
from appliance.kafka.protocol.metadata import Metadata, Partition

_CONSUMER = BrokerId(-1)


async def epoch_ends(
    cluster: Cluster, metadata: Metadata, epochs: Mapping[Partition, int]
) -> tuple[dict[Partition, int], dict[Partition, ApplianceError]]:
    """Find where each partition's log ends that was written up to a leader epoch; with the errors of the others.

    That is the log's end, its last markers included, when no later leader has written anything. It is -1 where the log
    knows of no epoch as old as that. A broker that has no such request answers nothing.
    """
    ends: dict[Partition, int] = {}
    refused: dict[Partition, ApplianceError] = {}

    async def ask(leader: Connection, led: Collection[Partition]) -> None:
        request = _request(metadata, {partition: epochs[partition] for partition in led})
        if not leader.offers(int(request.__api_key__), int(request.__version__)):
            return
        answer = await leader.call(request, OffsetForLeaderEpochResponse)
        for topic in answer.topics:
            for result in topic.partitions:
                partition = (str(topic.topic), int(result.partition))
                if result.error_code is ErrorCode.none:
                    ends[partition] = int(result.end_offset)
                else:
                    doing = f"look up the end of a leader epoch of {partition[0]}-{partition[1]}"
                    refused[partition] = failure(result.error_code, doing)

    return ends, await ask_leaders(cluster, metadata, epochs, ask) | refused


def _request(metadata: Metadata, epochs: Mapping[Partition, int]) -> OffsetForLeaderEpochRequest:
    topics = tuple(
        OffsetForLeaderTopic(
            topic=TopicName(name),
            partitions=tuple(
                OffsetForLeaderPartition(
                    partition=i32(number),
                    current_leader_epoch=i32(metadata.leader_epoch(name, number)),
                    leader_epoch=i32(epochs[name, number]),
                )
                for number in numbers
            ),
        )
        for name, numbers in by_topic(epochs).items()
    )
    return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=topics)
