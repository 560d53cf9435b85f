"""Consumer groups of a benchmark: commits from outside, and the errors of translated offsets.

An offset is judged by the records that a consumer gets from there.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.group_offsets import Commit, Commits, commit_offsets, fetch_offsets
from appliance.kafka.client.groups import Group, find_coordinators
from appliance.kafka.protocol.metadata import Partition
from bench.lib.clusters import raise_first
from bench.lib.numbered_records import Read

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
    """Commit for each group, by its name, the offsets of the topic's partitions, starting with the first."""
    groups = await coordinated(cluster, list(offsets))
    commits = {group: _commits(topic, offsets[group.name]) for group in groups}
    raise_first((await commit_offsets(cluster, commits)).values())


async def committed(cluster: KafkaCluster, topic: str, names: Sequence[str]) -> dict[str, dict[int, int]]:
    """The offsets of each group in the topic, by partition."""
    known, failures = await fetch_offsets(cluster, await coordinated(cluster, names))
    raise_first(failures.values())
    return {name: _of_topic(known[name], topic) for name in names}


def _commits(topic: str, offsets: Sequence[int]) -> Commits:
    return {Partition(topic, number): Commit(offset) for number, offset in enumerate(offsets)}


def _of_topic(commits: Commits, topic: str) -> dict[int, int]:
    return {partition: found.offset for (name, partition), found in commits.items() if name == topic}


Offsets = Mapping[str, Mapping[int, int]]
"""The committed offsets of groups in one topic, by name and partition."""


@dataclass(frozen=True, slots=True)
class OffsetErrors:
    """Numbers of offsets by exactness, and of the records that all groups together read again or miss.

    An offset is exact if a consumer continues with the record that it would have read next at the source.
    """

    exact: int = 0
    missing: int = 0
    again: int = 0
    most_again: int = 0
    """Maximum number of records that one group reads again in one partition."""
    missed: int = 0

    def __add__(self, other: "OffsetErrors") -> "OffsetErrors":
        most = max(self.most_again, other.most_again)
        exact, missing = self.exact + other.exact, self.missing + other.missing
        return OffsetErrors(exact, missing, self.again + other.again, most, self.missed + other.missed)


def errors(source: Read, copy: Read, at_source: Offsets, at_destination: Offsets) -> OffsetErrors:
    """All errors; ``source`` contains every record of ``copy``."""
    source_offsets = {partition: _source_offsets(source[partition], copy[partition]) for partition in source}
    total = OffsetErrors()
    for group, offsets in at_source.items():
        for partition, offset in offsets.items():
            total += _error(source_offsets[partition], offset, at_destination.get(group, {}).get(partition))
    return total


def _source_offsets(source: Mapping[int, int], copy: Mapping[int, int]) -> dict[int, int]:
    """The source offset of each record, by its offset in the copy."""
    offsets = {number: offset for offset, number in source.items()}
    return {offset: offsets[number] for offset, number in copy.items()}


def _error(source_offsets: Mapping[int, int], at_source: int, at_destination: int | None) -> OffsetErrors:
    if at_destination is None:
        return OffsetErrors(missing=1)
    given = [offset for at, offset in source_offsets.items() if at >= at_destination]
    again = sum(offset < at_source for offset in given)
    passed = {offset for at, offset in source_offsets.items() if at < at_destination and offset >= at_source}
    missed = len(passed.difference(given))
    return OffsetErrors(int(not again and not missed), 0, again, again, missed)
