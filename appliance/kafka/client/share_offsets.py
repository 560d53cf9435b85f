"""The start offsets of share groups (KIP-932): DescribeShareGroupOffsets and AlterShareGroupOffsets.

All records below a partition's start offset are done with; of those above it some may be. The coordinator alters the
offsets only while the group has no member (else NON_EMPTY_GROUP).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from kio.schema.alter_share_group_offsets.v0 import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
from kio.schema.alter_share_group_offsets.v0.request import (
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kio.schema.describe_share_group_offsets.v0 import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from kio.schema.describe_share_group_offsets.v0.request import DescribeShareGroupOffsetsRequestGroup
from kio.schema.describe_share_group_offsets.v0.response import DescribeShareGroupOffsetsResponseTopic
from kio.schema.errors import ErrorCode
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i64
from kio.static.protocol import RequestPayload

from appliance.errors import ApplianceError, BrokerUnsupported
from appliance.kafka.client.group_offsets import (
    COMMITTING,
    Commit,
    Commits,
    GroupOffsets,
    MaySend,
    always,
    by_coordinator,
    by_topic,
    in_pieces,
    permitted_requests,
)
from appliance.kafka.client.groups import Group
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.client.requests import pipeline
from appliance.kafka.protocol import versions
from appliance.kafka.protocol.answer import failure
from appliance.kafka.protocol.metadata import Partition

_TOO_OLD = "the brokers know no offsets of share groups (Kafka 4.2)"


async def fetch_starts(cluster: Cluster, groups: Collection[Group]) -> GroupOffsets:
    """The start offsets of the share groups, if they have any."""
    return await by_coordinator(cluster, groups, _fetched)


async def _fetched(coordinator: Connection, groups: Sequence[Group]) -> GroupOffsets:
    _require(coordinator, DescribeShareGroupOffsetsRequest)
    starts: GroupOffsets = GroupOffsets({}, {})
    requests = [DescribeShareGroupOffsetsRequestGroup(group_id=GroupId(group.name), topics=None) for group in groups]
    in_parts = in_pieces(requests, DescribeShareGroupOffsetsRequest)
    async for _, answer in pipeline(coordinator, in_parts, DescribeShareGroupOffsetsResponse):
        for group in answer.groups:
            name, missing = str(group.group_id), group.error_code is ErrorCode.group_id_not_found
            code = ErrorCode.none if missing else group.error_code
            starts.take(name, dict(_starts(group.topics)), code, f"read the offsets of share group {name}")
    return starts


def _require(coordinator: Connection, request: type[RequestPayload]) -> None:
    if not versions.offers(coordinator.offered, request):
        raise BrokerUnsupported(_TOO_OLD)


def _starts(topics: Sequence[DescribeShareGroupOffsetsResponseTopic]) -> Iterator[tuple[Partition, Commit]]:
    for topic in topics:
        for each in topic.partitions:
            if each.error_code is ErrorCode.none and each.start_offset >= 0:
                yield (
                    Partition(str(topic.topic_name), int(each.partition_index)),
                    Commit(int(each.start_offset)),
                )


async def alter_starts(
    cluster: Cluster, starts: Mapping[Group, Commits], may: MaySend = always
) -> dict[str, ApplianceError]:
    """Alter the start offsets of share groups; the first error of each group, as in ``commit_offsets``."""

    async def altered(coordinator: Connection, groups: Sequence[Group]) -> GroupOffsets:
        _require(coordinator, AlterShareGroupOffsetsRequest)
        failures: dict[str, ApplianceError] = {}
        requests = permitted_requests(((group.name, _altered(group, starts[group])) for group in groups), may, failures)
        async for name, answer in pipeline(coordinator, requests, AlterShareGroupOffsetsResponse):
            doing = f"alter the offsets of share group {name}"
            if answer.error_code is not ErrorCode.none:
                failures[name] = failure(answer.error_code, doing, answer.error_message)
            for topic in answer.responses:
                for partition in topic.partitions:
                    if partition.error_code is not ErrorCode.none:
                        text = f"{doing} to {topic.topic_name}-{partition.partition_index}"
                        failures.setdefault(name, failure(partition.error_code, text, partition.error_message))
        return GroupOffsets({}, failures)

    return (await by_coordinator(cluster, starts, altered, COMMITTING)).failures


def _altered(group: Group, offsets: Commits) -> AlterShareGroupOffsetsRequest:
    topics = tuple(
        AlterShareGroupOffsetsRequestTopic(
            topic_name=TopicName(topic),
            partitions=tuple(
                AlterShareGroupOffsetsRequestPartition(partition_index=i32(number), start_offset=i64(commit.offset))
                for number, commit in numbers
            ),
        )
        for topic, numbers in by_topic(offsets.items()).items()
    )
    return AlterShareGroupOffsetsRequest(group_id=GroupId(group.name), topics=topics)
