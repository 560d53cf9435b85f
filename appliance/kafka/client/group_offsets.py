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

from appliance.errors import ApplianceError, BrokerBusy
from appliance.grouping import grouped, pieces
from appliance.kafka.client.groups import PURPOSE, Group
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.protocol import versions
from appliance.kafka.protocol.answer import failure
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.protocol.older import exchange

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

Sized = TypeVar("Sized")
MaySend = Callable[[], bool]
"""Asked right before a request that changes offsets is sent, however long its connection was waited for."""


class Commit(NamedTuple):
    """A committed offset; ``leader_epoch`` is that of the record read before it, -1 if unknown."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Commits = Mapping[Partition, Commit]
GroupOffsets = tuple[dict[str, Commits], dict[str, ApplianceError]]
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
            return {}, {group.name: error for group in own}

    known: dict[str, Commits] = {}
    failures: dict[str, ApplianceError] = {}
    for found, failed in await asyncio.gather(*(asked(*where, own) for where, own in led.items())):
        known |= found
        failures |= failed
    return known, failures


async def _fetched(coordinator: Connection, groups: Sequence[Group]) -> GroupOffsets:
    if not versions.offers(coordinator.offered, OffsetFetchRequest):
        return await _fetched_one_by_one(coordinator, groups)
    asked = [
        await coordinator.send(exchange(coordinator.offered, _of_groups(some), OffsetFetchResponse))
        for some in pieces(((group, 1) for group in groups), _GROUPS_AT_ONCE)
    ]
    known: dict[str, Commits] = {}
    failures: dict[str, ApplianceError] = {}
    for answering in asked:
        for group in (await answering).groups:
            if group.error_code is ErrorCode.none:
                known[str(group.group_id)] = dict(_committed(group.topics))
            else:
                failures[str(group.group_id)] = _unread(group.error_code, str(group.group_id))
    return known, failures


async def _fetched_one_by_one(coordinator: Connection, groups: Sequence[Group]) -> GroupOffsets:
    asked = {
        group.name: await coordinator.send(
            exchange(coordinator.offered, OffsetFetchOfOne(group_id=GroupId(group.name), topics=None), OffsetsOfOne)
        )
        for group in groups
    }
    known: dict[str, Commits] = {}
    failures: dict[str, ApplianceError] = {}
    for name, answering in asked.items():
        answer = await answering
        if answer.error_code is ErrorCode.none:
            known[name] = dict(_committed(answer.topics))
        else:
            failures[name] = _unread(answer.error_code, name)
    return known, failures


def _of_groups(groups: Iterable[Group]) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=tuple(OffsetFetchRequestGroup(group_id=GroupId(group.name), topics=None) for group in groups)
    )


def _committed(
    topics: Iterable[OffsetFetchResponseTopics | OffsetFetchResponseTopic],
) -> Iterator[tuple[Partition, Commit]]:
    for topic in topics:
        name = str(topic.name)
        for found in topic.partitions:
            if found.error_code is ErrorCode.none and found.committed_offset >= 0:
                commit = Commit(int(found.committed_offset), found.metadata or "", int(found.committed_leader_epoch))
                yield Partition(name, int(found.partition_index)), commit


def _unread(code: ErrorCode, group: str) -> ApplianceError:
    return failure(code, f"read the offsets of group {group}")


def always() -> bool:
    """Let every request be sent."""
    return True


def too_late(group: str) -> BrokerBusy:
    """The failure of a group whose offsets were not sent."""
    return BrokerBusy(f"what was read of group {group} was too old when its turn came: it is read anew", "TOO_LATE")


async def commit_offsets(
    cluster: Cluster, commits: Mapping[Group, Commits], may: MaySend = always
) -> dict[str, ApplianceError]:
    """Commit for consumer groups; the first error of each group that was not committed completely.

    Groups without a failure are committed. The others may be in part: the outcome of a request whose answer is lost is
    unknown.
    """

    async def committed(coordinator: Connection, groups: Sequence[Group]) -> GroupOffsets:
        return {}, await _commit(coordinator, {group: commits[group] for group in groups}, may)

    return (await by_coordinator(cluster, commits, committed, COMMITTING))[1]


async def _commit(coordinator: Connection, commits: Mapping[Group, Commits], may: MaySend) -> dict[str, ApplianceError]:
    asked: list[tuple[Group, asyncio.Future[OffsetCommitResponse]]] = []
    failures: dict[str, ApplianceError] = {}
    for group, offsets in commits.items():
        for piece in pieces(((each, _size(each)) for each in offsets.items()), _COMMIT_BYTES):
            if may():
                request = exchange(coordinator.offered, _commit_of(group, piece), OffsetCommitResponse)
                asked.append((group, await coordinator.send(request)))
            else:
                failures[group.name] = too_late(group.name)
    for group, answering in asked:
        for topic in (await answering).topics:
            for found in topic.partitions:
                if found.error_code is not ErrorCode.none:
                    doing = f"commit {topic.name}-{found.partition_index} for group {group.name}"
                    failures.setdefault(group.name, failure(found.error_code, doing))
    return failures


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


def by_topic(offsets: Iterable[tuple[Partition, Sized]]) -> dict[str, list[tuple[int, Sized]]]:
    """The partitions of each topic by number, with their values."""
    return grouped((topic, (number, value)) for (topic, number), value in offsets)
