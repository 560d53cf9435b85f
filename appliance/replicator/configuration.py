"""Spark's configuration: pure, from the settings to what its driver reads."""

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from appliance.settings.values import EngineSettings

JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
"""Spark's Java schedules a job a minute: the second compiler and the parallel collector would cost more than
they bring."""

LOG_FILE = files("appliance.replicator").joinpath("spark-log4j2.properties")

MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(64 * 1024 * 1024), "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024)}
"""glibc keeps the memory of a Fetch for the next one: to take it from the kernel anew is a tenth of the copying."""

_TRIES = 4
# Java takes a byte less than Linux.
_SOCKET_PATH_MAX = 106
_SOCKET_NAME = len("/.01234567-89ab-cdef-0123-456789abcdef.sock")


def configuration(engine: EngineSettings, name: str, scratch: Path, host: str) -> dict[str, str]:
    """The driver's, which reaches its executors' too; ``host`` is the address at which they find the driver."""
    properties = f'"-Dlog4j2.configurationFile={LOG_FILE}" "-Djava.io.tmpdir={scratch}"'
    sockets = len(os.fsencode(scratch)) + _SOCKET_NAME <= _SOCKET_PATH_MAX
    common = {
        "spark.app.name": name,
        "spark.master": _master(engine),
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.driver.memory": engine.spark_driver_memory,
        "spark.driver.extraJavaOptions": f"{properties} {' '.join(JAVA_OPTIONS)}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # A Python task costs 20 ms by it instead of 60.
        "spark.python.unix.domain.socket.enabled": str(sockets).lower(),
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "appliance.replicator.daemon",
    }
    return common | (_cluster(engine) if engine.in_a_cluster else {})


def authentication(engine: EngineSettings) -> dict[str, str]:
    """What every part of a standalone cluster has to say alike: who does not know the secret is not heard."""
    if not engine.spark_secret:
        return {}
    return {
        "spark.authenticate": "true",
        "spark.authenticate.secret": engine.spark_secret.reveal(),
        "spark.network.crypto.enabled": "true",
    }


def properties_text(entries: Mapping[str, str]) -> str:
    """A file of Java's properties."""
    return "".join(f"{name}={value.replace(chr(92), chr(92) * 2)}\n" for name, value in entries.items())


def task_count(engine: EngineSettings) -> int:
    """How many tasks copy at once."""
    return engine.tasks or os.cpu_count() or 1


def _cluster(engine: EngineSettings) -> dict[str, str]:
    entries = {
        # As many slots as tasks: each slice finds its tasks where the last one left their lanes warm.
        "spark.cores.max": str(task_count(engine)),
        "spark.executor.memory": "512m",
        # Below the executor's own directory, which goes with its Spark worker.
        "spark.executor.extraJavaOptions": f"-Djava.io.tmpdir=. {' '.join(JAVA_OPTIONS)}",
        # A host that falls silent is given up after half a minute, not after two.
        "spark.executor.heartbeatInterval": "3s",
        "spark.network.timeout": "30s",
        "spark.network.timeoutInterval": "3s",
    }
    entries |= {f"spark.executorEnv.{name}": value for name, value in MALLOC.items()}
    if port := engine.spark_driver_port:
        # The first is the seats'.
        entries |= {
            "spark.driver.port": str(port + 1),
            "spark.driver.blockManager.port": str(port + 2),
            "spark.port.maxRetries": "0",
        }
    return entries | authentication(engine)


def _master(engine: EngineSettings) -> str:
    """Spark's master: local mode gets a slot more than it has tasks, and tries a failed task again."""
    if engine.spark_master == "local[*]":
        return f"local[{task_count(engine) + 1},{_TRIES}]"
    return engine.spark_master
