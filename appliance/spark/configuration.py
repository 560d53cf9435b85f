"""Spark's configuration: pure, from the settings to what its driver reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from appliance.settings.monitoring import MonitoringSettings
from appliance.settings.values import EngineSettings
from appliance.spark.passed_conf import CONFIDENTIAL, EXECUTOR_OPTIONS, merged

_DIRECT_MEGABYTES = 64
_DIRECT = "-XX:MaxDirectMemorySize={}m"
FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
XML_FETCHES = ("javax.xml.accessExternalDTD", "javax.xml.accessExternalSchema")
"""Java's properties of what XML may fetch: nothing, since a record would choose it."""
_FETCHES_NOTHING = tuple(f"-D{name}=" for name in XML_FETCHES)

JAVA_OPTIONS = (
    *(FIRST_COMPILER, "-XX:+UseSerialGC", "-XX:-UsePerfData", _DIRECT.format(_DIRECT_MEGABYTES)),
    *_FETCHES_NOTHING,
)
"""Spark's Java schedules few jobs: the second compiler and the parallel collector would cost more than they gain. Bytes
that arrive at a port are kept in direct memory until the sender is known: a stranger fills no more than that."""

ROWS_AT_ONCE = 2_000
"""Rows that Spark gets at once, and sends at once. It has no other bound: to look at their bytes before each row would
take a fifth of a job. So a record counts as several rows if it is large, or may become so.
"""

_ROWS_MEGABYTES = 48
"""More direct memory for the rows of each task: ``ROWS_AT_ONCE`` of them, with room, and Arrow doubles its buffers."""

_LATER = "-XX:CompileThresholdScaling=10"
"""With SQL, the compilers wait until code has run often: otherwise they take as long as a million records do."""

_UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""With SQL, Arrow does not check each access to rows: a Python process of ours, of this release, has written them."""

LOG_FILE = files("appliance.spark").joinpath("log4j2.properties")

MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(64 * 1024 * 1024), "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024)}
"""glibc keeps the memory of a Fetch for the next one: fresh memory from the kernel costs a tenth of the copying."""

_TRANSFORM = {
    # Its jobs are short: a new process for each would take longer than its work.
    "spark.python.worker.reuse": "true",
    # A thread that reads ahead would take what belongs to the next job of a process.
    "spark.python.udf.pipelined.enabled": "false",
    # Its plan is prepared once, and has no exchange that could be replanned.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_AT_ONCE),
    # Java's highest number: nothing looks at the bytes before each row.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # Java's catalog would make a directory where the replicator was started.
    "spark.sql.catalogImplementation": "in-memory",
}


def slots_each(*, transforms: bool) -> int:
    """The slots of Spark for each task that copies: with SQL, one more runs its jobs."""
    return 2 if transforms else 1


_PAGE_FILTER = "org.apache.spark.ui.JWSFilter"

_TRIES = 4

PACKAGE_DIRECTORY = "./appliance"
"""Directory into which executors unpack the package that is submitted: ``--archives FILE.zip#appliance``."""

_PROCESSES = {
    # A record that overflows Java's stack fails as any other: Spark would end all of its tasks.
    "spark.executor.killOnFatalError.depth": "0",
    # Only our user can open them, and they reduce the cost of a Python task from 60 to 20 ms.
    "spark.python.unix.domain.socket.enabled": "true",
    # Tasks are long: a process that waits for another one would complain when Java ends.
    "spark.python.worker.reuse": "false",
    "spark.python.daemon.module": "appliance.driver.daemon",
}

_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.redaction.regex": CONFIDENTIAL}

_SILENT_HOST = {
    # It is given up after half a minute, not after two.
    "spark.executor.heartbeatInterval": "3s",
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "3s",
}

_MALLOC_OF_EXECUTORS = {f"spark.executorEnv.{name}": value for name, value in MALLOC.items()}


@dataclass(frozen=True, slots=True)
class Application:
    """An application of Spark; ``env_file`` has the settings of its hosts.

    Its ``passed`` settings of Spark are as ``passed_conf`` has checked them. With ``transforms``, records pass SQL.
    """

    engine: EngineSettings
    name: str
    env_file: Path
    passed: Mapping[str, str] = field(default_factory=dict)
    transforms: bool = False

    @property
    def slots(self) -> int:
        """The slots of Spark that its tasks need."""
        return slots_each(transforms=self.transforms) * self.engine.task_count


def configuration(application: Application, tempdir: Path, host: str, ui_port: int = 0) -> dict[str, str]:
    """The driver's configuration, which also reaches its executors; they find it at ``host``.

    ``tempdir`` is the directory of Java's temporary files and of its sockets, with names of up to 106 bytes, and
    ``ui_port`` the port of Spark's page, 0 for any.
    """
    engine, options = application.engine, _java_options(application)
    properties = f'"-Dlog4j2.configurationFile={LOG_FILE}" "-Djava.io.tmpdir={tempdir}"'
    common = {
        "spark.app.name": application.name,
        "spark.master": _master(application),
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.driver.memory": engine.spark_driver_memory,
        "spark.driver.extraJavaOptions": f"{properties} {' '.join(options)}",
        # Less than the direct memory.
        "spark.network.maxRemoteBlockSizeFetchToMem": "16m",
        **_PROCESSES,
    }
    ours = common | _monitoring(engine.monitoring, ui_port) | authentication(engine)
    cluster = _cluster(application) if engine.in_a_cluster else {}
    return merged(ours | cluster | (_TRANSFORM if application.transforms else {}), application.passed)


