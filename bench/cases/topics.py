"""Start-up, delays and cost with many topics: our replicator with a tenth of them and with all, MirrorMaker 2 with all.

Each topic has ten partitions with a record in each. *Start-up* lasts from the start of the process until all records
are visible at the destination. *A new topic* lasts from the request that makes it until the first record of each of its
partitions is visible. Then the program is left idle for a while, and then gets ten records a second for each topic.
Every program gets new clusters of its own. MirrorMaker 2 looks for topics every five seconds here; its default is ten
minutes.
"""

import argparse
import asyncio
import functools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from bench.lib.clusters import Pair, plain_pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from bench.lib.footprint import Footprint, footprint
from bench.lib.mirror_maker import mirror_maker
from bench.lib.our_replicator import our_replicator
from bench.lib.progress import progress
from bench.lib.row import LIMIT, Row
from bench.lib.setup import add_number, setup
from bench.lib.topic_load import PARTITIONS, PATTERN, arrived, load, make, named
from bench.lib.workloads import MIRROR_MAKER

_PYTHON_MEGABYTES = 1_000.0
_NEW_TOPIC_SECONDS = 5.0
_GROWTH = 10.0
"""The goal: ten times as many partitions cost at most ten times as much."""

_NEW_TOPICS = 3
_WARMING_SECONDS = 5.0
_HEAP_MEGABYTES = 2_048
_PEER_SETTINGS = {"refresh.topics.interval.seconds": "5"}


Start = Callable[[Pair], AbstractAsyncContextManager[Copying]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One contender with ``topics`` topics: its times, its ``delays`` under load in seconds, and its cost idle and
    busy."""

    topics: int
    startup: float
    new_topic: float
    idle: Footprint
    busy: Footprint
    delays: Sequence[float]

    @property
    def delay(self) -> float:
        """The median delay in milliseconds; infinite without any record."""
        return 1000 * statistics.median(self.delays) if self.delays else math.inf


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench topics``."""
    add_number(parser, "--topics", 1_000, "number of topics, a multiple of ten", kind=_tens)
    parser.add_argument("--alone", action="store_true", help="leave MirrorMaker 2 out")
    add_number(parser, "--seconds", 30.0, "seconds of idleness, and of load")
    parser.set_defaults(setup=functools.partial(setup, heap_megabytes=_HEAP_MEGABYTES))


def _tens(text: str) -> int:
    if not text.isdecimal() or int(text) < 10 or int(text) % 10:
        raise argparse.ArgumentTypeError(f"expected a multiple of 10, got {text}")
    return int(text)


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    few = await _trial(_ours, arguments.topics // 10, arguments.seconds)
    large = await _trial(_ours, arguments.topics, arguments.seconds)
    peer = None if arguments.alone else await _trial(_theirs, arguments.topics, arguments.seconds)
    return rows(few, large, peer)


def _load() -> Load:
    """The load of both contenders, by the pattern of the topics' names."""
    return Load(0, PATTERN, PARTITIONS)


def _ours(pair: Pair) -> AbstractAsyncContextManager[Copying]:
    return our_replicator(pair, _load(), "1")


def _theirs(pair: Pair) -> AbstractAsyncContextManager[Copying]:
    return mirror_maker(pair, _load(), "1", _PEER_SETTINGS)


async def _trial(start: Start, topics: int, seconds: float) -> Trial:
    names = named(range(topics))
    async with plain_pair(_HEAP_MEGABYTES) as pair:
        await make(pair.source, names)
        began = time.perf_counter()
        async with start(pair) as copying:
            copies = {name: copying.topic.replace(PATTERN, name) for name in names}
            startup = await arrived(pair.destination, copies.values(), copying.process) - began
            progress("all topics copied", topics=topics, seconds=round(startup, 2))
            new_topic = max([await _new_topic(pair, copying, topics + number) for number in range(_NEW_TOPICS)])
            idle = await footprint(copying.process.pid, seconds)
            async with load(pair, copies) as delays:
                await asyncio.sleep(_WARMING_SECONDS)
                delays.clear()
                busy = await footprint(copying.process.pid, seconds)
            trial = Trial(topics, startup, new_topic, idle, busy, delays)
            progress("measured", by=copying.process.name, **_fields(trial))
            return trial


async def _new_topic(pair: Pair, copying: Copying, number: int) -> float:
    (name,) = named([number])
    began = time.perf_counter()
    await make(pair.source, [name])
    return await arrived(pair.destination, [copying.topic.replace(PATTERN, name)], copying.process) - began


def _fields(trial: Trial) -> dict[str, str]:
    """The trial's fields in a progress line."""
    fields = {"topics": str(trial.topics), "startup": f"{trial.startup:.1f}s", "new_topic": f"{trial.new_topic:.2f}s"}
    for name, cost in (("idle", trial.idle), ("busy", trial.busy)):
        fields |= {f"{name}_java": str(cost.java), f"{name}_others": str(cost.others)}
    return fields | {"delay": f"{trial.delay:.0f}ms"}


def rows(few: Trial, large: Trial, peer: Trial | None) -> list[Row]:
    """The rows: ours with many topics, beside the limits, ours with few, and the peer's with many."""
    less, pythons = f"{few.topics} topics", (large.idle.others, large.busy.others)
    found = [
        Row("a new topic", "s", large.new_topic, LIMIT, _NEW_TOPIC_SECONDS, 1),
        Row("memory of Python", "MB", max(cost.memory for cost in pythons), LIMIT, _PYTHON_MEGABYTES, 1),
        Row("start-up", "s", large.startup, less, few.startup),
        Row("idle Python", "% of a core", large.idle.others.processor, less, few.idle.others.processor, _GROWTH),
        Row("busy Python", "% of a core", large.busy.others.processor, less, few.busy.others.processor, _GROWTH),
        Row("delay under load", "ms", large.delay, less, few.delay),
    ]
    return found if peer is None else found + _beside(large, peer)


def _beside(ours: Trial, peer: Trial) -> list[Row]:
    return [
        Row("start-up", "s", ours.startup, MIRROR_MAKER, peer.startup),
        Row("a new topic", "s", ours.new_topic, MIRROR_MAKER, peer.new_topic),
        Row("idle with Java", "% of a core", ours.idle.total.processor, MIRROR_MAKER, peer.idle.total.processor),
        Row("busy with Java", "% of a core", ours.busy.total.processor, MIRROR_MAKER, peer.busy.total.processor),
        Row("memory with Java", "MB", ours.busy.total.memory, MIRROR_MAKER, peer.busy.total.memory),
        Row("delay under load", "ms", ours.delay, MIRROR_MAKER, peer.delay),
    ]
