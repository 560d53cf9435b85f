"""One run of a temporary broker, which makes every later broker on this machine start faster.

A JVM that ends normally writes its loaded classes to an archive. The broker uses TLS and SASL, so that their classes
are in it. Two simultaneous rehearsals do no harm, because they leave the same files, and move them into place
atomically.
"""

import asyncio
import logging
import secrets
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from appliance.settings.secret import Secret
from testbed import jars
from testbed.broker import Broker
from testbed.installation import Installation
from testbed.jars import java
from testbed.layout import free_ports, make_directory, new_cluster_id, node_directory, write_files
from testbed.plan import ApiKey, ClusterPlan
from testbed.process import OwnedProcess
from testbed.properties import client_configuration

_DEADLINE = 120.0
_ADDRESS = "127.0.0.1"

log = logging.getLogger("demo")


async def kafka_installation(version: str = jars.KAFKA_VERSION) -> Installation:
    """Kafka on this machine. The first call downloads and rehearses it, in about a minute; later calls are quick.

    A version with ZooKeeper is not rehearsed, because only tests start one.

    Raises:
        ProcessFailed: the download or the rehearsal failed.
        ToolMissing: there is no Java.
    """
    jar_set = jars.broker_jars(version)
    classpath = await asyncio.to_thread(jars.classpath, jar_set)
    if jars.on_zookeeper(version):
        return Installation(java(), classpath, None, ())
    directory = jar_set.directory
    archive, checkpoint = directory / "classes.jsa", directory / "bootstrap.checkpoint"
    if not checkpoint.exists():
        with tempfile.TemporaryDirectory(dir=directory, prefix="rehearsal-") as temporary:
            await _rehearse(version, classpath, Path(temporary), archive, checkpoint)
    class_options = (f"-XX:SharedArchiveFile={archive}",) if archive.exists() else ()
    return Installation(java(), classpath, checkpoint, class_options)


async def _rehearse(version: str, classpath: str, temporary: Path, archive: Path, checkpoint: Path) -> None:
    """Write ``archive``, if this JVM can make one, and then ``checkpoint``, the sign that the rehearsal is complete."""
    log.info("rehearsing a broker, once", extra={"fields": {"directory": str(temporary)}})
    recorded = temporary / archive.name
    recording = Installation(java(), classpath, checkpoint, (f"-XX:ArchiveClassesAtExit={recorded}",))
    user = ApiKey("rehearsal", Secret(secrets.token_hex(16)))
    secure = ClusterPlan.secure("rehearsal", size=1, first_address=_ADDRESS, api_keys=(user,))
    plan = replace(secure, version=version)
    ports = free_ports([_ADDRESS])
    make_directory(temporary / plan.name)
    write_files(plan, ports, temporary / plan.name)
    own = node_directory(temporary / plan.name, plan.nodes[0])
    await _format(recording, plan, own)
    formatted = shutil.copyfile(own / "data" / jars.checkpoint_place(version), temporary / checkpoint.name)
    client = client_configuration(plan, plan.home_targets(ports), temporary / plan.name / "ca.pem", user)
    await _perform(Broker(plan, plan.nodes[0], own, recording), client)
    if recorded.exists():
        recorded.rename(archive)
    formatted.rename(checkpoint)


async def _format(installation: Installation, plan: ClusterPlan, directory: Path) -> None:
    """Run Kafka's own storage tool on the node's directory."""
    arguments = ["format", f"--cluster-id={new_cluster_id()}", "--config", str(directory / "server.properties")]
    command = installation.command(plan, directory, "kafka.tools.StorageTool", *arguments)
    process = await OwnedProcess.start("kafka-storage", command, directory / "format.log")
    try:
        if await process.wait(_DEADLINE):
            raise process.failure("could not format a log directory")
    finally:
        await process.kill()


async def _perform(broker: Broker, client: dict[str, str]) -> None:
    """Run the broker until it has answered a client, then stop it normally."""
    try:
        await broker.launch()
        await broker.wait_until_ready(client, _DEADLINE)
        await broker.process.stop(grace=_DEADLINE)
    finally:
        await broker.kill()
