"""MirrorMaker 2 (KIP-382) in dedicated mode, between two clusters."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from testbed import jars
from testbed.jars import java
from testbed.process import OwnedProcess

_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"


async def start(
    entries: Mapping[str, str], directory: Path, name: str, java_options: tuple[str, ...] = ()
) -> OwnedProcess:
    """Start it with these entries of connect-mirror-maker.properties; its files are in ``directory``."""
    file = directory / f"{name}.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in entries.items()))
    classpath = await asyncio.to_thread(jars.classpath, jars.MIRROR_MAKER)
    options = [*java_options, "-Dlog4j2.level=INFO", f"-Djava.io.tmpdir={directory}"]
    command = [java(), *options, "-cp", classpath, _MAIN, str(file)]
    return await OwnedProcess.start("MirrorMaker 2", command, directory / f"{name}.log")


def flow(source: str, destination: str, alias: str, target: str, topics: str) -> dict[str, str]:
    """The entries for one flow of topics from ``alias``, each cluster given as its bootstrap list."""
    return {
        "clusters": f"{alias},{target}",
        f"{alias}.bootstrap.servers": source,
        f"{target}.bootstrap.servers": destination,
        f"{alias}->{target}.enabled": "true",
        f"{alias}->{target}.topics": topics,
    }


def one_broker() -> dict[str, str]:
    """The entries by which every topic that it makes fits one broker."""
    topics = ("offset-syncs.topic", "heartbeats.topic", "checkpoints.topic")
    storages = ("config.storage", "offset.storage", "status.storage")
    return {"replication.factor": "1"} | {f"{kind}.replication.factor": "1" for kind in (*topics, *storages)}


def nothing_else() -> dict[str, str]:
    """The entries that give the checkpoint connector no work; it cannot be switched off."""
    return {f"{switch}.enabled": "false" for switch in ("emit.heartbeats", "sync.group.offsets", "sync.topic.acls")}


def exactly_once(target: str) -> dict[str, str]:
    """The entries for exactly once (KIP-618, KIP-710): its workers need an HTTP server among themselves."""
    return {
        f"{target}.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": "http://127.0.0.1:0",
    }
