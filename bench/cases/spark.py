"""The rate of 1, 2 and 4 Spark tasks in local mode, and of two tasks on a Spark cluster, alternately.

Each copy has its own link with four lanes, between the same two clusters; ``watching`` describes the timed part. The
first copy of each kind does not count, because the brokers compile their code during it. All rates are compared with
that of two tasks in local mode. On one machine a cluster only adds cost, because its gain is the cores of more hosts.
"""

import argparse
import contextlib
import functools
import logging
import os
import secrets
import statistics
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from bench.lib.clusters import Pair, delete_topics, plain_pair
from bench.lib.copying import Copier, Copying
from bench.lib.counting import require_complete
from bench.lib.filling import Load, fill
from bench.lib.our_replicator import env_text, environment, our_replicator
from bench.lib.row import Row
from bench.lib.running import OWN_ADDRESS, free_port
from bench.lib.setup import few, positive
from bench.lib.watching import watch
from testbed.process import OwnedProcess

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
        "--records", type=positive, default=1_000_000, metavar="N", help="records to copy (%(default)s)"
    )
    parser.add_argument("--runs", type=positive, default=2, metavar="N", help="copies by each set-up (%(default)s)")
    parser.add_argument(
        "--warming", type=few, default=2, metavar="N", help="copies by each that do not count (%(default)s)"
    )


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows.

    Raises:
        ProcessFailed, ToolMissing: a program did not run, or a copy was incomplete.
    """
    load = Load(arguments.records)
    ways = _ways()
    rates: dict[str, list[float]] = {name: [] for name in ways}
    async with plain_pair() as pair:
        await fill(pair.source, load)
        for number in range(arguments.warming + arguments.runs):
            for index, (name, copier) in enumerate(ways.items()):
                rate = await _rate(pair, load, copier, f"{number}x{index}")
                if number >= arguments.warming:
                    rates[name].append(rate)
                log.info("topic copied", extra={"fields": {"by": name, "rate": f"{rate:,.0f}/s"}})
    return rows(rates)


async def _rate(pair: Pair, load: Load, copier: Copier, link: str) -> float:
    """Records a second."""
    async with copier(pair, load, link) as copying:
        timeline = await watch(pair.destination, copying.topic, load.records, copying.process)
        await require_complete(pair, copying, load)
    await delete_topics(pair.destination)
    return timeline.rate(load.visible)


def rows(rates: Mapping[str, Sequence[float]]) -> list[Row]:
    """The medians, each beside the median of two tasks in local mode."""
    base = statistics.median(rates[_BASE])
    return [
        Row(f"speed of {name}", "records/s", statistics.median(all_of), f"{_BASE}, local mode", base)
        for name, all_of in rates.items()
        if name != _BASE
    ]


WORKERS = 2


@contextlib.asynccontextmanager
async def on_a_cluster(
    pair: Pair, load: Load, run: str, settings: Mapping[str, str], workers: int = WORKERS
) -> AsyncIterator[Copying]:
    """Copy the load; see ``bench.lib.copying.Copier``. Each worker has as many cores as its share of TASKS."""
    both = {**settings, **cluster_settings()}
    cores = int(settings["TASKS"]) // workers
    file = pair.directory / f"cluster{run}.sh"
    bootstrap = pair.source.home_bootstrap, pair.destination.home_bootstrap
    file.touch(mode=0o600)
    file.write_text(env_text(*bootstrap, load.topic, f"ours{run}", both))
    async with contextlib.AsyncExitStack() as parts:
        for number in range(workers + 1):
            options = ["worker", "--cores", str(cores)] if number else ["master"]
            part = await start_part(pair.directory, file, f"spark{run}-{number}", options)
            parts.push_async_callback(part.kill)
        async with our_replicator(pair, load, run, both) as copying:
            yield copying


async def start_part(directory: Path, env_file: Path, name: str, options: Sequence[str]) -> OwnedProcess:
    """A master or a worker of a Spark cluster."""
    command = [sys.executable, "-m", "appliance.cli", "spark", *options, "--env-file", str(env_file)]
    return await OwnedProcess.start(name, command, directory / f"{name}.log", environment(os.environ, directory))


def cluster_settings() -> dict[str, str]:
    """The settings of a new Spark cluster on this machine."""
    master = f"spark://{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}"
    return {"SPARK_MASTER": master, "SPARK_AUTHENTICATE_SECRET": secrets.token_urlsafe(33)}
