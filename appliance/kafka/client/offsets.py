"""ListOffsets (KIP-79, KIP-98, KIP-207) and OffsetForLeaderEpoch (KIP-101): the bounds of logs, and of leaders' epochs.

Each request carries the leader epoch of the metadata that named the leader (KIP-320): a former leader, or one that does
not know yet that it leads, refuses it.
"""

import enum
from collections.abc import Collection, Mapping

from kio.schema.list_offsets.v6 import ListOffsetsRequest, ListOffsetsResponse
from kio.schema.list_offsets.v6.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderPartition, OffsetForLeaderTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from appliance.errors import BrokerBusy, PeerError, raise_first
from appliance.grouping import grouped
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.client.requests import ask_leaders
from appliance.kafka.protocol.answer import Answers
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.protocol.versions import offers

_READ_COMMITTED = 1
_CONSUMER = BrokerId(-1)


class Bound(enum.Enum):
    """A kind of offset; the value is the request's timestamp and isolation level."""

    START = (-2, 0)
    STABLE_END = (-1, 1)
    """The last stable offset: past it, no transaction is decided yet."""
    END = (-1, 0)
    """The high watermark: past it, nothing is replicated yet."""


async def list_offsets(
    cluster: Cluster, metadata: Metadata, partitions: Collection[Partition], bound: Bound
) -> dict[Partition, int]:
    """The offset of each partition at ``bound``; ``metadata`` says who leads them."""
    offsets, failures = await try_offsets(cluster, metadata, partitions, bound)
    raise_first(failures.values())
    return offsets


async def try_offsets(
    cluster: Cluster, metadata: Metadata, partitions: Collection[Partition], bound: Bound
) -> Answers[Partition, int]:
    """The offset of each partition at ``bound`` that is known, and the errors of the others.

    A partition without a leader, or with a silent one, does not affect others.
    """
    return await _ask(cluster, metadata, partitions, *bound.value)


async def _ask(
    cluster: Cluster, metadata: Metadata, partitions: Collection[Partition], timestamp: int, isolation: int
) -> Answers[Partition, int]:
    answers = Answers[Partition, int]({}, {})

    async def ask(leader: Connection, led: Collection[Partition]) -> None:
        response = await leader.call(_request(metadata, led, timestamp, isolation), ListOffsetsResponse)
        for topic in response.topics:
            for answer in topic.partitions:
                key = Partition(str(topic.name), int(answer.partition_index))
                answers.take(key, int(answer.offset), answer.error_code, f"list offsets of {key}")
        for key in led:
            if key not in answers.values:
                answers.failures.setdefault(key, PeerError(f"the leader of {key} leaves out its offset"))

    return Answers(answers.values, await ask_leaders(cluster, metadata, partitions, ask) | answers.failures)


def undecided(partition: Partition, offset: int) -> BrokerBusy:
    """The error for a partition in which a transaction is open below an offset."""
    text = f"{partition} has an open transaction below offset {offset}: see `kafka-transactions.sh find-hanging`"
    return BrokerBusy(text, "CONCURRENT_TRANSACTIONS")


async def offsets_at(
    cluster: Cluster, metadata: Metadata, partitions: Collection[Partition], timestamp: int
) -> dict[Partition, int | None]:
    """The offset of the first committed record that is not older than ``timestamp``, in milliseconds and not negative.

    None for a partition without such a record.
    """
    offsets, failures = await try_offsets_at(cluster, metadata, partitions, timestamp)
    raise_first(failures.values())
    return offsets


async def try_offsets_at(
    cluster: Cluster, metadata: Metadata, partitions: Collection[Partition], timestamp: int
) -> Answers[Partition, int | None]:
    """The same as far as they are known, and the errors of the others."""
    offsets, failures = await _ask(cluster, metadata, partitions, timestamp, _READ_COMMITTED)
    return Answers({partition: None if offset < 0 else offset for partition, offset in offsets.items()}, failures)


def _request(
    metadata: Metadata, partitions: Collection[Partition], timestamp: int, isolation: int
) -> ListOffsetsRequest:
    topics = tuple(
        ListOffsetsTopic(
            name=TopicName(topic),
            partitions=tuple(
                ListOffsetsPartition(
                    partition_index=i32(number),
                    current_leader_epoch=i32(metadata.leader_epoch(topic, number)),
                    timestamp=i64(timestamp),
                )
                for number in numbers
            ),
        )
        for topic, numbers in grouped(partitions).items()
    )
    return ListOffsetsRequest(replica_id=_CONSUMER, isolation_level=i8(isolation), topics=topics)


async def epoch_ends(cluster: Cluster, metadata: Metadata, epochs: Mapping[Partition, int]) -> Answers[Partition, int]:
    """Find the end of each partition's log up to a leader epoch; with the errors of the others.

    That is the log's end, its last markers included, when no later leader has written anything. It is -1 if the log
    knows no epoch as old as that. A broker without this request gives no answer.
    """
    ends = Answers[Partition, int]({}, {})

    async def ask(leader: Connection, led: Collection[Partition]) -> None:
        if not offers(leader.offered, OffsetForLeaderEpochRequest):
            return
        request = _epochs_request(metadata, {partition: epochs[partition] for partition in led})
        answer = await leader.call(request, OffsetForLeaderEpochResponse)
        for topic in answer.topics:
            for result in topic.partitions:
                partition = Partition(str(topic.topic), int(result.partition))
                doing = f"look up the end of a leader epoch of {partition}"
                ends.take(partition, int(result.end_offset), result.error_code, doing)

    return Answers(ends.values, await ask_leaders(cluster, metadata, epochs, ask) | ends.failures)


def _epochs_request(metadata: Metadata, epochs: Mapping[Partition, int]) -> OffsetForLeaderEpochRequest:
    topics = tuple(
        OffsetForLeaderTopic(
            topic=TopicName(name),
            partitions=tuple(
                OffsetForLeaderPartition(
                    partition=i32(number),
                    current_leader_epoch=i32(metadata.leader_epoch(name, number)),
                    leader_epoch=i32(epochs[Partition(name, number)]),
                )
                for number in numbers
            ),
        )
        for name, numbers in grouped(epochs).items()
    )
    return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=topics)
