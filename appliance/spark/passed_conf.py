"""The settings that ``--conf KEY=VALUE`` passes on to Spark, checked: none undoes what the replicator rests on."""

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from appliance.errors import SettingsError
from appliance.settings.secret import Secret
from appliance.settings.variables import NAMES

CONFIDENTIAL = r"(?i)secret|passw(or)?d|token|credential|(access|account|api|private)[._-]?key"
"""Names whose values Spark hides on its page and in its event log: a regular expression of Java and Python."""

EXECUTOR_OPTIONS = "spark.executor.extraJavaOptions"
JAVA_OPTIONS_OF = ("spark.driver.extraJavaOptions", EXECUTOR_OPTIONS)
"""Settings that have options of ours: passed ones are added to them."""

_SERVED = "Spark would serve the files to everybody who reaches the driver"
_PROCESSES = "the processes of the tasks rest on it"
_RESERVED = {
    "spark.app.name": "the application has the replicator's name",
    "spark.authenticate.": "nobody may be heard without Spark's secret",
    "spark.cores.max": "TASKS sets it",
    "spark.driver.bindAddress": "SPARK_DRIVER_HOST sets it",
    "spark.driver.blockManager.port": "SPARK_DRIVER_PORT sets it",
    "spark.driver.host": "SPARK_DRIVER_HOST sets it",
    "spark.driver.memory": "SPARK_DRIVER_MEMORY sets it",
    "spark.driver.port": "SPARK_DRIVER_PORT sets it",
    "spark.dynamicAllocation.": "TASKS says how many cores copy",
    "spark.executor.killOnFatalError.depth": "no record may end an executor",
    "spark.archives": _SERVED,
    "spark.files": _SERVED,
    "spark.jars.": _SERVED,
    "spark.master": "SPARK_MASTER sets it",
    "spark.network.crypto.": "nobody may be heard without Spark's secret",
    "spark.port.maxRetries": "SPARK_DRIVER_PORT rests on it",
    "spark.pyspark.": _PROCESSES,
    "spark.python.": _PROCESSES,
    "spark.redaction.": "it hides secrets",
    "spark.speculation": "a second try of a task would fence the first",
    "spark.sql.": "the link's SQL gives the same answers wherever it runs, in a verification too",
    "spark.submit.": _PROCESSES,
    "spark.task.cpus": "TASKS says how many cores copy, and the link's SQL needs those beside them",
    "spark.ui.enabled": "SPARK_UI sets it",
    "spark.ui.filters": "the page takes no order",
    "spark.ui.heapHistogramEnabled": "the page takes no order",
    "spark.ui.killEnabled": "the page takes no order",
    "spark.ui.port": "SPARK_UI_PORT sets it",
    "spark.ui.reverseProxy": "the page is on loopback alone",
    "spark.ui.threadDumpsEnabled": "the page takes no order",
}
"""Names, and the beginnings of names, that are refused, each with the reason."""

_LONG = 8
"""Length from which a secret is found within a longer value, too."""

_ENVIRONMENT = "spark.executorEnv."
_NAMES_OF_CLASSES = (".provider", ".enabled")


def passed_conf(options: Iterable[str], secrets: Collection[str] = ()) -> dict[str, str]:
    """The settings of ``--conf`` options; the last of a name counts. ``secrets`` are ours, which Spark must not hold.

    SettingsError with every option that is refused, and why.
    """
    entries, faults = {}, []
    for option in options:
        name, equals, value = option.partition("=")
        fault = _fault(name.strip(), value, secrets) if equals else "expected KEY=VALUE"
        if fault:
            faults.append(f"--conf {_shown(name, option, secrets)}: {fault}")
        entries[name.strip()] = value.strip()
    if faults:
        raise SettingsError(faults)
    return entries


def _fault(name: str, value: str, secrets: Collection[str]) -> str:
    if re.search(CONFIDENTIAL, name) and not name.endswith(_NAMES_OF_CLASSES):
        return "a secret is never passed on, since others would see it on the command line and in Spark's settings"
    if any(value == secret or (len(secret) >= _LONG and secret in value) for secret in secrets):
        return "its value holds a secret of the link"
    if not name.startswith("spark."):
        return "expected the name of a setting of Spark, which begins with spark."
    if name.removeprefix(_ENVIRONMENT) in NAMES:
        return "each host reads its own setenv.sh"
    for reserved, reason in _RESERVED.items():
        if name == reserved or (reserved.endswith(".") and f"{name}.".startswith(reserved)):
            return reason
    return ""


def _shown(name: str, option: str, secrets: Collection[str]) -> str:
    """The name as far as it can be one, since a value may follow; not at all if a secret of ours begins there."""
    if any(-1 < option.find(secret) < len(name) for secret in secrets if len(secret) >= _LONG):
        return "..."
    beginning = re.match(r"[\w.-]*", name.strip())
    shown = beginning[0] if beginning else ""
    return shown if shown == name.strip() else f"{shown}..."


def merged(ours: Mapping[str, str], passed: Mapping[str, str]) -> dict[str, str]:
    """Our settings with those that are passed on; options of Java are added to ours."""
    joined = {name: f"{ours[name]} {passed[name]}" for name in JAVA_OPTIONS_OF if name in ours and name in passed}
    return {**ours, **passed, **joined}


def secrets_of(settings: object) -> Iterator[str]:
    """The secrets in a dataclass and in those within it."""
    if isinstance(settings, Secret):
        if settings:
            yield settings.reveal()
    elif dataclasses.is_dataclass(settings) and not isinstance(settings, type):
        for each in dataclasses.fields(settings):
            yield from secrets_of(getattr(settings, each.name))
    elif isinstance(settings, Sequence) and not isinstance(settings, str):
        for item in settings:
            yield from secrets_of(item)
