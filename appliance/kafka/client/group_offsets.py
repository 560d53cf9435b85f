"""The committed offsets of consumer groups: OffsetFetch (KIP-709) and OffsetCommit, from outside of the group.

A commit from outside has no member and no generation; the coordinator takes it only while the group has no member
(else UNKNOWN_MEMBER_ID). Each request is written by the coordinator as a whole, or not at all. Brokers before 3.0 are
asked for one group at a time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.offset_commit.v8 import OffsetCommitRequest, OffsetCommitResponse
from kio.schema.offset_commit.v8.request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kio.schema.offset_fetch.v7 import OffsetFetchRequest as OffsetFetchOfOne
from kio.schema.offset_fetch.v7 import OffsetFetchResponse as OffsetsOfOne
from kio.schema.offset_fetch.v7.response import OffsetFetchResponseTopic
from kio.schema.offset_fetch.v8 import OffsetFetchRequest, OffsetFetchResponse
from kio.schema.offset_fetch.v8.request import OffsetFetchRequestGroup
from kio.schema.offset_fetch.v8.response import OffsetFetchResponseTopics
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i64
from kio.static.protocol import RequestPayload

from appliance.errors import ApplianceError, BrokerBusy
from appliance.grouping import grouped, pieces
from appliance.kafka.client.groups import PURPOSE, Group
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.client.requests import pipeline
from appliance.kafka.protocol import versions
from appliance.kafka.protocol.answer import Answers, failure
from appliance.kafka.protocol.metadata import Partition

_GROUPS_AT_ONCE = 50
"""Groups in one request: an answer must not block the event loop for long."""

COMMITTING = 8
"""Connections to a coordinator for commits: each commit waits until it is written and replicated."""

_COMMIT_BYTES = 400_000
_ENTRY_BYTES = 200
"""Bytes of one commit, which is one batch in the coordinator's log, and of a partition in it without its metadata."""

