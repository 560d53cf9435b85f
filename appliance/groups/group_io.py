"""The groups of one cluster with their offsets: the commits of consumer groups, the starts of share groups."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from appliance.errors import ApplianceError
from appliance.kafka.client.group_offsets import Commits, GroupOffsets, MaySend, always, commit_offsets, fetch_offsets
from appliance.kafka.client.groups import Group, ListedGroups, find_coordinators, list_groups
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.share_offsets import alter_starts, fetch_starts

_NAMED = 100
"""Number of topics from which a broker is asked about all topics."""


@dataclass(frozen=True, slots=True)
class ReadGroups:
    """Groups and their offsets by name; ``failures`` are those of unknown groups, or of brokers."""

    groups: Mapping[str, Group] = field(default_factory=dict)
    offsets: Mapping[str, Commits] = field(default_factory=dict)
    failures: Mapping[str, ApplianceError] = field(default_factory=dict)


async def read_groups(cluster: Cluster, takes: Callable[[str], bool]) -> ReadGroups:
    """The groups whose names are taken, with their offsets."""
    listed = await list_groups(cluster)
    groups = {name: group for name, group in listed.groups.items() if takes(name)}
    offsets, failures = await read_offsets(cluster, groups.values())
    return ReadGroups(groups, offsets, {**of_brokers(cluster, listed), **failures})


def of_brokers(cluster: Cluster, listed: ListedGroups) -> dict[str, ApplianceError]:
    """The failures of brokers that did not list their groups, each with a name for it."""
    return {f"broker {node} of the {cluster.side} cluster": error for node, error in listed.failures.items()}


async def read_offsets(cluster: Cluster, groups: Collection[Group]) -> GroupOffsets:
    """The offsets of groups, and the reasons why others are unknown."""
    shares, others = _by_kind(groups)
    started, committed = await asyncio.gather(fetch_starts(cluster, shares), fetch_offsets(cluster, others))
    return GroupOffsets({**committed.values, **started.values}, {**committed.failures, **started.failures})


async def topic_ids(cluster: Cluster, topics: Collection[str]) -> dict[str, UUID]:
    """The current ids of topics; missing topics are left out."""
    named = sorted(topics) if len(topics) < _NAMED else None  # an unchanged answer about all topics costs less
    current = (await cluster.metadata(named)).topics
    return {name: current[name].id for name in topics if name in current}


async def set_offsets(
    cluster: Cluster, offsets: Mapping[Group, Commits], may: MaySend = always
) -> dict[str, ApplianceError]:
    """Set the offsets of groups without members; the reasons, by group, of those with unset offsets.

    ``may`` is called right before each request is sent.
    """
    shares, others = _by_kind(offsets)
    altered, committed = await asyncio.gather(
        alter_starts(cluster, {group: offsets[group] for group in shares}, may),
        commit_offsets(cluster, {group: offsets[group] for group in others}, may),
    )
    return {**committed, **altered}


def _by_kind(groups: Iterable[Group]) -> tuple[list[Group], list[Group]]:
    every = list(groups)
    return [group for group in every if group.shares], [group for group in every if not group.shares]


async def coordinated(cluster: Cluster, groups: Collection[Group]) -> tuple[list[Group], dict[str, ApplianceError]]:
    """Groups to create, each of its kind in ``groups``, with its coordinator in the cluster."""
    nodes, failures = await find_coordinators(cluster, [group.name for group in groups])
    return [Group(group.name, nodes[group.name], kind=group.kind) for group in groups if group.name in nodes], failures
