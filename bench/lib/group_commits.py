"""Consumer groups of a benchmark: names, coordinators, and commits from outside."""

import asyncio
from collections.abc import Mapping, Sequence

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.group_offsets import Commit, Commits, commit_offsets, fetch_offsets
from appliance.kafka.client.groups import Group, find_coordinators
from appliance.kafka.protocol.metadata import Partition

_DEADLINE = 300.0
_INTERVAL = 0.25


def group_names(count: int) -> list[str]:
    """The names of that many groups; ``bench-.*`` matches them."""
    return [f"bench-{number}" for number in range(count)]


async def coordinated(cluster: KafkaCluster, names: Sequence[str]) -> list[Group]:
    """Wait until every coordinator is ready, because a new cluster has none at first; return the groups."""
    async with asyncio.timeout(_DEADLINE):
        while True:
            nodes, failures = await find_coordinators(cluster, names)
            groups = [Group(name, nodes[name]) for name in names if name in nodes]
            if not failures and not (await fetch_offsets(cluster, groups))[1]:
                return groups
            await asyncio.sleep(_INTERVAL)


async def commit(cluster: KafkaCluster, topic: str, offsets: Mapping[str, Sequence[int]]) -> None:
    """Commit for each group, by its name, the offsets of the topic's partitions, starting with the first.

    Raises:
        ApplianceError: the cluster did not commit them all.
    """
    groups = await coordinated(cluster, list(offsets))
    for error in (
        await commit_offsets(cluster, {group: _commits(topic, offsets[group.name]) for group in groups})
    ).values():
        raise error


async def committed(cluster: KafkaCluster, topic: str, names: Sequence[str]) -> dict[str, dict[int, int]]:
    """The offsets of each group in the topic, by partition.

    Raises:
        ApplianceError: a coordinator does not answer.
    """
    known, failures = await fetch_offsets(cluster, await coordinated(cluster, names))
    for error in failures.values():
        raise error
    return {name: _of_topic(known[name], topic) for name in names}


def _commits(topic: str, offsets: Sequence[int]) -> Commits:
    return {Partition(topic, number): Commit(offset) for number, offset in enumerate(offsets)}


def _of_topic(commits: Commits, topic: str) -> dict[int, int]:
    return {partition: found.offset for (name, partition), found in commits.items() if name == topic}
