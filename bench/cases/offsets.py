"""Exactness of the offsets of consumer groups at the destination, beside MirrorMaker 2's on the same history.

A topic has records that carry their partition and a number, half of them in transactions, of which every fifth is
aborted; the traffic goes on all the time. Groups have committed random offsets of its history. Ours and then
MirrorMaker 2, both with a round of groups every five seconds, copy the topic from its beginning. Each has some rounds
more once its copy holds the history. Then the offsets that it has committed are compared by the records themselves:
those that a consumer would read again from there on, and those that it would miss.

MirrorMaker 2 syncs groups as it does by default, but for the five seconds: its interval is a minute.
"""

import argparse
import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict

from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.settings.values import Side
from bench.lib.clusters import Pair, kafka_cluster, make_topic, plain_pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from bench.lib.group_commits import commit, committed, group_names
from bench.lib.mirror_maker import mirror_maker
from bench.lib.numbered_records import NumberedRecords, Read, read_until, read_whole
from bench.lib.offset_errors import OffsetErrors, Offsets, errors
from bench.lib.our_replicator import our_replicator
from bench.lib.row import Row
from bench.lib.setup import positive
from bench.lib.watching import until_begun

PARTITIONS = 24

_LOAD = Load(records=0, partitions=PARTITIONS)
_RUN = "0"
_SEED = 21
_BEGIN_SECONDS = 90.0
_OURS: Mapping[str, str] = {"REPLICA_GROUPS_REGEX": "bench-.*", "GROUPS_SYNC_SECONDS": "5"}
_MIRROR_MAKER: Mapping[str, str] = {
    "groups": "bench-.*",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "5",
    "emit.checkpoints.interval.seconds": "5",
}

log = logging.getLogger("appliance.bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench offsets``."""
    parser.add_argument("--groups", type=positive, default=50, metavar="N", help="number of groups (%(default)s)")
    parser.add_argument(
        "--records", type=positive, default=240_000, metavar="N", help="records of the history (%(default)s)"
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, metavar="S", help="seconds for the groups after the copy (%(default)g)"
    )


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows.

    Raises:
        ProcessFailed, ToolMissing: something did not run, or the copies did not hold the history in time.
    """
    names = group_names(arguments.groups)
    async with plain_pair() as pair:
        await make_topic(pair.source, _LOAD.topic, PARTITIONS)
        traffic = NumberedRecords(pair.source, _LOAD.topic, PARTITIONS)
        await traffic.history(arguments.records)
        last = _last(await read_whole(pair.source, _LOAD.topic, PARTITIONS))
        offsets = await _commit(pair, names)
        copies = []
        async with traffic.flowing():
            for program in (our_replicator(pair, _LOAD, _RUN, _OURS), mirror_maker(pair, _LOAD, _RUN, _MIRROR_MAKER)):
                copies.append(await _translated(pair, program, names, last, arguments.seconds))
        source = await read_whole(pair.source, _LOAD.topic, PARTITIONS)
        ours, theirs = [
            errors(source, await read_whole(pair.destination, copy, PARTITIONS), offsets, found)
            for copy, found in copies
        ]
    return rows(ours, theirs, len(names) * PARTITIONS)


def rows(ours: OffsetErrors, theirs: OffsetErrors, offsets: int) -> list[Row]:
    """Our errors beside MirrorMaker 2's; ``offsets`` is their number."""
    figures = [
        (f"exact of {offsets:,}", "offsets", ours.exact, theirs.exact),
        (f"missing of {offsets:,}", "offsets", ours.missing, theirs.missing),
        ("read again", "records", ours.again, theirs.again),
        ("read again, most of an offset", "records", ours.most_again, theirs.most_again),
        ("missed", "records", ours.missed, theirs.missed),
    ]
    return [Row(name, unit, our, "MirrorMaker 2", their) for name, unit, our, their in figures]


async def _commit(pair: Pair, names: Sequence[str]) -> dict[str, dict[int, int]]:
    """Commit for each group a random offset in each partition; return them."""
    chosen = random.Random(_SEED)
    async with kafka_cluster(pair.source, Side.SOURCE) as source:
        partitions = [(_LOAD.topic, number) for number in range(PARTITIONS)]
        known = await source.metadata([_LOAD.topic])
        ends = await list_offsets(source, known, partitions, Bound.STABLE_END)
        offsets = {name: [chosen.randint(0, ends[each]) for each in partitions] for name in names}
        await commit(source, _LOAD.topic, offsets)
    return {name: dict(enumerate(each)) for name, each in offsets.items()}


async def _translated(
    pair: Pair,
    program: AbstractAsyncContextManager[Copying],
    names: Sequence[str],
    last: Mapping[int, int],
    seconds: float,
) -> tuple[str, Offsets]:
    """The copy, and the offsets of the groups in it ``seconds`` after it holds the history."""
    async with program as copying, kafka_cluster(pair.destination, Side.DESTINATION) as destination:
        await until_begun(pair.destination, copying.topic, copying.process, _BEGIN_SECONDS)
        await read_until(pair.destination, copying.topic, last)
        await asyncio.sleep(seconds)
        copying.process.require_running()
        found = await committed(destination, copying.topic, names)
    log.info("groups copied", extra={"fields": {"topic": copying.topic, "offsets": sum(map(len, found.values()))}})
    return copying.topic, found


def _last(read: Read) -> dict[int, int]:
    """The number of the last record of each partition."""
    return {partition: records[max(records)] for partition, records in read.items()}
