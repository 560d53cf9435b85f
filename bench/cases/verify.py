"""The rate of a verification: one process, one and two Spark tasks in local mode, and one and two workers of a cluster.

All verify the same copy, alternately, on one machine; the rate counts the whole command, with the start of Java and
Spark. The first round does not count. One topic has four partitions; another holds everything in one of its four, so
that only parts of a log can be shared. SQL has made the copy of a third: of its records one process alone verifies in a
cluster. All rates are compared with that of one process.
"""

import argparse
import contextlib
import itertools
import statistics
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from appliance.errors import ProcessFailed
from bench.lib.clusters import Pair, plain_pair
from bench.lib.filling import Load, fill
from bench.lib.our_replicator import answer, link_file
from bench.lib.progress import progress
from bench.lib.row import Row
from bench.lib.setup import add_number, few
from bench.lib.spark_cluster import cluster_settings, spark_parts
from bench.lib.transforming import NO_SQL, WAYS, Way
from bench.lib.watching import watch
from bench.lib.workloads import OURS

_ALONE = "one process"
_WORKERS = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench verify``."""
    add_number(parser, "--records", 6_000_000, "records of each topic")
    add_number(parser, "--sql-records", 1_000_000, "the same with SQL")
    add_number(parser, "--runs", 2, "verifications by each")
    add_number(parser, "--warming", 1, "verifications by each that do not count", kind=few)


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    loads = {
        "four partitions": Load(arguments.records),
        "one partition": Load(arguments.records, "single", 1),
        "SQL": Load(arguments.sql_records, "cards", cards=True),
    }
    rates: dict[tuple[str, str], list[float]] = {}
    async with plain_pair() as pair:
        for load in loads.values():
            await _copied(pair, load)
        async with _workers(pair) as master:
            for number in range(arguments.warming + arguments.runs):
                for (shape, load), (way, settings) in _each(loads, master):
                    rate = await _rate(pair, load, way, settings)
                    if number >= arguments.warming:
                        rates.setdefault((shape, way), []).append(rate)
                    progress("topic verified", of=shape, by=way, rate=f"{rate:,.0f}/s")
    return rows(rates)


def _each(
    loads: Mapping[str, Load], master: Mapping[str, str]
) -> Sequence[tuple[tuple[str, Load], tuple[str, Mapping[str, str]]]]:
    """Every load with every way to verify it, which is described by settings of the command."""
    ways: dict[str, Mapping[str, str]] = {
        _ALONE: {},
        "1 task": {"TASKS": "1"},
        "2 tasks": {"TASKS": "2"},
        "1 worker": {**master, "TASKS": "1"},
        "2 workers": {**master, "TASKS": str(_WORKERS)},
    }
    each = itertools.product(loads.items(), ways.items())
    return [(load, way) for load, way in each if not load[1].cards or "SPARK_MASTER" not in way[1]]


def _way(load: Load) -> Way:
    return WAYS[OURS if load.cards else NO_SQL]


async def _copied(pair: Pair, load: Load) -> None:
    way = _way(load)
    await fill(pair.source, load)
    async with way.copier(pair, load, "0") as copying:
        await watch(pair.destination, copying.topic, way.left(load).records, copying.process)


@contextlib.asynccontextmanager
async def _workers(pair: Pair) -> AsyncIterator[Mapping[str, str]]:
    """A Spark cluster of workers with one core each, and the settings of its users."""
    settings = {**cluster_settings(), "TASKS": str(_WORKERS)}
    async with spark_parts(_env_file(pair, Load(0), "cluster", settings), _WORKERS, cores=1):
        yield settings


async def _rate(pair: Pair, load: Load, way: str, settings: Mapping[str, str]) -> float:
    """Records a second."""
    file = _env_file(pair, load, f"{load.topic}-{way.replace(' ', '-')}", settings)
    began = time.monotonic()
    report = await answer(file, "verify", "--spark", "no" if way == _ALONE else "yes")
    seconds = time.monotonic() - began
    if report["records"] != _way(load).left(load).records:
        raise ProcessFailed(f"the verification by {way} read {report['records']} records of topic {load.topic}")
    return load.records / seconds


def _env_file(pair: Pair, load: Load, name: str, settings: Mapping[str, str]) -> Path:
    return link_file(pair, load, "ourssql0" if load.cards else "ours0", f"verify-{name}", settings)


def rows(rates: Mapping[tuple[str, str], Sequence[float]]) -> list[Row]:
    """The medians, each beside the median of one process."""
    return [
        Row(
            f"verify {shape}: {way}",
            "records/s",
            statistics.median(all_of),
            _ALONE,
            statistics.median(rates[shape, _ALONE]),
        )
        for (shape, way), all_of in rates.items()
        if way != _ALONE
    ]
