"""The Java machine of Spark's driver.

PySpark would start it too, but late, since all has to be imported first, and loosely: told that we are dead, it shuts
down in its own time, if it does. Ours starts before anything else, and the kernel kills it when we die. PySpark
connects to a machine that it finds in the environment as it does under ``spark-submit``.
"""

import asyncio
import contextlib
import os
import struct
import sys
from collections.abc import AsyncIterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from appliance.errors import ProcessFailed
from appliance.owned import owned
from appliance.settings.values import EngineSettings

ENV_FILE_VARIABLE = "APPLIANCE_ENV_FILE"
"""The environment variable by which a worker finds the settings: secrets never pass through Spark."""

_TRIES = 4
_POLL = 0.02
_STOP_PATIENCE = 10.0
# Java takes a byte less than Linux.
_SOCKET_PATH_MAX = 106
_SOCKET_NAME = len("/.01234567-89ab-cdef-0123-456789abcdef.sock")
_INTEGER = struct.Struct(">i")

# It schedules a job every few seconds: the second compiler and the parallel collector would cost more than they bring.
_JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")


_MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(64 * 1024 * 1024), "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024)}
"""glibc keeps the memory of a Fetch for the next one: to take it from the kernel anew is a tenth of the copying."""


class JavaMachine:
    """A running one; ``java_machine`` starts and ends it."""

    def __init__(self, process: asyncio.subprocess.Process, ready_file: Path) -> None:
        self._process = process
        self._ready_file = ready_file

    async def gateway(self) -> tuple[int, str]:
        """When it is ready, the port on which it takes PySpark's calls, and the secret that they need.

        Raises:
            ProcessFailed: it has ended.
        """
        while not self._ready_file.exists():
            self.require_running()
            await asyncio.sleep(_POLL)
        told = self._ready_file.read_bytes()
        (port,) = _INTEGER.unpack_from(told)
        return port, told[2 * _INTEGER.size :].decode()

    def require_running(self) -> None:
        """Nothing, while it runs.

        Raises:
            ProcessFailed: it has ended.
        """
        if self._process.returncode is not None:
            raise ProcessFailed(
                f"Spark's Java machine ended with status {self._process.returncode}: see what it printed; it has to be "
                "Java 17 or newer, and to get the memory that SPARK_DRIVER_MEMORY asks for"
            )

    async def stop(self) -> None:
        """End Spark, and then the machine."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_PATIENCE):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


@contextlib.asynccontextmanager
async def java_machine(engine: EngineSettings, name: str, env_file: Path, scratch: Path) -> AsyncIterator[JavaMachine]:
    """Start it, in the thread of the event loop, and end it with the block; it keeps its files in ``scratch``."""
    ready_file = scratch / "ready"
    package = find_spec("pyspark")
    assert package is not None
    assert package.origin is not None
    home = os.environ.get("SPARK_HOME") or str(Path(package.origin).parent)
    environment = {
        "SPARK_HOME": home,
        "SPARK_CONNECT_MODE": "0",
        "SPARK_LAUNCHER_OPTS": f"-Djava.io.tmpdir={scratch} {' '.join(_JAVA_OPTIONS)}",
        "TMPDIR": str(scratch),
        "PYSPARK_PYTHON": sys.executable,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(ready_file),
        ENV_FILE_VARIABLE: str(env_file),
    } | _MALLOC
    if engine.spark_master.startswith("local"):
        # Spark would look its host's own name up, and not start where nobody knows that.
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    options = [
        option for entry in configuration(engine, name, scratch).items() for option in ("--conf", "=".join(entry))
    ]
    process = await asyncio.create_subprocess_exec(
        *owned([f"{home}/bin/spark-submit", *options, "pyspark-shell"]),
        stdin=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
        process_group=0,  # Ctrl-C is for us to hear
    )
    machine = JavaMachine(process, ready_file)
    try:
        yield machine
    finally:
        await machine.stop()


def configuration(engine: EngineSettings, name: str, scratch: Path) -> dict[str, str]:
    """Spark's configuration."""
    log_file = files("appliance.replicator").joinpath("spark-log4j2.properties")
    properties = f'"-Dlog4j2.configurationFile={log_file}" "-Djava.io.tmpdir={scratch}"'
    sockets = len(os.fsencode(scratch)) + _SOCKET_NAME <= _SOCKET_PATH_MAX
    common = {
        "spark.app.name": name,
        "spark.master": _master(engine),
        "spark.driver.memory": engine.spark_driver_memory,
        "spark.driver.extraJavaOptions": f"{properties} {' '.join(_JAVA_OPTIONS)}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # A Python task costs 20 ms by it instead of 60.
        "spark.python.unix.domain.socket.enabled": str(sockets).lower(),
        "spark.python.worker.reuse": "true",
    }
    if not engine.spark_master.startswith("local"):
        return common
    return common | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.daemon.module": "appliance.replicator.daemon",
    }


def task_count(engine: EngineSettings) -> int:
    """How many tasks copy at once."""
    return engine.tasks or os.cpu_count() or 1


def _master(engine: EngineSettings) -> str:
    """Spark's master: local mode gets a slot more than it has tasks, and tries a failed task again."""
    if engine.spark_master == "local[*]":
        return f"local[{task_count(engine) + 1},{_TRIES}]"
    return engine.spark_master