_MEMBERS_THERE = frozenset(
    {"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "STALE_MEMBER_EPOCH", "NON_EMPTY_GROUP"}
)

Value = TypeVar("Value")
Item = TypeVar("Item")
MaySend = Callable[[], bool]
"""Asked right before a request that changes offsets is sent, however long its connection was waited for."""


class Commit(NamedTuple):
    """A committed offset; ``leader_epoch`` is that of the record read before it, -1 if unknown."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Commits = Mapping[Partition, Commit]
GroupOffsets = Answers[str, Commits]
"""The offsets of each group by its name, and the errors of the others."""


def has_members(error: ApplianceError) -> bool:
    """True when a commit was refused since the group has a member by now."""
    return getattr(error, "code", "") in _MEMBERS_THERE


async def fetch_offsets(cluster: Cluster, groups: Collection[Group]) -> GroupOffsets:
    """All committed offsets of the consumer groups; none of a missing group."""
    return await by_coordinator(cluster, groups, _fetched)


async def by_coordinator(
    cluster: Cluster,
    groups: Collection[Group],
    ask: Callable[[Connection, Sequence[Group]], Awaitable[GroupOffsets]],
    connections: int = 1,
) -> GroupOffsets:
    """Ask every coordinator at once about its groups; one that does not answer fails its own groups alone.

    A broker works on one request of a connection at a time, even if more are sent.
    """
    led = grouped(
        ((group.coordinator, f"{PURPOSE} {number % connections}"), group) for number, group in enumerate(groups)
    )

    async def asked(node: int, purpose: str, own: Sequence[Group]) -> GroupOffsets:
        try:
            return await ask(await cluster.broker(node, purpose), own)
        except ApplianceError as error:
            return GroupOffsets({}, {group.name: error for group in own})

    every = Answers[str, Commits]({}, {})
    for answers in await asyncio.gather(*(asked(*where, own) for where, own in led.items())):
        every.values.update(answers.values)
        every.failures.update(answers.failures)
    return every


async def _fetched(coordinator: Connection, groups: Sequence[Group]) -> GroupOffsets:
    offsets = Answers[str, Commits]({}, {})
    if not versions.offers(coordinator.offered, OffsetFetchRequest):
        single = ((group.name, OffsetFetchOfOne(group_id=GroupId(group.name), topics=None)) for group in groups)
        async for name, answer in pipeline(coordinator, single, OffsetsOfOne):
            offsets.take(name, dict(_committed(answer.topics)), answer.error_code, f"read the offsets of group {name}")
        return offsets
    requests = [OffsetFetchRequestGroup(group_id=GroupId(group.name), topics=None) for group in groups]
    async for _, several in pipeline(coordinator, in_pieces(requests, OffsetFetchRequest), OffsetFetchResponse):
        for group in several.groups:
            name = str(group.group_id)
            offsets.take(name, dict(_committed(group.topics)), group.error_code, f"read the offsets of group {name}")
    return offsets


def in_pieces(groups: Iterable[Item], request: Callable[..., RequestPayload]) -> Iterator[tuple[None, RequestPayload]]:
    """Requests about groups, each about some of them."""
    return ((None, request(groups=tuple(some))) for some in pieces(((each, 1) for each in groups), _GROUPS_AT_ONCE))


def _committed(
    topics: Iterable[OffsetFetchResponseTopics | OffsetFetchResponseTopic],
) -> Iterator[tuple[Partition, Commit]]:
    for topic in topics:
        name = str(topic.name)
        for each in topic.partitions:
            if each.error_code is ErrorCode.none and each.committed_offset >= 0:
                commit = Commit(int(each.committed_offset), each.metadata or "", int(each.committed_leader_epoch))
                yield Partition(name, int(each.partition_index)), commit


def always() -> bool:
    """Let every request be sent."""
    return True


def permitted_requests(
    requests: Iterable[tuple[str, RequestPayload]], may: MaySend, failures: dict[str, ApplianceError]
) -> Iterator[tuple[str, RequestPayload]]:
    """The requests that may be sent when their turn comes; the groups of the others fail."""
    for group, request in requests:
        if may():
            yield group, request
        else:
            text = f"what was read of group {group} was too old when its turn came: it is read anew"
            failures[group] = BrokerBusy(text, "TOO_LATE")


async def commit_offsets(
    cluster: Cluster, commits: Mapping[Group, Commits], may: MaySend = always
) -> dict[str, ApplianceError]:
    """Commit for consumer groups; the first error of each group that was not committed completely.

    Groups without a failure are committed. The others may be in part: the outcome of a request whose answer is lost is
    unknown.
    """

    async def committed(coordinator: Connection, groups: Sequence[Group]) -> GroupOffsets:
        failures: dict[str, ApplianceError] = {}
        requests = (
            (group.name, _commit_of(group, piece))
            for group in groups
            for piece in pieces(((each, _size(each)) for each in commits[group].items()), _COMMIT_BYTES)
        )
        async for name, answer in pipeline(
            coordinator, permitted_requests(requests, may, failures), OffsetCommitResponse
        ):
            for topic in answer.topics:
                for partition in topic.partitions:
                    if partition.error_code is not ErrorCode.none:
                        doing = f"commit {topic.name}-{partition.partition_index} for group {name}"
                        failures.setdefault(name, failure(partition.error_code, doing))
        return GroupOffsets({}, failures)

    return (await by_coordinator(cluster, commits, committed, COMMITTING)).failures


def _size(entry: tuple[Partition, Commit]) -> int:
    (topic, _), commit = entry
    return _ENTRY_BYTES + len(topic) + len(commit.metadata.encode())


def _commit_of(group: Group, offsets: Iterable[tuple[Partition, Commit]]) -> OffsetCommitRequest:
    topics = tuple(
        OffsetCommitRequestTopic(
            name=TopicName(topic),
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=i32(number),
                    committed_offset=i64(commit.offset),
                    committed_leader_epoch=i32(commit.leader_epoch),
                    committed_metadata=commit.metadata,
                )
                for number, commit in numbers
            ),
        )
        for topic, numbers in by_topic(offsets).items()
    )
    return OffsetCommitRequest(group_id=GroupId(group.name), member_id="", topics=topics)


def by_topic(offsets: Iterable[tuple[Partition, Value]]) -> dict[str, list[tuple[int, Value]]]:
    """The partitions of each topic by number, with their values."""
    return grouped((topic, (number, value)) for (topic, number), value in offsets)
