"""MirrorMaker 2 (KIP-382) in dedicated mode, tuned for the benchmark.

It gets all helpful settings: a task for each partition, large polls and batches, five requests in flight instead of
Connect's one, and the garbage collector for throughput. It gets no costly feature: no heartbeats, consumer groups or
ACLs. It delivers at least once, or exactly once (KIP-618, KIP-710), as ours does. For exactly once, its workers need an
HTTP server among themselves.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from bench.lib.clusters import Pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from testbed import jars
from testbed.jars import java
from testbed.process import OwnedProcess

_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
_BATCH_BYTES = 128 * 1024
_DEFAULTS: Mapping[str, str] = {}
_TARGET = "destination"

# The heap of Kafka's own launcher. Its G1 collector takes a quarter more processor time for this on two cores.
_JAVA_OPTIONS = ("-Xms256M", "-Xmx2G", "-server", "-XX:+UseParallelGC", "-XX:-UsePerfData", "-Djava.awt.headless=true")


@contextlib.asynccontextmanager
async def mirror_maker(
    pair: Pair, load: Load, run: str, settings: Mapping[str, str] = _DEFAULTS, exactly_once: bool = False
) -> AsyncIterator[Copying]:
    """Copy the load; see ``bench.lib.copying.Copier``. ``settings`` are entries beyond the tuned ones."""
    alias = f"exactly{run}" if exactly_once else f"mirrored{run}"
    file = pair.directory / f"{alias}.properties"
    bootstrap = pair.source.home_bootstrap, pair.destination.home_bootstrap
    entries = properties(*bootstrap, load, alias, exactly_once)
    file.write_text(entries + "".join(f"{name}={value}\n" for name, value in settings.items()))
    command = await _command(file, pair.directory)
    process = await OwnedProcess.start("MirrorMaker 2", command, pair.directory / f"{alias}.log")
    try:
        yield Copying(process, f"{alias}.{load.topic}")
    finally:
        await process.stop()


async def _command(properties_file: Path, directory: Path) -> list[str]:
    classpath = await asyncio.to_thread(jars.classpath, jars.MIRROR_MAKER)
    options = [*_JAVA_OPTIONS, "-Dlog4j2.level=INFO", f"-Djava.io.tmpdir={directory}"]
    return [java(), *options, "-cp", classpath, _MAIN, str(properties_file)]


def properties(source: str, destination: str, load: Load, alias: str, exactly_once: bool = False) -> str:
    """connect-mirror-maker.properties for one flow from ``alias``, each cluster given as its bootstrap list."""
    entries = _flow(source, destination, load, alias) | _one_broker() | _nothing_else() | _tuning(load, alias)
    if exactly_once:
        entries |= _exactly_once()
    return "".join(f"{name}={value}\n" for name, value in entries.items())


def _flow(source: str, destination: str, load: Load, alias: str) -> dict[str, str]:
    return {
        "clusters": f"{alias},{_TARGET}",
        f"{alias}.bootstrap.servers": source,
        f"{_TARGET}.bootstrap.servers": destination,
        f"{alias}->{_TARGET}.enabled": "true",
        f"{alias}->{_TARGET}.topics": load.topic,
    }


def _exactly_once() -> dict[str, str]:
    return {
        f"{_TARGET}.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": "http://127.0.0.1:0",
    }


def _one_broker() -> dict[str, str]:
    topics = ("offset-syncs.topic", "heartbeats.topic", "checkpoints.topic")
    storages = ("config.storage", "offset.storage", "status.storage")
    return {"replication.factor": "1"} | {f"{kind}.replication.factor": "1" for kind in (*topics, *storages)}


def _nothing_else() -> dict[str, str]:
    """Settings that give the checkpoint connector no work; it cannot be switched off."""
    return {f"{switch}.enabled": "false" for switch in ("emit.heartbeats", "sync.group.offsets", "sync.topic.acls")}


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
