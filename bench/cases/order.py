"""A total order in three clusters, beside one plain link between two of them, with and without a long line.

Latency: one program sends keyed records of 500 bytes at a constant rate to T of one cluster, and others receive them
from T-global, or from the link's copy, at ``read_committed``. Rate: T of one cluster is filled, and then ordered until
every cluster shows all records, or copied by the link. The link leads from the spoke to the home. A proxy delays each
direction of a long line by half a round trip.

The home shows a record once another cluster has it, so its own records take a round trip more than a copy.
"""

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from bench.cases.latency import program, wake
from bench.lib.clusters import make_topic
from bench.lib.filling import Load, write
from bench.lib.latency_figures import Figures, samples_of
from bench.lib.order_sites import HOME, SPOKE, THIRD, OrderSites, order_sites
from bench.lib.our_replicator import our_replicator, succeeds
from bench.lib.progress import progress
from bench.lib.row import Row
from bench.lib.running import running
from bench.lib.setup import add_number
from bench.lib.watching import UNBEGUN_SECONDS, until_begun, watch
from testbed.cluster import Cluster
from testbed.process import OwnedProcess

_LINK = "a plain link"
_MEGABYTE = 1e6
_PARTITIONS = 4
_DEADLINE = 90.0
_WAYS = {
    (SPOKE, SPOKE): "a spoke's record in its own T-global",
    (SPOKE, THIRD): "a spoke's record in a third cluster",
    (SPOKE, HOME): "a spoke's record at home",
    (HOME, HOME): "the home's own record at home",
    (HOME, SPOKE): "the home's record in a spoke",
}
"""The clusters in which records are written and read."""


@dataclass(frozen=True, slots=True)
class Copies:
    """The topics in which records appear, each with its cluster, while ``process`` copies."""

    process: OwnedProcess
    topics: Mapping[str, str]


_Copier = Callable[[Load], AbstractAsyncContextManager[Copies]]
"""A context in which all records of the load are ordered, or copied."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Measurements over one line; ``name`` is part of the names of its topics."""

    sites: OrderSites
    name: str
    rate: int
    warming: float
    seconds: float
    records: int

    async def rows(self, line: str) -> list[Row]:
        """The figures of the order beside those of the link."""
        link = (await self._latencies(self._link, SPOKE, "link"))[HOME]
        ours: dict[tuple[str, str], Figures] = {}
        for origin in (SPOKE, HOME):
            figures = await self._latencies(self._order, origin, f"from-{origin}")
            ours |= {(origin, name): each for name, each in figures.items()}
        rates = [await self._rate(copier, name) for copier, name in ((self._order, "all"), (self._link, "all-link"))]
        rate = Row(f"records of a spoke, {line}", "records/s", rates[0], _LINK, rates[1])
        return [*latency_rows(line, ours, link), rate]

    @contextlib.asynccontextmanager
    async def _link(self, load: Load) -> AsyncIterator[Copies]:
        async with our_replicator(self.sites.link, load, load.topic) as copying:
            yield Copies(copying.process, {HOME: copying.topic})

    @contextlib.asynccontextmanager
    async def _order(self, load: Load) -> AsyncIterator[Copies]:
        async with self.sites.ordered(load.topic, load.topic) as processes:
            yield Copies(processes[0], dict.fromkeys(self.sites.clusters, f"{load.topic}-global"))

    async def _latencies(self, copier: _Copier, origin: str, run: str) -> dict[str, Figures]:
        """Send records in a cluster; the latency to each cluster in which they appear."""
        load = Load(0, f"{self.name}-{run}", _PARTITIONS)
        await self._make(load)
        async with copier(load) as copies:
            await wake(self.sites.clusters[origin], load.topic)
            for name, topic in copies.topics.items():
                await until_begun(self.sites.clusters[name], topic, copies.process, UNBEGUN_SECONDS)
            return await self._flow(load, self.sites.clusters[origin], copies)

    async def _flow(self, load: Load, origin: Cluster, copies: Copies) -> dict[str, Figures]:
        count = round(self.rate * (self.warming + self.seconds))
        files = {name: self.sites.directory / f"{load.topic}.{name}.times" for name in copies.topics}
        async with contextlib.AsyncExitStack() as stack:
            receivers = []
            for name, topic in copies.topics.items():
                place = [self.sites.clusters[name].home_bootstrap, topic, "--partitions", str(_PARTITIONS)]
                line = program("receiver", *place, "--count", str(count), "--file", str(files[name]))
                receiver = running(f"receiver of {topic} in {name}", line, self.sites.directory, "^ready$")
                receivers.append(await stack.enter_async_context(receiver))
            place = [origin.home_bootstrap, load.topic, "--partitions", str(_PARTITIONS)]
            line = program("sender", *place, "--count", str(count), "--rate", str(self.rate))
            sending = await stack.enter_async_context(running(f"sender of {load.topic}", line, self.sites.directory))
            await succeeds(sending, count / self.rate + _DEADLINE)
            for each in receivers:
                await succeeds(each, _DEADLINE)
        figures = {name: Figures.of(samples_of(file.read_bytes(), self.warming)) for name, file in files.items()}
        shown = {name: f"{each.p50:.1f}/{each.p99:.1f}ms" for name, each in figures.items()}
        progress("latency", of=load.topic, **shown)
        return figures

    async def _rate(self, copier: _Copier, run: str) -> float:
        """Records a second until every cluster shows all records of a spoke."""
        load = Load(self.records, f"{self.name}-{run}", _PARTITIONS)
        await self._make(load)
        await write(self.sites.clusters[SPOKE], load)
        async with copier(load) as copies:
            watching = [
                watch(self.sites.clusters[name], topic, load.records, copies.process)
                for name, topic in copies.topics.items()
            ]
            rate = min(each.rate(load.records) for each in await asyncio.gather(*watching))
        progress("rate", of=load.topic, records=f"{rate:,.0f}/s")
        return rate

    async def _make(self, load: Load) -> None:
        for cluster in self.sites.clusters.values():
            await make_topic(cluster, load.topic, load.partitions)


def latency_rows(line: str, ours: Mapping[tuple[str, str], Figures], link: Figures) -> list[Row]:
    """The percentiles of each way from one cluster to another, beside those of the link."""
    return [
        Row(f"{title}, {name}, {line}", "ms", getattr(ours[way], name), _LINK, getattr(link, name))
        for way, title in _WAYS.items()
        for name in ("p50", "p99")
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench order``."""
    add_number(parser, "--rate", 200, "records a second")
    add_number(parser, "--seconds", 15.0, "seconds of each latency")
    add_number(parser, "--warming", 5.0, "seconds before, not counted")
    add_number(parser, "--records", 300_000, "records of each rate")
    add_number(parser, "--round-trip", 50.0, "milliseconds of the long line's round trip", metavar="MS")
    add_number(parser, "--bandwidth", 50.0, "bandwidth of the long line in MB/s", metavar="MB")


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    measured: list[Row] = []
    lengths = {False: "no line", True: f"a line of {arguments.round_trip:g} ms"}
    async with order_sites(arguments.round_trip / 1000, arguments.bandwidth * _MEGABYTE) as sites:
        for line, length in lengths.items():
            limits = arguments.rate, arguments.warming, arguments.seconds, arguments.records
            trial = Trial(sites.over(line=line), f"measured{int(line)}", *limits)
            measured += await trial.rows(length)
    return measured
