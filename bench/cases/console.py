"""The control center: its cost with nobody looking, its pages with 10,000 partitions, and what 50 viewers cost a copy.

With nobody looking, it watches a link that copies a trickle of records. The pages of many partitions come from a
source with as many; their slowest load counts. The rate of a copy is measured in turns with and without viewers, each
of whom asks for the link's page and its last hour every three seconds, as the page's script does.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import logging
import statistics
from collections.abc import AsyncIterator, Sequence

import aiohttp
from confluent_kafka import Producer

from bench.lib.clusters import Pair, delete_topics, plain_pair
from bench.lib.filling import Load, fill
from bench.lib.footprint import Cost, footprint
from bench.lib.our_replicator import our_replicator
from bench.lib.procfs import memory
from bench.lib.row import LIMIT, Row
from bench.lib.setup import few, positive
from bench.lib.topic_load import PARTITIONS, PATTERN, make, named
from bench.lib.viewers import control_center, loaded, viewers
from bench.lib.watching import watch
from testbed.cluster import Cluster

_LOAD = Load(records=1_000_000)
_IDLE_PROCESSOR, _IDLE_MEMORY = 1.0, 80.0
_PAGE_SECONDS, _PAGE_KILOBYTES = 1.0, 500.0
_UNDISTURBED = 0.97
"""The goal of the rate beside viewers, as a part of the rate without: two copies differ by as much."""

_SETTLED_SECONDS = 20.0
_TRICKLE_SECONDS = 0.1
_LOADS = 10
_DEADLINE = 120.0
_HEAP_MEGABYTES = 2_048

log = logging.getLogger("appliance.bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench console``."""
    parser.add_argument("--records", type=positive, default=_LOAD.records, metavar="N", help="records (%(default)s)")
    parser.add_argument("--viewers", type=positive, default=50, metavar="N", help="viewers (%(default)s)")
    parser.add_argument(
        "--topics", type=positive, default=1_000, metavar="N", help="of ten partitions each (%(default)s)"
    )
    parser.add_argument("--runs", type=positive, default=3, metavar="N", help="copies with and without (%(default)s)")
    parser.add_argument("--warming", type=few, default=2, metavar="N", help="copies that do not count (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="seconds of idleness (%(default)g)")


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows.

    Raises:
        ProcessFailed, ToolMissing: a program did not run, or did not copy.
    """
    load = dataclasses.replace(_LOAD, records=arguments.records)
    alone, watched = [], []
    async with plain_pair() as pair:
        await fill(pair.source, load)
        for number in range(arguments.warming):
            await _copied(pair, load, f"warming{number}", 0)
        for number in range(arguments.runs):
            alone.append(await _copied(pair, load, f"alone{number}", 0))
            watched.append(await _copied(pair, load, f"watched{number}", arguments.viewers))
        idle = await _idle(pair, load, arguments.seconds)
    async with plain_pair(_HEAP_MEGABYTES) as pair:
        pages = await _pages(pair, arguments.topics)
    return rows(alone, watched, idle, pages)


def rows(alone: Sequence[float], watched: Sequence[float], idle: Cost, pages: Sequence[tuple[float, int]]) -> list[Row]:
    """The rates beside each other, and the costs beside their limits."""
    rates = statistics.median(watched), statistics.median(alone)
    return [
        Row("rate beside viewers", "records/s", rates[0], "without viewers", rates[1], _UNDISTURBED),
        Row("idle control center", "% of a core", idle.processor, LIMIT, _IDLE_PROCESSOR, 1),
        Row("memory of it", "MB", idle.memory, LIMIT, _IDLE_MEMORY, 1),
        Row("slowest page of many partitions", "s", max(seconds for seconds, _ in pages), LIMIT, _PAGE_SECONDS, 1),
        Row("largest page", "kB", max(size for _, size in pages) / 1000, LIMIT, _PAGE_KILOBYTES, 1),
    ]


async def _copied(pair: Pair, load: Load, link: str, number: int) -> float:
    """Make a copy with so many viewers; its rate in records a second."""
    await delete_topics(pair.destination)
    async with (
        control_center(pair, load.topic, f"ours{link}") as (_, page),
        viewers(page, number),
        our_replicator(pair, load, link) as copying,
    ):
        timeline = await watch(pair.destination, copying.topic, load.visible, copying.process)
    rate = timeline.rate(load.visible)
    log.info("topic copied", extra={"fields": {"viewers": number, "rate": f"{rate:,.0f}/s"}})
    return rate


async def _idle(pair: Pair, load: Load, seconds: float) -> Cost:
    await delete_topics(pair.destination)
    async with our_replicator(pair, load, "idle") as copying:
        await watch(pair.destination, copying.topic, load.visible, copying.process)
        async with control_center(pair, load.topic, "oursidle") as (center, _), _trickle(pair.source, load.topic):
            await asyncio.sleep(min(seconds, _SETTLED_SECONDS))
            processor = (await footprint(center.pid, seconds)).total.processor
            return Cost(memory(center.pid).highest / 1e6, processor)


@contextlib.asynccontextmanager
async def _trickle(cluster: Cluster, topic: str) -> AsyncIterator[None]:
    """Ten records a second into a topic while the block runs."""
    producer = Producer({"bootstrap.servers": cluster.home_bootstrap})

    async def produce() -> None:
        while True:
            producer.produce(topic, b"a trickle")
            producer.poll(0)
            await asyncio.sleep(_TRICKLE_SECONDS)

    producing = asyncio.create_task(produce(), name="trickle")
    try:
        yield
    finally:
        producing.cancel()
        await asyncio.wait([producing])
        await asyncio.to_thread(producer.flush, _DEADLINE)


async def _pages(pair: Pair, topics: int) -> list[tuple[float, int]]:
    await make(pair.source, named(range(topics)))
    async with control_center(pair, PATTERN, "many") as (_, page):
        async with asyncio.timeout(_DEADLINE):
            await _until_shown(page, topics * PARTITIONS)
        views = {"": {}, "topics": {"sort": "lag", "down": "1"}, "topics/many-0": {"text": "1"}, "events": {}}
        return [await loaded(page + view, query, _LOADS) for view, query in views.items()]


async def _until_shown(page: str, partitions: int) -> None:
    number = f">{partitions:,}<".replace(",", "\N{NARROW NO-BREAK SPACE}")
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(page) as answer:
                if number in await answer.text():
                    return
            await asyncio.sleep(0.5)
