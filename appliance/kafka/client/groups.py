"""The groups of a cluster, and the coordinator of each: ListGroups (KIP-222, KIP-518, KIP-848), FindCoordinator.

Only its coordinator knows a group, so each broker is asked for its own; a silent broker does not affect the groups of
others.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kio.schema.find_coordinator.v3 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.list_groups.v5 import ListGroupsRequest, ListGroupsResponse
from kio.static.primitive import i8

from appliance.errors import ApplianceError, BrokerUnsupported
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.requests import pipeline
from appliance.kafka.protocol import versions
from appliance.kafka.protocol.answer import Answers, check

PURPOSE = "groups"
"""The purpose of the connections: many groups' offsets must not delay other questions."""

_GROUP_KEY = i8(0)
_WITHOUT_MEMBERS = frozenset({"Empty", "Dead"})
_SHARE = "share"
_CLASSIC = "classic"


@dataclass(frozen=True, slots=True)
class Group:
    """A group; ``kind`` and ``state`` are its type and its state in the brokers' words."""

    name: str
    coordinator: int
    state: str = "Dead"
    kind: str = _CLASSIC

    @property
    def has_members(self) -> bool:
        """True when a consumer is a member of it; consumers that assign partitions to themselves are not members."""
        return self.state not in _WITHOUT_MEMBERS

    @property
    def shares(self) -> bool:
        """True for a share group (KIP-932), whose offsets are where the shared consumption of a partition starts."""
        return self.kind == _SHARE


@dataclass(frozen=True, slots=True)
class ListedGroups:
    """The groups of a cluster by name; ``failures`` are those of brokers, by id, that did not list theirs."""

    groups: Mapping[str, Group] = field(default_factory=dict)
    failures: Mapping[int, ApplianceError] = field(default_factory=dict)


async def list_groups(cluster: Cluster) -> ListedGroups:
    """All groups that the API key may describe."""
    nodes = list((await cluster.metadata([])).brokers)
    answers = await asyncio.gather(*(_listed_by(cluster, node) for node in nodes))
    groups: dict[str, Group] = {}
    failures: dict[int, ApplianceError] = {}
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, ApplianceError):
            failures[node] = answer
        else:
            groups |= {group.name: group for group in answer}
    return ListedGroups(groups, failures)


async def _listed_by(cluster: Cluster, node: int) -> list[Group] | ApplianceError:
    try:
        connection = await cluster.broker(node, PURPOSE)
        if not versions.offers(connection.offered, ListGroupsRequest):
            return BrokerUnsupported(f"broker {node} of the {cluster.side} cluster lacks ListGroups 4 (Kafka 2.6)")
        answer = await connection.call(ListGroupsRequest(), ListGroupsResponse)
        check(answer.error_code, f"list the groups of broker {node} of the {cluster.side} cluster")
    except ApplianceError as error:
        return error
    return [
        Group(str(group.group_id), node, group.group_state, (group.group_type or _CLASSIC).lower())
        for group in answer.groups
    ]


async def find_coordinators(cluster: Cluster, names: Collection[str]) -> Answers[str, int]:
    """The coordinator of each group, existing or not; and the errors of the others."""
    coordinators = Answers[str, int]({}, {})
    requests = ((name, FindCoordinatorRequest(key=name, key_type=_GROUP_KEY)) for name in names)
    async for name, answer in pipeline(await cluster.any_broker(), requests, FindCoordinatorResponse):
        coordinators.take(name, int(answer.node_id), answer.error_code, f"find the coordinator of group {name}")
    return coordinators
