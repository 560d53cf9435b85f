"""Exactness of the offsets of consumer groups at the destination, beside MirrorMaker 2's on the same history.

A topic has records that carry their partition and a number. Half of them are in transactions, of which every fifth is
aborted, and the traffic never stops. Ours and then MirrorMaker 2, both with a round of groups every five seconds, copy
the topic from its beginning. The groups are at the first offset until ten seconds after the copy holds the history.
Then they commit a random offset in each partition: half of them anywhere in the history, half of them near the end,
which was copied live. After some rounds, the offsets at the destination are judged by the records that a consumer would
read again from there, and by those that it would miss.
"""

import argparse
import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.settings.values import Side
from bench.lib.clusters import Pair, kafka_cluster, make_topic, plain_pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from bench.lib.group_offsets import OffsetErrors, Offsets, commit, committed, errors, group_names
from bench.lib.mirror_maker import mirror_maker
from bench.lib.numbered_records import NumberedRecords, Read, read_all, read_until
from bench.lib.our_replicator import our_replicator
from bench.lib.progress import progress
from bench.lib.row import Row
from bench.lib.setup import add_number
from bench.lib.watching import until_begun
from bench.lib.workloads import MIRROR_MAKER

PARTITIONS = 24

PLACES = ("anywhere", "near the end")
Errors = tuple[OffsetErrors, OffsetErrors]
"""Errors of the groups anywhere in the history, and of those near its end."""

_LOAD = Load(records=0, partitions=PARTITIONS)
_RUN = "0"
_SEED = 21
_NEAR = 500
_LIVE_SECONDS = 10.0
"""Seconds in which more than ``_NEAR`` offsets of each partition are copied live."""

_BEGIN_SECONDS = 90.0
_OURS: Mapping[str, str] = {"REPLICA_GROUPS_REGEX": "bench-.*", "GROUPS_SYNC_SECONDS": "5"}
_THEIRS: Mapping[str, str] = {
    "groups": "bench-.*",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "5",
    "emit.checkpoints.interval.seconds": "5",
    "refresh.groups.interval.seconds": "5",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench offsets``."""
    add_number(parser, "--groups", 50, "number of groups")
    add_number(parser, "--records", 240_000, "records of the history")
    add_number(parser, "--seconds", 15.0, "seconds from the commits on")


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    async with plain_pair() as pair:
        ours, theirs = await _judged(pair, arguments)
    return rows(ours, theirs, arguments.groups)


def rows(ours: Errors, theirs: Errors, groups: int) -> list[Row]:
    """Our errors beside MirrorMaker 2's, for both halves of that many groups."""
    found = []
    for place, our, their, count in zip(PLACES, ours, theirs, (groups - groups // 2, groups // 2), strict=True):
        offsets = count * PARTITIONS
        found += [
            Row(f"{place}: exact of {offsets:,}", "offsets", our.exact, MIRROR_MAKER, their.exact),
            Row(f"{place}: missing of {offsets:,}", "offsets", our.missing, MIRROR_MAKER, their.missing),
            Row(f"{place}: read again", "records", our.again, MIRROR_MAKER, their.again),
            Row(f"{place}: read again, at most", "records", our.most_again, MIRROR_MAKER, their.most_again),
            Row(f"{place}: missed", "records", our.missed, MIRROR_MAKER, their.missed),
        ]
    return found


async def _judged(pair: Pair, arguments: argparse.Namespace) -> list[Errors]:
    """The errors of ours and of MirrorMaker 2, each for the groups anywhere and for those near the end."""
    await make_topic(pair.source, _LOAD.topic, PARTITIONS)
    traffic = NumberedRecords(pair.source, _LOAD.topic, PARTITIONS)
    await traffic.history(arguments.records)
    history = await read_all(pair.source, _LOAD.topic, PARTITIONS)
    names = group_names(arguments.groups)
    programs = our_replicator(pair, _LOAD, _RUN, _OURS), mirror_maker(pair, _LOAD, _RUN, _THEIRS)
    async with traffic.flowing():
        copies = [await _translated(pair, program, names, history, arguments.seconds) for program in programs]
    source = await read_all(pair.source, _LOAD.topic, PARTITIONS)
    judged = []
    for topic, here, there in copies:
        copy = await read_all(pair.destination, topic, PARTITIONS)
        halves = [{name: here[name] for name in half} for half in (names[::2], names[1::2])]
        judged.append((errors(source, copy, halves[0], there), errors(source, copy, halves[1], there)))
    return judged


async def _translated(
    pair: Pair, program: AbstractAsyncContextManager[Copying], names: Sequence[str], history: Read, seconds: float
) -> tuple[str, Offsets, Offsets]:
    """The copy, and the offsets of the groups at both clusters ``seconds`` after they were committed."""
    async with (
        kafka_cluster(pair.source, Side.SOURCE) as source,
        kafka_cluster(pair.destination, Side.DESTINATION) as destination,
    ):
        await commit(source, _LOAD.topic, dict.fromkeys(names, [0] * PARTITIONS))
        async with program as copying:
            await until_begun(pair.destination, copying.topic, copying.process, _BEGIN_SECONDS)
            await read_until(pair.destination, copying.topic, _last(history))
            await asyncio.sleep(_LIVE_SECONDS)
            here = chosen(names, [max(history[number]) for number in range(PARTITIONS)], await _ends(source))
            await commit(source, _LOAD.topic, here)
            await asyncio.sleep(seconds)
            copying.process.require_running()
            there = await committed(destination, copying.topic, names)
    progress("groups copied", topic=copying.topic, offsets=sum(map(len, there.values())))
    return copying.topic, {name: dict(enumerate(offsets)) for name, offsets in here.items()}, there


def chosen(names: Sequence[str], history: Sequence[int], ends: Sequence[int]) -> dict[str, list[int]]:
    """A random offset in each partition for each group: up to ``history``, and near the end for every second group."""
    numbers = random.Random(_SEED)
    offsets = {}
    for index, name in enumerate(names):
        anywhere = [numbers.randint(0, last) for last in history]
        near = [numbers.randint(max(0, end - _NEAR), end) for end in ends]
        offsets[name] = near if index % 2 else anywhere
    return offsets


async def _ends(source: KafkaCluster) -> list[int]:
    partitions = [Partition(_LOAD.topic, number) for number in range(PARTITIONS)]
    ends = await list_offsets(source, await source.metadata([_LOAD.topic]), partitions, Bound.STABLE_END)
    return [ends[partition] for partition in partitions]


def _last(read: Read) -> dict[int, int]:
    """The number of the last record of each partition."""
    return {partition: records[max(records)] for partition, records in read.items()}