def _java_options(application: Application) -> Sequence[str]:
    """Options of a Java in which tasks run."""
    if not application.transforms:
        return JAVA_OPTIONS
    direct = _DIRECT.format(_DIRECT_MEGABYTES + _ROWS_MEGABYTES * application.engine.task_count)  # the last one counts
    common = [each for each in JAVA_OPTIONS if each != FIRST_COMPILER]
    return [*common, _LATER, _UNCHECKED, direct, "-Dappliance.tasks=off"]


def _monitoring(monitoring: MonitoringSettings, ui_port: int) -> dict[str, str]:
    """Spark's page, which listens at SPARK_LOCAL_IP and has no login, and its event log."""
    entries = {"spark.ui.enabled": str(monitoring.ui).lower(), **_QUIET}
    if monitoring.ui:
        # Nobody who reaches the page can end anything or keep Java busy.
        entries |= {
            "spark.ui.port": str(ui_port),
            "spark.ui.killEnabled": "false",
            "spark.ui.threadDumpsEnabled": "false",
            "spark.ui.heapHistogramEnabled": "false",
        }
    return entries | _event_log(monitoring.event_log)


def _event_log(folder: str) -> dict[str, str]:
    if not folder:
        return {}
    address = Path(folder).as_uri() if folder.startswith("/") else folder
    return {"spark.eventLog.enabled": "true", "spark.eventLog.dir": address}


def submitted_configuration(application: Application, submitted: Mapping[str, str]) -> dict[str, str]:
    """The settings to add to those that ``spark-submit`` has started Java with, which count where they may.

    Spark's page listens where spark-submit lets it: only an operator who says so gets one.
    """
    engine, passed = application.engine, application.passed
    defaults = {
        "spark.ui.enabled": "false",
        "spark.executorEnv.APPLIANCE_ENV_FILE": str(application.env_file),
        "spark.executorEnv.PYTHONPATH": PACKAGE_DIRECTORY,
        **(_SILENT_HOST if engine.in_a_cluster else {}),
        **_MALLOC_OF_EXECUTORS,
        **_event_log(engine.monitoring.event_log),
    }
    if engine.spark_master.startswith("spark:"):
        defaults["spark.cores.max"] = str(application.slots)
    defaults = {setting: value for setting, value in defaults.items() if setting not in submitted}
    alone = {"spark.speculation": "false", "spark.dynamicAllocation.enabled": "false"}
    ours = alone | _PROCESSES | _QUIET | {"spark.app.name": application.name}
    ours[EXECUTOR_OPTIONS] = " ".join([{**submitted, **passed}.get(EXECUTOR_OPTIONS, ""), *_FETCHES_NOTHING])
    return defaults | dict(passed) | ours | (_TRANSFORM if application.transforms else {})


def authentication(engine: EngineSettings) -> dict[str, str]:
    """Spark's connections in every mode: they require the secret, and are encrypted with AES-GCM.

    Only a standalone cluster needs the secret as a setting, since its parts start separately. In local mode and on
    Kubernetes Spark's driver draws one for each run.
    """
    entries = {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        # Spark's defaults are the first version, whose key derivation is weak, and AES-CTR, where an attacker on the
        # wire can flip bits unseen.
        "spark.network.crypto.authEngineVersion": "2",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        "spark.network.crypto.saslFallback": "false",
    }
    standalone = engine.spark_master.startswith("spark:")
    return entries | ({"spark.authenticate.secret": engine.spark_secret.reveal()} if standalone else {})


def part_configuration(engine: EngineSettings, page_key: str) -> dict[str, str]:
    """A standalone master's or worker's configuration.

    Neither starts without its web page. The page requires a token signed with ``page_key``, which nobody gets: so it
    shows nothing and takes no order.
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


def _cluster(application: Application) -> dict[str, str]:
    options = " ".join(_java_options(application))
    entries = {
        "spark.cores.max": str(application.slots),
        "spark.executor.memory": "512m",
        # Below the executor's own directory, which is removed with its Spark worker.
        EXECUTOR_OPTIONS: f"-Djava.io.tmpdir=. {options}",
        **_SILENT_HOST,
        **_MALLOC_OF_EXECUTORS,
    }
    if port := application.engine.spark_driver_port:
        # The first is the control connections'.
        entries |= {
            "spark.driver.port": str(port + 1),
            "spark.driver.blockManager.port": str(port + 2),
            "spark.port.maxRetries": "0",
        }
    return entries


def _master(application: Application) -> str:
    """Spark's master: local mode gets one slot more than its tasks need, and retries a failed task."""
    master = application.engine.spark_master
    return f"local[{application.slots + 1},{_TRIES}]" if master == "local[*]" else master
