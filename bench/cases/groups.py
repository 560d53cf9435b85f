"""Delay from a group's commit at the source to the same offset at the destination, for many groups; and its cost.

Each group has committed ten partitions of one of the topics. All groups commit at once, several times. A delay lasts
from the first commit until all partitions of a group have advanced at the destination. Then the program is left idle
for a while; it also reads groups that commit nothing.
"""

import argparse
import asyncio
import contextlib
import logging
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.group_offsets import Commit, Commits, commit_offsets, fetch_offsets
from appliance.kafka.client.groups import Group
from appliance.settings.values import Side
from bench.lib.clusters import Pair, kafka_cluster, plain_pair
from bench.lib.filling import Load
from bench.lib.footprint import Footprint, footprint
from bench.lib.group_commits import coordinated, group_names
from bench.lib.our_replicator import our_replicator
from bench.lib.row import LIMIT, Row
from bench.lib.setup import positive
from bench.lib.topic_load import PARTITIONS, PATTERN, arrived, make, named
from testbed.process import OwnedProcess

_DELAY_SECONDS = 10.0
_CORE = 100.0
_PYTHON_MEGABYTES = 300.0
_TOPICS = 10
_INTERVAL = 0.25
_DEADLINE = 300.0

log = logging.getLogger("appliance.bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench groups``."""
    parser.add_argument("--groups", type=positive, default=2_000, metavar="N", help="number of groups (%(default)s)")
    parser.add_argument("--times", type=positive, default=3, metavar="N", help="commits of each group (%(default)s)")
    parser.add_argument("--seconds", type=float, default=30.0, metavar="S", help="seconds of idleness (%(default)g)")


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows.

    Raises:
        ProcessFailed, ToolMissing: a program did not run, or the groups did not follow.
    """
    topics = named(range(_TOPICS))
    async with plain_pair() as pair:
        for _ in range(arguments.times + 1):  # one record in each partition, each time
            await make(pair.source, topics)
        async with our_replicator(pair, Load(0, topic=PATTERN), "0", {"REPLICA_GROUPS_REGEX": "bench-.*"}) as copying:
            suffix = copying.topic.removeprefix(PATTERN)
            await arrived(pair.destination, [name + suffix for name in topics], copying.process)
            delays: list[float] = []
            async with _groups(pair, arguments.groups) as groups:
                for offset in range(arguments.times + 1):
                    found = await groups.delays(offset, copying.process)
                    log.info("groups followed", extra={"fields": {"slowest": f"{max(found):.2f} s"}})
                    delays += found if offset else []  # the first commits make the groups
            idle = await footprint(copying.process.pid, arguments.seconds)
    return rows(delays, idle, arguments.groups)


def rows(delays: Sequence[float], idle: Footprint, groups: int) -> list[Row]:
    """The delays beside their limit, and the cost of idle groups beside one core."""
    return [
        Row(f"{groups:,} groups, slowest", "s", max(delays), LIMIT, _DELAY_SECONDS, 1),
        Row(f"{groups:,} groups, median", "s", statistics.median(delays), LIMIT, _DELAY_SECONDS, 1),
        Row(f"{groups:,} groups, idle: processor", "%", idle.total.processor, "one core", _CORE),
        Row(f"{groups:,} groups, idle: memory of Python", "MB", idle.others.memory, LIMIT, _PYTHON_MEGABYTES),
    ]


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups at both clusters, and their offsets at the destination after the last wait."""

    source: KafkaCluster
    destination: KafkaCluster
    here: Sequence[Group]
    there: Sequence[Group]
    held: dict[str, Commits] = field(default_factory=dict)

    async def delays(self, offset: int, copying: OwnedProcess) -> list[float]:
        """Commit an offset for all groups; return the seconds after which each group had it at the destination.

        Raises:
            ProcessFailed: a cluster did not commit, the process ended, or the groups did not follow in time.
        """
        began = time.perf_counter()
        commits = {group: _commits(_topic(n), offset) for n, group in enumerate(self.here)}
        for error in (await commit_offsets(self.source, commits)).values():
            raise error
        missing = {group.name: group for group in self.there}
        delays = []
        while missing:
            copying.require_running()
            found, _ = await fetch_offsets(self.destination, list(missing.values()))
            elapsed = time.perf_counter() - began
            if elapsed > _DEADLINE:
                raise copying.failure(f"left {len(missing)} groups behind after {_DEADLINE:g} s")
            for name in [name for name in missing if _moved_on(self.held.get(name, {}), found.get(name, {}))]:
                delays.append(elapsed)
                self.held[name] = found[name]
                del missing[name]
            await asyncio.sleep(_INTERVAL)
        return delays


@contextlib.asynccontextmanager
async def _groups(pair: Pair, count: int) -> AsyncIterator[_Groups]:
    names = group_names(count)
    async with (
        kafka_cluster(pair.source, Side.SOURCE) as source,
        kafka_cluster(pair.destination, Side.DESTINATION) as destination,
    ):
        here, there = await coordinated(source, names), await coordinated(destination, names)
        yield _Groups(source, destination, here, there)


def _moved_on(before: Commits, now: Commits) -> bool:
    """True when all partitions are committed, each with a higher offset than before."""
    nowhere = Commit(-1)
    return len(now) == PARTITIONS and all(now[each].offset > before.get(each, nowhere).offset for each in now)


def _commits(topic: str, offset: int) -> Commits:
    return {(topic, number): Commit(offset) for number in range(PARTITIONS)}


def _topic(number: int) -> str:
    (name,) = named([number % _TOPICS])
    return name
