"""The consumer groups of a cluster in memory: their coordinators, and their committed offsets."""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v3 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.list_groups.v5 import ListGroupsRequest, ListGroupsResponse
from kio.schema.list_groups.v5.response import ListedGroup
from kio.schema.offset_commit.v8 import OffsetCommitRequest, OffsetCommitResponse
from kio.schema.offset_commit.v8.response import OffsetCommitResponsePartition, OffsetCommitResponseTopic
from kio.schema.offset_fetch.v8 import OffsetFetchRequest, OffsetFetchResponse
from kio.schema.offset_fetch.v8.response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kio.schema.types import BrokerId, GroupId, TopicName
from kio.static.primitive import i32, i64

from appliance.kafka.protocol.metadata import Partition
from tests.simulation.brokers import AT_ONCE, NODES, Brokers

_NONE = ErrorCode.none


class Committed(NamedTuple):
    """A group's offset of a partition of the topic with this id."""

    offset: int
    leader_epoch: int
    metadata: str
    topic_id: UUID


class Groups:
    """The groups without members of one cluster; ``committed`` is told of each commit that comes by a request."""

    def __init__(self, brokers: Brokers, committed: Callable[[str, Partition, int], None]) -> None:
        self._brokers, self._told = brokers, committed
        self._offsets: dict[str, dict[Partition, Committed]] = {}
        brokers.handles(ListGroupsRequest, self._list)
        brokers.handles(FindCoordinatorRequest, self._find)
        brokers.handles(OffsetFetchRequest, self._fetch)
        brokers.handles(OffsetCommitRequest, self._commit)

    def offsets(self, group: str) -> dict[Partition, Committed]:
        """A group's offsets; a deleted topic takes its own with it."""
        topics = self._brokers.topics
        held = self._offsets.get(group, {}).items()
        return {at: each for at, each in held if at[0] in topics and topics[at[0]].id == each.topic_id}

    def commit(self, group: str, partition: Partition, offset: int, epoch: int = -1, metadata: str = "") -> None:
        """Set a group's offset."""
        topic_id = self._brokers.topics[partition[0]].id
        self._offsets.setdefault(group, {})[partition] = Committed(offset, epoch, metadata, topic_id)

    def _node(self, group: str) -> int:
        return NODES[len(group) % len(NODES)]

    def _list(self, _: ListGroupsRequest, node: int) -> ListGroupsResponse:
        groups = tuple(
            ListedGroup(group_id=GroupId(name), protocol_type="consumer", group_state="Empty", group_type="classic")
            for name in sorted(self._offsets)
            if self._node(name) == node
        )
        return ListGroupsResponse(throttle_time=AT_ONCE, error_code=self._brokers.refusal or _NONE, groups=groups)

    def _find(self, request: FindCoordinatorRequest, _: int) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            throttle_time=AT_ONCE,
            error_code=self._brokers.refusal or _NONE,
            error_message=None,
            node_id=BrokerId(self._node(request.key)),
            host="",
            port=i32(9092),
        )

    def _fetch(self, request: OffsetFetchRequest, node: int) -> OffsetFetchResponse:
        groups = []
        for asked in request.groups:
            name, topics = str(asked.group_id), {}
            for (topic, number), held in self.offsets(name).items():
                topics.setdefault(topic, []).append(
                    OffsetFetchResponsePartitions(
                        partition_index=i32(number),
                        committed_offset=i64(held.offset),
                        committed_leader_epoch=i32(held.leader_epoch),
                        metadata=held.metadata,
                        error_code=_NONE,
                    )
                )
            code = self._code(name, node)
            found = () if code is not _NONE else topics.items()
            answers = (OffsetFetchResponseTopics(name=TopicName(topic), partitions=tuple(p)) for topic, p in found)
            groups.append(OffsetFetchResponseGroup(group_id=asked.group_id, topics=tuple(answers), error_code=code))
        return OffsetFetchResponse(throttle_time=AT_ONCE, groups=tuple(groups))

    def _commit(self, request: OffsetCommitRequest, node: int) -> OffsetCommitResponse:
        name, topics = str(request.group_id), []
        for topic in request.topics:
            answers = []
            for wanted in topic.partitions:
                key, code = (str(topic.name), int(wanted.partition_index)), self._code(name, node)
                if code is _NONE and self._brokers.log(key) is None:
                    code = ErrorCode.unknown_topic_or_partition
                if code is _NONE:
                    offset, epoch = int(wanted.committed_offset), int(wanted.committed_leader_epoch)
                    self._told(name, key, offset)
                    self.commit(name, key, offset, epoch, wanted.committed_metadata or "")
                    self._brokers.noted += f"{name} {key[0]}-{key[1]}@{offset} "
                answers.append(OffsetCommitResponsePartition(partition_index=wanted.partition_index, error_code=code))
            topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=tuple(answers)))
        return OffsetCommitResponse(throttle_time=AT_ONCE, topics=tuple(topics))

    def _code(self, group: str, node: int) -> ErrorCode:
        return self._brokers.refusal or (_NONE if self._node(group) == node else ErrorCode.not_coordinator)
