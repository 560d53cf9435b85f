"""Lanes and executors where few partitions carry everything, a change of lanes, and the driver's cost.

The load is 16 partitions of which four have all records. The hash gives these four to one lane of two or four, and to
two lanes of eight. A Spark cluster copies it with 2, 4 and 8 lanes over 1, 2 and 4 executors of one core each, and with
the most of both once more after ``appliance lanes --balance``. Each copy has its own link. A rate is that from the
first tenth of the records to the last one. Then a link with many partitions, each with a record, is left idle: the
driver is measured, with a tenth of the partitions and with all, and ``appliance lanes --set`` says how long nothing
could be copied.
"""

import argparse
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from bench.lib.clusters import Pair, delete_topics, make_topic, plain_pair
from bench.lib.copying import Copying
from bench.lib.counting import require_complete
from bench.lib.filling import Load, fill, write
from bench.lib.footprint import Cost, cost_of
from bench.lib.our_replicator import answer, our_replicator
from bench.lib.progress import progress
from bench.lib.row import LIMIT, Row
from bench.lib.setup import add_number, setup
from bench.lib.spark_cluster import on_a_cluster
from bench.lib.topic_load import PARTITIONS, PATTERN, arrived, make, named
from bench.lib.watching import watch

_LANES, _EXECUTORS = (2, 4, 8), (1, 2, 4)
_PARTITIONS, _APART = 16, 4
_CHANGED_SECONDS = 600.0
_STALL_SECONDS, _GROWTH = 10.0, 10.0
_HEAP_MEGABYTES = 2_048


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench lanes``."""
    add_number(parser, "--records", 1_000_000, "records to copy")
    add_number(parser, "--lanes", _LANES, "numbers of lanes")
    add_number(parser, "--executors", _EXECUTORS, "numbers of executors")
    add_number(parser, "--topics", 1_000, "topics of ten partitions, idle")
    add_number(parser, "--seconds", 30.0, "seconds of idleness")
    parser.set_defaults(setup=functools.partial(setup, heap_megabytes=_HEAP_MEGABYTES))


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    load = Load(arguments.records, partitions=_PARTITIONS, apart=_APART)
    rates: dict[str, float] = {}
    async with plain_pair() as pair:
        await fill(pair.source, load)
        for lanes, executors in itertools.product(arguments.lanes, arguments.executors):
            name = _named(lanes, executors)
            rates[name] = await _hashed(pair, load, lanes, executors)
            progress("topic copied", by=name, rate=f"{rates[name]:,.0f}/s")
        placed = await _placed(pair, load, max(arguments.lanes), max(arguments.executors))
    few = await _idle(max(1, arguments.topics // 10), arguments.seconds)
    many = await _idle(arguments.topics, arguments.seconds)
    return rows(rates, placed, few, many)


def rows(rates: Mapping[str, float], placed: float, few: tuple[Cost, float], many: tuple[Cost, float]) -> list[Row]:
    """The rates beside the first one, that by load beside the last one, by the hash, and the driver's cost."""
    names = list(rates)
    base, hashed = names[0], names[-1]
    found = [
        Row(f"speed of {name}", "records/s", rate, base, rates[base]) for name, rate in rates.items() if name != base
    ]
    (less, _), (more, stall) = few, many
    return [
        *found,
        Row(f"speed of {hashed}, by load", "records/s", placed, f"{hashed}, by hash", rates[hashed]),
        Row("memory of the driver", "MB", more.memory, "a tenth of the partitions", less.memory, _GROWTH),
        Row("driver, idle", "% of a core", more.processor, "a tenth of the partitions", less.processor, _GROWTH),
        Row("nothing copied while lanes change", "s", stall, LIMIT, _STALL_SECONDS, 1),
    ]


def _named(lanes: int, executors: int) -> str:
    return f"{lanes} lanes, {executors} executor{'s' * (executors > 1)}"


def _settings(lanes: int, executors: int) -> dict[str, str]:
    return {"TASKS": str(executors), "LANES": str(lanes)}


async def _hashed(pair: Pair, load: Load, lanes: int, executors: int) -> float:
    """Records a second of a new link, whose partitions lie by their hash."""
    run, settings = f"{lanes}x{executors}", _settings(lanes, executors)
    async with on_a_cluster(pair, load, run, settings, executors) as copying:
        rate = await _rate(pair, copying, load)
    await delete_topics(pair.destination)
    return rate


async def _placed(pair: Pair, load: Load, lanes: int, executors: int) -> float:
    """The same of a link that has balanced its lanes by the first records."""
    whole, first = (Load(n, "placed", _PARTITIONS, apart=_APART) for n in (load.records, 16 * _PARTITIONS))
    settings = _settings(lanes, executors)
    await make_topic(pair.source, first.topic, first.partitions, {})
    await write(pair.source, first)
    async with our_replicator(pair, first, "placed", settings) as copying:
        await _rate(pair, copying, first)
    await _change(pair, "placed", "--balance", "--sample", "0")
    await write(pair.source, whole)
    async with on_a_cluster(pair, whole, "placed", settings, executors) as copying:
        rate = await _rate(pair, copying, Load(whole.records + first.records, whole.topic, _PARTITIONS))
    await delete_topics(pair.destination)
    return rate


async def _rate(pair: Pair, copying: Copying, load: Load) -> float:
    """Records a second from the first tenth to the last one."""
    timeline = await watch(pair.destination, copying.topic, load.records, copying.process)
    await require_complete(pair, copying, load)
    return timeline.rate(load.records, after=0.1)


async def _change(pair: Pair, run: str, *options: str) -> Any:
    """The JSON of ``appliance lanes`` with these options."""
    return await answer(pair.directory / f"ours{run}.sh", "lanes", "--yes", *options)


async def _idle(topics: int, seconds: float) -> tuple[Cost, float]:
    """The driver's cost with many idle partitions, and the seconds of a change of lanes without any copying."""
    names: Sequence[str] = named(range(topics))
    load = Load(0, PATTERN, PARTITIONS)
    async with plain_pair(_HEAP_MEGABYTES) as pair:
        await make(pair.source, names)
        async with our_replicator(pair, load, "idle", _settings(4, 2)) as copying:
            await arrived(pair.destination, [copying.topic.replace(PATTERN, name) for name in names], copying.process)
            cost = await cost_of(copying.process.pid, seconds)
            stall = float((await _change(pair, "idle", "--set", "8"))["stall_seconds"])
            await copying.process.wait_for_line("lanes changed lanes=8", _CHANGED_SECONDS)
    progress("measured", topics=topics, driver=cost, stall=f"{stall}s")
    return cost, stall
