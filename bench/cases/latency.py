"""The latency from a producer to a consumer of the copy: our replicator and MirrorMaker 2 alternately.

One program sends keyed records of 500 bytes at a constant rate to four partitions, with a producer's usual linger.
Another receives them at ``read_committed``; MirrorMaker 2's copies, at least once, are visible at once. The time
includes both brokers and the copying, and for ours the transaction and its commit. The first seconds of each copy do
not count. The first copy does not count either, because the brokers compile their code during it. A newly started
program makes each copy, of a new topic. The records begin when the program has copied a first one, which does not
count.
"""

import argparse
import asyncio
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer

from bench.lib.clients import Refused, kafka_errors_as
from bench.lib.clusters import Pair, make_topic, plain_pair
from bench.lib.copying import Copier, Copying
from bench.lib.filling import Load
from bench.lib.latency_figures import Figures, samples_of
from bench.lib.our_replicator import our_replicator, succeeds
from bench.lib.progress import progress
from bench.lib.row import LIMIT, Row
from bench.lib.running import running
from bench.lib.setup import add_number, whole
from bench.lib.watching import UNBEGUN_SECONDS, until_begun
from bench.lib.workloads import COPIERS, MIRROR_MAKER, OURS
from testbed.cluster import Cluster

_PARTITIONS = 4
_P99_LIMITS = {200: 60.0}
_DEADLINE = 90.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench latency``."""
    add_number(parser, "--rates", (200, 5000), "records a second")
    add_number(parser, "--seconds", 60.0, "seconds of each copy")
    add_number(parser, "--warming", 20.0, "seconds before, not counted")
    add_number(parser, "--brokers-warming", 60.0, "seconds of a first copy, not counted")
    add_number(parser, "--runs", 2, "copies by each program", kind=whole(1, 100))


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    measured: list[Row] = []
    copiers: dict[str, Copier] = {OURS: our_replicator, MIRROR_MAKER: COPIERS[MIRROR_MAKER]}
    async with plain_pair() as pair:
        await LatencyTrial(pair, our_replicator, max(arguments.rates), "warming").run(0, arguments.brokers_warming)
        for rate in arguments.rates:
            figures: dict[str, list[Figures]] = {name: [] for name in copiers}
            for number in range(arguments.runs):
                for turn, (name, copier) in enumerate(copiers.items()):
                    trial = LatencyTrial(pair, copier, rate, f"{rate}x{number}x{turn}")
                    figures[name].append(await trial.run(arguments.warming, arguments.seconds))
            measured += rows(rate, figures[OURS], figures[MIRROR_MAKER])
    return measured


class LatencyTrial:
    """One copy of records sent at one rate; with ``cards``, of ``card_events``, of which the copy has each
    ``every``-th."""

    def __init__(
        self, pair: Pair, copier: Copier, rate: int, name: str, *, cards: bool = False, every: int = 1
    ) -> None:
        self._pair = pair
        self._copier = copier
        self._rate = rate
        self._name = name
        self._cards = ["--cards"] if cards else []
        self._every = every

    async def run(self, warming: float, seconds: float) -> Figures:
        """Send and copy records for ``warming`` seconds, and then for ``seconds`` that count."""
        load = Load(0, f"measured{self._name}", _PARTITIONS)
        await make_topic(self._pair.source, load.topic, load.partitions)
        async with self._copier(self._pair, load, self._name) as copying:
            await wake(self._pair.source, load.topic)
            await until_begun(self._pair.destination, copying.topic, copying.process, UNBEGUN_SECONDS)
            times = await self._flow(load, copying, round(self._rate * (warming + seconds) / self._every))
        figures = Figures.of(samples_of(times, warming))
        shown = {"p50": figures.p50, "p99": figures.p99, "max": figures.highest}
        progress(
            "latency measured",
            by=copying.process.name,
            rate=f"{self._rate}/s",
            **{name: f"{value:.1f}ms" for name, value in shown.items()},
        )
        return figures

    async def _flow(self, load: Load, copying: Copying, count: int) -> bytes:
        """Send records until ``count`` of them have to be received; return the receiver's samples."""
        directory = self._pair.directory
        file = directory / f"{load.topic}.times"
        receiver, sender = self._receiver(load, copying, count, file), self._sender(load, count * self._every)
        deadline = count * self._every / self._rate + _DEADLINE
        async with running(f"receiver of {load.topic}", program(*receiver), directory, "^ready$") as receiving:
            async with running(f"sender of {load.topic}", program(*sender), directory) as sending:
                await succeeds(sending, deadline)
                progress(sending.log_file.read_text().strip())
            copying.process.require_running()
            await succeeds(receiving, _DEADLINE)
        return file.read_bytes()

    def _receiver(self, load: Load, copying: Copying, count: int, file: Path) -> list[str]:
        place = [self._pair.destination.home_bootstrap, copying.topic, "--partitions", str(load.partitions)]
        return ["receiver", *place, "--count", str(count), "--every", str(self._every), "--file", str(file)]

    def _sender(self, load: Load, count: int) -> list[str]:
        place = [self._pair.source.home_bootstrap, load.topic, "--partitions", str(load.partitions)]
        return ["sender", *place, "--count", str(count), "--rate", str(self._rate), *self._cards]


def program(name: str, *options: str) -> list[str]:
    """The line of the program that sends or receives."""
    return [sys.executable, "-m", f"bench.lib.latency_{name}", *options]


async def wake(cluster: Cluster, topic: str) -> None:
    """Write a record that the receiver ignores, and wait for its copy, which shows that the copying program has
    started."""
    refused, producer = Refused(), Producer(cluster.client_configuration())
    with kafka_errors_as(f"topic {topic} does not take a record"):
        producer.produce(topic, None, partition=0, on_delivery=refused)
        await asyncio.to_thread(refused.flush, producer, _DEADLINE)


def rows(rate: int, ours: Sequence[Figures], theirs: Sequence[Figures]) -> list[Row]:
    """The medians of p50 and p99, and the highest value of all copies."""

    def middle(figures: Sequence[Figures], name: str) -> float:
        return statistics.median([float(getattr(each, name)) for each in figures])

    highest = [max(each.highest for each in figures) for figures in (ours, theirs)]
    measured = [
        Row(f"latency p50 at {rate}/s", "ms", middle(ours, "p50"), MIRROR_MAKER, middle(theirs, "p50")),
        Row(f"latency p99 at {rate}/s", "ms", middle(ours, "p99"), MIRROR_MAKER, middle(theirs, "p99")),
        Row(f"latency max at {rate}/s", "ms", highest[0], MIRROR_MAKER, highest[1]),
    ]
    if rate in _P99_LIMITS:
        measured.append(Row(f"latency p99 at {rate}/s", "ms", middle(ours, "p99"), LIMIT, _P99_LIMITS[rate]))
    return measured
