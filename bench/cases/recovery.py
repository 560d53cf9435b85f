"""The time to recover after SIGKILL of our whole replicator, and of one of Spark's Python workers.

Both clusters run, and a few records a second go into each partition of the source. The time runs from the kill until a
``read_committed`` consumer at the destination can read, from *every* partition, a record that was written after the
kill. For the replicator it includes the start of Python, Java and Spark, which begins when the killed processes are
gone; for a worker, the time in which Spark notices and starts the task again.
"""

import argparse
import asyncio
import os
import random
import signal
import statistics
import time
from collections.abc import Sequence

from appliance.errors import ProcessFailed
from bench.lib.clusters import Pair, plain_pair
from bench.lib.filling import Load
from bench.lib.our_replicator import our_replicator
from bench.lib.procfs import Process, family, processes
from bench.lib.progress import progress
from bench.lib.row import LIMIT, Row
from bench.lib.setup import add_number, whole
from bench.lib.steady_records import PARTITIONS, SteadyRecords, steady_records
from testbed.process import OwnedProcess

_LOAD = Load(records=0, partitions=PARTITIONS)
_LINK = "0"
_REPLICATOR_LIMIT = 10.0
_WORKER_LIMIT = 3.0
_DEADLINE = 90.0
_UNDISTURBED = (2.0, 7.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench recovery``."""
    add_number(parser, "--runs", 5, "kills of each, 1 to 20", kind=whole(1, 20))


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    async with plain_pair() as pair, steady_records(pair, _LOAD.topic, f"{_LOAD.topic}.ours{_LINK}") as flowing:
        replicator = [await _replicator_killed(pair, flowing) for _ in range(arguments.runs)]
        worker = await _workers_killed(pair, flowing, arguments.runs)
    return rows(replicator, worker)


def rows(replicator: Sequence[float], worker: Sequence[float]) -> list[Row]:
    """The medians, in seconds."""
    return [
        Row("recovery from SIGKILL of the replicator", "s", statistics.median(replicator), LIMIT, _REPLICATOR_LIMIT),
        Row("recovery from SIGKILL of a Python worker", "s", statistics.median(worker), LIMIT, _WORKER_LIMIT),
    ]


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
