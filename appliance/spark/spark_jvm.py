"""The JVM of Spark's driver.

PySpark would start it too, but late, after all imports, and unreliably: after our death it shuts down in its own time,
if at all. Ours starts before anything else, and the kernel kills it when we die. PySpark connects to the JVM named in
the environment, as under ``spark-submit``.
"""

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import appliance
from appliance.errors import ProcessFailed, SettingsError
from appliance.runtime.background import ended
from appliance.runtime.child_process import killed_with_parent
from appliance.settings.values import EngineSettings
from appliance.spark.configuration import JAVA_OPTIONS, MALLOC, Application, configuration, properties_text
from appliance.spark.tempdir import short_name

ENV_FILE_VARIABLE = "APPLIANCE_ENV_FILE"
"""The environment variable with the path of a worker's settings: secrets never pass through Spark."""

LOOPBACK = "127.0.0.1"

_PORTS_TRIED = 16
_READY = "ready"
_POLL = 0.02
_STOP_PATIENCE = 10.0
_INTEGER = struct.Struct(">i")


class SparkJvm:
    """A running JVM; ``spark_jvm`` starts and ends it, and only its user can open the files in ``tempdir``."""

    entries: Mapping[str, str] | None = None
    """Settings that its Spark gets in addition: none, it has read all of them."""

    def __init__(self, process: asyncio.subprocess.Process, tempdir: Path) -> None:
        self.tempdir = tempdir
        self._process = process
        self._ready_file = tempdir / _READY

    async def gateway(self) -> tuple[int, str]:
        """Wait until it is ready; the port for PySpark's calls, and their secret. ProcessFailed if it ends before."""
        while not self._ready_file.exists():
            self.require_running()
            await asyncio.sleep(_POLL)
        answer = self._ready_file.read_bytes()
        (port,) = _INTEGER.unpack_from(answer)
        return port, answer[2 * _INTEGER.size :].decode()

    def require_running(self) -> None:
        """Check that it runs; ProcessFailed if it has ended."""
        if self._process.returncode is not None:
            raise ProcessFailed(
                f"Spark's JVM ended with status {self._process.returncode}: see what it printed; it has to be "
                "Java 17 or newer, and to get the memory that SPARK_DRIVER_MEMORY asks for"
            )

    def kill(self) -> None:
        """End it at once: nothing runs in it yet."""
        if self._process.returncode is None:
            self._process.kill()

    async def stop(self) -> None:
        """End Spark, and then the JVM."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await ended(self._process, _STOP_PATIENCE)


@contextlib.asynccontextmanager
async def spark_jvm(application: Application, tempdir: Path) -> AsyncIterator[SparkJvm]:
    """Start it, in the event loop's thread, and end it with the block; its files are in ``tempdir``.

    SettingsError as ``driver_host``, or where SPARK_EVENT_LOG_DIR is not a usable folder.
    """
    host, monitoring = driver_host(application.engine), application.engine.monitoring
    _make_folder(monitoring.event_log)
    environment = java_environment(tempdir, application.env_file) | {
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": sys.executable,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(tempdir / _READY),
        # Its threads share connections, see py4j_gateway.py.
        "PYSPARK_PIN_THREAD": "false",
    }
    with short_name(tempdir) as short:
        entries = configuration(application, short, host, free_port(monitoring.ui_port))
        properties = private_file(tempdir / "spark.conf", properties_text(entries))
        options = ["--properties-file", str(properties), "--load-spark-defaults", "pyspark-shell"]
        process = await asyncio.create_subprocess_exec(
            *killed_with_parent([f"{spark_home()}/bin/spark-submit", *options]),
            stdin=asyncio.subprocess.PIPE,
            env={**os.environ, **environment, **MALLOC},
            process_group=0,  # Ctrl-C is ours to handle
        )
        machine = SparkJvm(process, tempdir)
        try:
            yield machine
        finally:
            await machine.stop()


def _make_folder(event_log: str) -> None:
    """Make the folder of the event log, if it is on this host: Spark refuses to start without it."""
    if event_log.startswith("/"):
        try:
            os.makedirs(event_log, exist_ok=True)
        except OSError as error:
            raise SettingsError([f"SPARK_EVENT_LOG_DIR={event_log}: {error.strerror}"]) from error


def free_port(first: int) -> int:
    """The first free port of loopback from this one on, 0 if there is none near: Spark ends if its port is taken."""
    for port in range(first, first + _PORTS_TRIED if first else 0):
        with contextlib.suppress(OSError), socket.create_server((LOOPBACK, port)):
            return port
    return 0


def java_environment(directory: Path, env_file: Path) -> dict[str, str]:
    """The variables of one of Spark's Javas, whose files are in this directory, and of what it starts.

    Python finds the appliance by them, and nothing in the current directory.
    """
    packages = str(Path(appliance.__file__).parents[1])
    return {
        "SPARK_HOME": spark_home(),
        "SPARK_LAUNCHER_OPTS": f"-Djava.io.tmpdir={directory} {' '.join(JAVA_OPTIONS)}",
        # Only Spark's pages listen there: all else has its address on its command line or in its configuration. Without
        # it Spark would look up its own host name, and fail to start where the name is unknown.
        "SPARK_LOCAL_IP": LOOPBACK,
        "TMPDIR": str(directory),
        ENV_FILE_VARIABLE: str(env_file),
        "PYTHONPATH": os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")])),
        "PYTHONSAFEPATH": "1",
    }


def spark_home() -> str:
    """Spark's directory: PySpark's own, unless the environment says otherwise."""
    package = find_spec("pyspark")
    assert package is not None
    assert package.origin is not None
    return os.environ.get("SPARK_HOME") or str(Path(package.origin).parent)


def driver_host(engine: EngineSettings) -> str:
    """The address of this host at which executors find the driver; SettingsError as ``own_address``."""
    if not engine.in_a_cluster:
        return LOOPBACK
    return engine.spark_driver_host or own_address(engine.spark_master)


def own_address(master: str) -> str:
    """The address from which this host reaches Spark's master, without sending anything; SettingsError if none does."""
    first = urlsplit(master.removeprefix("k8s://").partition(",")[0])
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((first.hostname or "", first.port or 1))
            return str(probe.getsockname()[0])
    except OSError as error:
        raise SettingsError([f"SPARK_MASTER={master}: expected a host that is reached from here: {error}"]) from error


def private_file(path: Path, text: str) -> Path:
    """A new file that only its owner can read."""
    with open(path, "x", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)
    return path
