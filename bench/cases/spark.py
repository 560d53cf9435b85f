"""How fast 1, 2 and 4 Spark tasks copy one topic in local mode, and two tasks on a Spark cluster, in turn.

Every copy is a link of its own with four lanes, between the same two clusters; ``watching`` says what is timed.
The first copies by each are not counted: they make the brokers compile what they run. All are compared with two tasks
in local mode. On one machine the cluster can only cost: what more hosts bring, they bring by their own cores.
"""

import argparse
import functools
import logging
import statistics
from collections.abc import Mapping, Sequence

from bench.lib.clusters import Pair, delete_topics, plain_pair
from bench.lib.copying import Copier
from bench.lib.filling import Load, fill
from bench.lib.options import few, positive
from bench.lib.our_replicator import our_replicator
from bench.lib.row import Row
from bench.lib.spark_cluster import on_a_cluster
from bench.lib.watching import watch
from bench.lib.whole import require_whole

_LANES = "4"
_BASE = "2 tasks"

log = logging.getLogger("appliance.bench")


def _ways() -> dict[str, Copier]:
    local: dict[str, Copier] = {
        f"{tasks} task{'s' * (tasks > 1)}": functools.partial(
            our_replicator, settings={"TASKS": str(tasks), "LANES": _LANES}
        )
        for tasks in (1, 2, 4)
    }
    return local | {"cluster": functools.partial(on_a_cluster, settings={"TASKS": "2", "LANES": _LANES})}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench spark``."""
    parser.add_argument(
        "--records", type=positive, default=1_000_000, metavar="N", help="how many to copy (%(default)s)"
    )
    parser.add_argument("--runs", type=positive, default=2, metavar="N", help="copies by each, in turn (%(default)s)")
    parser.add_argument("--warming", type=few, default=2, metavar="N", help="copies by each before (%(default)s)")


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Measures.

    Raises:
        ProcessFailed, ToolMissing: something did not run, or a copy was not whole.
    """
    load = Load(arguments.records)
    ways = _ways()
    rates: dict[str, list[float]] = {name: [] for name in ways}
    async with plain_pair() as pair:
        await fill(pair.source, load)
        for number in range(arguments.warming + arguments.runs):
            for place, (name, copier) in enumerate(ways.items()):
                rate = await _rate(pair, load, copier, f"{number}x{place}")
                if number >= arguments.warming:
                    rates[name].append(rate)
                log.info("topic copied", extra={"fields": {"by": name, "rate": f"{rate:,.0f}/s"}})
    return rows(rates)


async def _rate(pair: Pair, load: Load, copier: Copier, link: str) -> float:
    """Records a second."""
    async with copier(pair, load, link) as copying:
        timeline = await watch(pair.destination, copying.topic, load.records, copying.process)
        await require_whole(pair, copying, load)
    await delete_topics(pair.destination)
    return timeline.rate(load.visible)


def rows(rates: Mapping[str, Sequence[float]]) -> list[Row]:
    """The medians, each beside that of two tasks in local mode."""
    base = statistics.median(rates[_BASE])
    return [
        Row(f"speed of {name}", "records/s", statistics.median(all_of), f"{_BASE}, local mode", base)
        for name, all_of in rates.items()
        if name != _BASE
    ]
