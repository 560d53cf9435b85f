"""MirrorMaker 2 (KIP-382) in dedicated mode, tuned for the benchmark.

It gets all helpful settings: a task for each partition, large polls and batches, five requests in flight instead of
Connect's one, and the garbage collector for throughput. It gets no costly feature: no heartbeats, consumer groups or
ACLs. It delivers at least once, or exactly once (KIP-618, KIP-710), as ours does.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping

from bench.lib.clusters import Pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from testbed.mirror_maker import exactly_once as _exactly_once
from testbed.mirror_maker import flow, nothing_else, one_broker, start

_BATCH_BYTES = 128 * 1024
_DEFAULTS: Mapping[str, str] = {}
_TARGET = "destination"

# The heap of Kafka's own launcher. Its G1 collector takes a quarter more processor time for this on two cores.
_JAVA_OPTIONS = ("-Xms256M", "-Xmx2G", "-server", "-XX:+UseParallelGC", "-XX:-UsePerfData", "-Djava.awt.headless=true")


@contextlib.asynccontextmanager
async def mirror_maker(
    pair: Pair,
    load: Load,
    run: str,
    settings: Mapping[str, str] = _DEFAULTS,
    exactly_once: bool = False,
    connector: Mapping[str, str] = _DEFAULTS,
) -> AsyncIterator[Copying]:
    """Copy the load; see ``bench.lib.copying.Copier``. ``settings`` are entries beyond the tuned ones, and
    ``connector`` are those of the flow's connectors, such as their transforms."""
    alias = f"exactly{run}" if exactly_once else f"mirrored{run}"
    bootstrap = pair.source.home_bootstrap, pair.destination.home_bootstrap
    entries = {**properties(*bootstrap, load, alias, exactly_once), **settings}
    entries |= {f"{alias}->{_TARGET}.{name}": value for name, value in connector.items()}
    process = await start(entries, pair.directory, alias, _JAVA_OPTIONS)
    try:
        yield Copying(process, f"{alias}.{load.topic}")
    finally:
        await process.stop()


def properties(source: str, destination: str, load: Load, alias: str, exactly_once: bool = False) -> dict[str, str]:
    """The entries of connect-mirror-maker.properties for one flow, each cluster given as its bootstrap list."""
    entries = flow(source, destination, alias, _TARGET, load.topic) | one_broker() | nothing_else()
    return entries | _tuning(load, alias) | (_exactly_once(_TARGET) if exactly_once else {})


def _tuning(load: Load, alias: str) -> dict[str, str]:
    """The consumers read the source by its alias, and the producers write to the destination."""
    producer = {
        "batch.size": _BATCH_BYTES,
        "linger.ms": 5,
        "compression.type": load.codec,
        "max.in.flight.requests.per.connection": 5,
    }
    entries = {
        "tasks.max": str(load.partitions),
        f"{alias}.consumer.max.poll.records": "5000",
        f"{alias}.consumer.isolation.level": "read_committed",
    }
    return entries | {f"{_TARGET}.producer.{name}": str(value) for name, value in producer.items()}
