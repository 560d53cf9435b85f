"""Our own Spark cluster, started from the installed PySpark: one master, and a worker on each host that copies.

A worker gives its executors the resources of its own host: this Python with the appliance, the settings file, and a
directory for their files. So only the release has to be the same as on the driver's host.
"""

import asyncio
import logging
import os
import secrets
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from appliance.errors import ProcessFailed, SettingsError
from appliance.runtime.background import ended, unless_stopped
from appliance.runtime.child_process import killed_with_parent
from appliance.settings.values import EngineSettings
from appliance.spark.configuration import LOG_FILE, part_configuration, properties_text
from appliance.spark.spark_jvm import java_environment, own_address, private_file, spark_home
from appliance.spark.tempdir import tempdir

log = logging.getLogger("appliance.replicator")


class Part(StrEnum):
    """A kind of process in a Spark cluster."""

    MASTER = "master"
    WORKER = "worker"


async def run_part(
    engine: EngineSettings, part: Part, cores: int | None, host: str | None, env_file: Path, stopping: asyncio.Event
) -> int:
    """Run the master that SPARK_MASTER names, or a worker of it, until ``stopping``; the exit code.

    ``cores`` is the number of tasks that a worker takes at once, None for all cores of the host; ``host`` is its
    address, None for the one from which it reaches the master. ProcessFailed if Spark ends by itself.
    """
    if not engine.spark_master.startswith("spark://"):
        raise SettingsError([f"SPARK_MASTER={engine.spark_master}: expected spark://host:port"])
    with tempdir(f"spark-{part}") as directory:
        entries = part_configuration(engine, page_key=secrets.token_urlsafe(32))
        properties = private_file(directory / "spark.conf", properties_text(entries))
        at = host or own_address(engine.spark_master)
        process = await asyncio.create_subprocess_exec(
            *killed_with_parent(
                [f"{spark_home()}/bin/spark-class", *_command(engine.spark_master, part, cores, at, directory)]
            ),
            "--properties-file",
            str(properties),
            stdin=asyncio.subprocess.DEVNULL,
            env={**os.environ, **_environment(env_file, directory)},
            process_group=0,  # Ctrl-C is ours to handle
        )
        log.info(f"spark {part} started", extra={"fields": {"master": engine.spark_master, "host": at}})
        return await _until(process, part, stopping)


def _command(master: str, part: Part, cores: int | None, host: str, directory: Path) -> Sequence[str]:
    web = ["--webui-port", "0"]
    if part is Part.MASTER:
        at = urlsplit(master)
        return ["org.apache.spark.deploy.master.Master", "--host", at.hostname or "", "--port", str(at.port), *web]
    share = ["--cores", str(cores)] if cores else []
    work = ["--work-dir", str(directory / "work")]
    return ["org.apache.spark.deploy.worker.Worker", "--host", host, *share, *work, *web, master]


def _environment(env_file: Path, directory: Path) -> dict[str, str]:
    """The variables that a worker's executors inherit."""
    common = java_environment(directory, env_file)
    return common | {
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": common["SPARK_LAUNCHER_OPTS"],
        "LOG4J_CONFIGURATION_FILE": str(LOG_FILE),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
    }


async def _until(process: asyncio.subprocess.Process, part: Part, stopping: asyncio.Event) -> int:
    try:
        status = await unless_stopped(stopping, process.wait())
        if status is not None:
            raise ProcessFailed(f"Spark's {part} ended with status {status}: see what it printed")
        process.terminate()
        await ended(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return 0
