"""The rate of copying over a long line: our replicator and MirrorMaker 2 alternately, beside the line itself.

A proxy stands between the source cluster and the copying program, which runs at the destination's end, as both should
in practice. It delays each direction by half a round trip, and limits the bandwidth, which all connections share. The
source's brokers advertise the proxy's address, so no connection avoids it.

The capacity of the line is measured with plain streams just before. A copy's share of it is computed from the size of
the source's log, in its stored codec. ``watching`` describes the timed part. It excludes data that is read before the
first record becomes visible, up to a twentieth of the total.

MirrorMaker 2 runs with the tuning of ``bin/bench replicate``, and again with a tuning for the line: its consumers fetch
eight times as much of a partition, and the system sets their socket buffers. The proxy ends TCP on both sides. This
favours the first tuning: on a real line of 100 ms, its buffers of 64 KiB would limit each connection to 0.65 MB/s.
"""

import argparse
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from bench.lib.clusters import Pair, delete_topics
from bench.lib.copying import Copier, Copying
from bench.lib.counting import require_complete
from bench.lib.filling import Load, fill
from bench.lib.mirror_maker import mirror_maker
from bench.lib.procfs import busy_seconds
from bench.lib.progress import progress
from bench.lib.row import Row, medians
from bench.lib.setup import add_number
from bench.lib.wan_sites import Sites, far_sites
from bench.lib.watching import watch
from bench.lib.workloads import COPIERS, MIRROR_MAKER, OURS
from testbed.cluster import Cluster

_TUNED, _LINE = f"{MIRROR_MAKER}, tuned for it", "the line"
_GOALS: Mapping[str, float] = {MIRROR_MAKER: 5.0}
_LINE_GOALS = {16: 0.8}
_CAPACITY_SECONDS = 5.0
_MEGABYTE = 1e6


@contextlib.asynccontextmanager
async def _tuned(pair: Pair, load: Load, run: str) -> AsyncIterator[Copying]:
    """MirrorMaker 2, tuned as an engineer would for a long line; see ``bench.lib.copying.Copier``."""
    number = f"{run}t"
    consumer = {"max.partition.fetch.bytes": 8 << 20, "fetch.max.bytes": 64 << 20, "receive.buffer.bytes": -1}
    settings = {f"mirrored{number}.consumer.{name}": str(value) for name, value in consumer.items()}
    async with mirror_maker(pair, load, number, settings) as copying:
        yield copying


_COPIERS: Mapping[str, Copier] = {OURS: COPIERS[OURS], MIRROR_MAKER: COPIERS[MIRROR_MAKER], _TUNED: _tuned}


@dataclass(frozen=True, slots=True)
class Workload:
    """The rates of a load's copies by contender, and of the line with as many streams, in megabytes a second."""

    partitions: int
    capacity: float
    rates: Mapping[str, Sequence[float]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench wan``."""
    add_number(parser, "--partitions", (1, 16), "partitions of each topic")
    add_number(parser, "--runs", 2, "copies by each program")
    add_number(parser, "--records", 2_500_000, "records of each topic")
    add_number(parser, "--round-trip", 100.0, "milliseconds of a round trip", metavar="MS")
    add_number(parser, "--bandwidth", 50.0, "bandwidth in MB/s", metavar="MB")


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    async with far_sites(arguments.round_trip / 1000, arguments.bandwidth * _MEGABYTE) as sites:
        loads = [
            Load(arguments.records, f"measured{partitions}", partitions=partitions)
            for partitions in arguments.partitions
        ]
        workloads = [await _workload(sites, load, arguments.runs) for load in loads]
    return [row for workload in workloads for row in rows(workload)]


async def _workload(sites: Sites, load: Load, runs: int) -> Workload:
    await fill(sites.source, load)
    capacity = await sites.capacity(load.partitions, _CAPACITY_SECONDS)
    progress("line measured", streams=load.partitions, rate=f"{capacity:.1f}MB/s")
    rates: dict[str, list[float]] = {name: [] for name in _COPIERS}
    for number in range(runs):
        for name, copier in _COPIERS.items():
            rates[name].append(await _rate(sites, load, copier, f"{load.partitions}x{number}"))
    return Workload(load.partitions, capacity, rates)


async def _rate(sites: Sites, load: Load, copier: Copier, run: str) -> float:
    """Make one copy; return the megabytes a second of the source's log."""
    pair = sites.pair
    proxy_before = busy_seconds(sites.proxy.pid)
    async with copier(pair, load, run) as copying:
        timeline = await watch(pair.destination, copying.topic, load.records, copying.process)
        proxy = busy_seconds(sites.proxy.pid) - proxy_before
        sites.proxy.require_running()
        await require_complete(pair, copying, load)
    await delete_topics(pair.destination)
    rate = timeline.rate(_log_bytes(sites.source, load) / _MEGABYTE)
    progress(
        "topic copied",
        by=copying.process.name,
        partitions=load.partitions,
        rate=f"{rate:.1f}MB/s",
        records=f"{timeline.rate(load.visible):,.0f}/s",
        proxy=f"{proxy:.1f}s",
    )
    return rate


def _log_bytes(cluster: Cluster, load: Load) -> int:
    """The bytes of the load on the only broker's disk, as many as in the answers to a Fetch."""
    segments = (cluster.broker(0).directory / "data").glob(f"{load.topic}-*/*.log")
    return sum(segment.stat().st_size for segment in segments)


def rows(workload: Workload) -> list[Row]:
    """The medians of the rates."""
    name = f"{workload.partitions} partition{'s' if workload.partitions > 1 else ''} by a long line"
    goals = {**_GOALS, **({_LINE: _LINE_GOALS[workload.partitions]} if workload.partitions in _LINE_GOALS else {})}
    return medians(name, "MB/s", OURS, {**workload.rates, _LINE: [workload.capacity]}, goals)
