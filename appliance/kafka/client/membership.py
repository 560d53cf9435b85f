"""The calls of a member of a group (KIP-62, KIP-345), each one question and one answer; and those who only look.

What members and assignments say is the caller's. The versions are those that every broker since 2.4 has.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kio.schema.describe_groups.v4 import DescribeGroupsRequest, DescribeGroupsResponse
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v3 import HeartbeatRequest, HeartbeatResponse
from kio.schema.join_group.v5 import JoinGroupRequest, JoinGroupResponse
from kio.schema.join_group.v5.request import JoinGroupRequestProtocol
from kio.schema.leave_group.v3 import LeaveGroupRequest, LeaveGroupResponse
from kio.schema.leave_group.v3.request import MemberIdentity
from kio.schema.sync_group.v3 import SyncGroupRequest, SyncGroupResponse
from kio.schema.sync_group.v3.request import SyncGroupRequestAssignment
from kio.schema.types import GroupId
from kio.static.primitive import i32

from appliance.errors import raise_first
from appliance.kafka.client.groups import find_coordinators
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol.answer import check

_JOIN_SECONDS = 5.0
"""Time for a JoinGroup beyond that which the other members have: a new group waits for 3 s, by default."""


class GroupProtocol(NamedTuple):
    """The names and timeouts, in seconds, that all members of a group share."""

    group: str
    type: str
    name: str
    session: float
    rebalance: float


class Joined(NamedTuple):
    """A member in a generation of its group; ``members`` are the words of all, for the leader alone."""

    member: str
    instance: str
    generation: int
    members: Mapping[str, bytes]


async def coordinator_of(cluster: Cluster, group: str, purpose: str = "membership") -> Connection:
    """A connection to the coordinator of a group, existing or not; a JoinGroup holds its connection up."""
    found = await find_coordinators(cluster, [group])
    raise_first(found.failures.values())
    return await cluster.broker(found.values[group], purpose)


async def join_group(
    coordinator: Connection, protocol: GroupProtocol, member: str, instance: str, words: bytes
) -> tuple[ErrorCode, Joined]:
    """Join, or join again, and wait for the others; ``member`` is empty at first."""
    request = JoinGroupRequest(
        group_id=GroupId(protocol.group),
        session_timeout=milliseconds(protocol.session),
        rebalance_timeout=milliseconds(protocol.rebalance),
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol.type,
        protocols=(JoinGroupRequestProtocol(name=protocol.name, metadata=words),),
    )
    answer = await coordinator.call(request, JoinGroupResponse, protocol.session + _JOIN_SECONDS)
    members = {each.member_id: each.metadata for each in answer.members}
    return answer.error_code, Joined(answer.member_id, instance, int(answer.generation_id), members)


async def sync_group(
    coordinator: Connection, protocol: GroupProtocol, joined: Joined, assignments: Mapping[str, bytes]
) -> tuple[ErrorCode, bytes]:
    """The member's assignment; the leader gives those of all."""
    request = SyncGroupRequest(
        group_id=GroupId(protocol.group),
        generation_id=i32(joined.generation),
        member_id=joined.member,
        group_instance_id=joined.instance,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=member, assignment=words) for member, words in assignments.items()
        ),
    )
    answer = await coordinator.call(request, SyncGroupResponse)
    return answer.error_code, answer.assignment


async def heartbeat(coordinator: Connection, group: str, joined: Joined, timeout: float) -> ErrorCode:
    """Say that the member lives; the answer says whether it still is one."""
    request = HeartbeatRequest(
        group_id=GroupId(group),
        generation_id=i32(joined.generation),
        member_id=joined.member,
        group_instance_id=joined.instance,
    )
    return (await coordinator.call(request, HeartbeatResponse, timeout)).error_code


async def leave_group(coordinator: Connection, group: str, joined: Joined, timeout: float) -> None:
    """End the membership: the others need not wait for its timeout."""
    identity = MemberIdentity(member_id=joined.member, group_instance_id=joined.instance)
    request = LeaveGroupRequest(group_id=GroupId(group), members=(identity,))
    answer = await coordinator.call(request, LeaveGroupResponse, timeout)
    check(answer.error_code, f"leave group {group}")


async def describe_group(cluster: Cluster, group: str) -> Sequence[tuple[bytes, bytes]]:
    """The words and the assignment of each member, as the coordinator shows them: none while members come and go."""
    coordinator = await coordinator_of(cluster, group)
    request = DescribeGroupsRequest(groups=(GroupId(group),), include_authorized_operations=False)
    answer = await coordinator.call(request, DescribeGroupsResponse)
    (described,) = answer.groups
    check(described.error_code, f"describe group {group}")
    return [(each.member_metadata, each.member_assignment) for each in described.members]
