"""The time to recover from a kill: of the only replicator, of a Python worker, and of one of two replicators.

Both clusters run, and a few records a second go into each partition of the source. *Recovery* runs from the kill until
a ``read_committed`` consumer at the destination can read, from *every* partition, a record that was written after the
kill. For the replicator it includes the start of Python, Java and Spark, which begins when the killed processes are
gone; for a worker, the time in which Spark notices and starts the task again.

*Hand-overs* are those of two replicators of one link, and of MirrorMaker 2 in a Connect cluster of two workers, exactly
once and with one task (``bench.lib.handing_over``). MirrorMaker 2 is measured with ``TUNED`` of
``bench.lib.connect_workers``, and a few times with Connect's own settings: then the task of a killed worker waits five
minutes for that worker, except if it led the group, because a new leader knows no earlier assignment.
"""

import argparse
import asyncio
import os
import random
import signal
import statistics
import time
from collections.abc import Mapping, Sequence

from appliance.errors import ProcessFailed
from bench.lib.clusters import Pair, plain_pair
from bench.lib.connect_workers import DEFAULTS, TUNED, connect_workers
from bench.lib.filling import Load
from bench.lib.handing_over import KILL, STOP, HandOvers, hand_overs
from bench.lib.our_replicator import our_replicator
from bench.lib.procfs import Process, family, processes
from bench.lib.progress import progress
from bench.lib.replicators import replicators
from bench.lib.row import LIMIT, Row
from bench.lib.setup import add_number, few, whole
from bench.lib.steady_records import PARTITIONS, SteadyRecords, steady_records
from bench.lib.workloads import MIRROR_MAKER, OURS
from testbed.process import OwnedProcess

_LOAD = Load(records=0, partitions=PARTITIONS)
_LINK = "0"
_REPLICATOR_LIMIT = 10.0
_WORKER_LIMIT = 3.0
_HAND_OVER_LIMITS = {KILL: 15.0, STOP: 3.0}
_DEADLINE = 90.0
_PATIENT_DEADLINE = 400.0
"""Seconds; Connect's own settings let a task wait for 300."""

_UNDISTURBED = (2.0, 7.0)
_AS_INSTALLED = f"{MIRROR_MAKER}, as installed"
Figures = Mapping[str, HandOvers]
"""The hand-overs of each contender that had some."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench recovery``."""
    add_number(parser, "--runs", 5, "kills of the only replicator, and of a worker, 0 to 20", kind=whole(0, 20))
    add_number(parser, "--hand-overs", 20, "kills, and stops, of the active one of two, 0 to 100", kind=few)
    add_number(parser, "--as-installed", 2, "the same of MirrorMaker 2 with Connect's own settings", kind=few)


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    measured: list[Row] = []
    async with plain_pair() as pair:
        if arguments.runs:
            async with steady_records(pair, _LOAD.topic, f"{_LOAD.topic}.ours{_LINK}") as flowing:
                replicator = [await _replicator_killed(pair, flowing) for _ in range(arguments.runs)]
                worker = await _workers_killed(pair, flowing, arguments.runs)
            measured = rows(replicator, worker)
        figures: dict[str, HandOvers] = {}
        if arguments.hand_overs:
            figures[OURS] = await _of_replicators(pair, arguments.hand_overs)
            figures[MIRROR_MAKER] = await _of_workers(pair, "tuned", TUNED, arguments.hand_overs)
        if arguments.hand_overs and arguments.as_installed:
            figures[_AS_INSTALLED] = await _of_workers(pair, "installed", DEFAULTS, arguments.as_installed)
    return measured + hand_over_rows(figures)


def rows(replicator: Sequence[float], worker: Sequence[float]) -> list[Row]:
    """The medians, in seconds."""
    return [
        Row("recovery from SIGKILL of the replicator", "s", statistics.median(replicator), LIMIT, _REPLICATOR_LIMIT),
        Row("recovery from SIGKILL of a Python worker", "s", statistics.median(worker), LIMIT, _WORKER_LIMIT),
    ]


def hand_over_rows(figures: Figures) -> list[Row]:
    """The medians and the longest hand-overs, in seconds: ours beside each other contender's and the limit."""
    found = []
    for number, limit in _HAND_OVER_LIMITS.items() if OURS in figures else ():
        name = f"hand-over after {number.name}"
        seconds = {who: each[number] for who, each in figures.items()}
        ours = seconds.pop(OURS)
        for who, theirs in seconds.items():
            found.append(Row(f"{name}, p50", "s", statistics.median(ours), who, statistics.median(theirs)))
            found.append(Row(f"{name}, max", "s", max(ours), who, max(theirs)))
        found.append(Row(f"{name}, max", "s", max(ours), LIMIT, limit))
    return found


async def _of_replicators(pair: Pair, times: int) -> HandOvers:
    load = Load(0, "handed", PARTITIONS)
    async with (
        steady_records(pair, load.topic, f"{load.topic}.pair") as flowing,
        replicators(pair, load, "pair") as both,
    ):
        return await hand_overs(both, flowing, times, _DEADLINE)


async def _of_workers(pair: Pair, alias: str, settings: Mapping[str, str], times: int) -> HandOvers:
    topic = f"handed-{alias}"
    deadline = _PATIENT_DEADLINE if settings == DEFAULTS else _DEADLINE
    async with (
        steady_records(pair, topic, f"{alias}.{topic}") as flowing,
        connect_workers(pair, topic, alias, settings) as both,
    ):
        return await hand_overs(both, flowing, times, deadline)


async def _replicator_killed(pair: Pair, flowing: SteadyRecords) -> float:
    async with our_replicator(pair, _LOAD, _LINK) as copying:
        await _undisturbed(flowing, copying.process)
        begun = time.perf_counter()
        await copying.process.kill()
    async with our_replicator(pair, _LOAD, _LINK) as copying:
        return await _recovered(flowing, copying.process, begun, "the replicator")


async def _workers_killed(pair: Pair, flowing: SteadyRecords, times: int) -> list[float]:
    """Kill the workers of one replicator, each after the recovery from the previous kill."""
    seconds = []
    async with our_replicator(pair, _LOAD, _LINK) as copying:
        for _ in range(times):
            await _undisturbed(flowing, copying.process)
            victim = busiest_worker(family(copying.process.pid, processes()))
            begun = time.perf_counter()
            os.kill(victim, signal.SIGKILL)
            seconds.append(await _recovered(flowing, copying.process, begun, "a Python worker"))
    return seconds


async def _undisturbed(flowing: SteadyRecords, copying: OwnedProcess) -> None:
    await flowing.arrives(copying, _DEADLINE)
    await asyncio.sleep(random.uniform(*_UNDISTURBED))
    await flowing.arrives(copying, _DEADLINE)


async def _recovered(flowing: SteadyRecords, copying: OwnedProcess, begun: float, killed: str) -> float:
    await flowing.arrives(copying, _DEADLINE)
    seconds = time.perf_counter() - begun
    progress("recovered", killed=killed, seconds=f"{seconds:.2f}")
    return seconds


def busiest_worker(members: Sequence[Process]) -> int:
    """The busiest Python worker: the fork of Spark's daemon with the most processor time."""
    java = {member.pid for member in members if member.is_java}
    daemons = {member.pid for member in members if member.parent in java}
    workers = [member for member in members if member.parent in daemons]
    if not workers:
        raise ProcessFailed("Spark has started no Python worker")
    return max(workers, key=lambda worker: worker.cpu_seconds).pid
