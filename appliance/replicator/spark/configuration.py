"""Spark's configuration: pure, from the settings to what its driver reads."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from appliance.settings.values import EngineSettings

JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:MaxDirectMemorySize=64m")
"""Spark's Java schedules a job now and then: the second compiler and the parallel collector would cost more than
they bring. What arrives at a port is kept in direct memory before it is known whose it is: a stranger fills no more."""

LOG_FILE = files("appliance.replicator.spark").joinpath("log4j2.properties")

MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(64 * 1024 * 1024), "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024)}
"""glibc keeps the memory of a Fetch for the next one: to take it from the kernel anew is a tenth of the copying."""

_PAGE_FILTER = "org.apache.spark.ui.JWSFilter"

_TRIES = 4


def configuration(engine: EngineSettings, name: str, tempdir: Path, host: str) -> dict[str, str]:
    """The driver's, which reaches its executors' too.

    Args:
        engine: the settings.
        name: the application's.
        tempdir: the directory of Java's temporary files and of its sockets, whose names may have 106 bytes.
        host: the address at which executors find the driver.
    """
    properties = f'"-Dlog4j2.configurationFile={LOG_FILE}" "-Djava.io.tmpdir={tempdir}"'
    common = {
        "spark.app.name": name,
        "spark.master": _master(engine),
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.driver.memory": engine.spark_driver_memory,
        "spark.driver.extraJavaOptions": f"{properties} {' '.join(JAVA_OPTIONS)}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Only our user opens them, and a Python task costs 20 ms by them instead of 60.
        "spark.python.unix.domain.socket.enabled": "true",
        # A task lasts: a process that waits for another one would complain when Java ends.
        "spark.python.worker.reuse": "false",
        # Less than the direct memory.
        "spark.network.maxRemoteBlockSizeFetchToMem": "16m",
        "spark.python.daemon.module": "appliance.replicator.spark.daemon",
    }
    return common | authentication(engine) | (_cluster(engine) if engine.in_a_cluster else {})


def authentication(engine: EngineSettings) -> dict[str, str]:
    """Spark's connections in every mode: nobody is heard without the secret, and all is encrypted with AES-GCM.

    Only a standalone cluster has to be told the secret, since its parts start apart from each other. In local mode and
    on Kubernetes Spark's driver draws one for each run.
    """
    entries = {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        # Spark's defaults are the first version, which derives its keys in a weak way, and AES-CTR, which lets whoever
        # sits on the wire flip bits unseen.
        "spark.network.crypto.authEngineVersion": "2",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        "spark.network.crypto.saslFallback": "false",
    }
    standalone = engine.spark_master.startswith("spark:")
    return entries | ({"spark.authenticate.secret": engine.spark_secret.reveal()} if standalone else {})


def part_configuration(engine: EngineSettings, page_key: str) -> dict[str, str]:
    """A standalone master's or worker's.

    Neither starts without its web page. It asks for a token that is signed with ``page_key``, which nobody is given: so
    it shows nothing and takes no order.
    """
    pages = {
        "spark.ui.filters": _PAGE_FILTER,
        f"spark.{_PAGE_FILTER}.param.secretKey": page_key,
        "spark.ui.killEnabled": "false",
        "spark.master.ui.decommission.allow.mode": "DENY",
        "spark.master.rest.enabled": "false",
    }
    return authentication(engine) | pages


def properties_text(entries: Mapping[str, str]) -> str:
    """A file of Java's properties."""
    return "".join(f"{name}={value.replace(chr(92), chr(92) * 2)}\n" for name, value in entries.items())


def _cluster(engine: EngineSettings) -> dict[str, str]:
    entries = {
        # As many slots as tasks.
        "spark.cores.max": str(engine.task_count),
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
        # The first is the control connections'.
        entries |= {
            "spark.driver.port": str(port + 1),
            "spark.driver.blockManager.port": str(port + 2),
            "spark.port.maxRetries": "0",
        }
    return entries


def _master(engine: EngineSettings) -> str:
    """Spark's master: local mode gets a slot more than it has tasks, and tries a failed task again."""
    if engine.spark_master == "local[*]":
        return f"local[{engine.task_count + 1},{_TRIES}]"
    return engine.spark_master
