"""The settings of the replicator's engine, and its bound, which is read again while the replicator runs."""

import enum
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass

from appliance.errors import SettingsError
from appliance.settings.monitoring import MonitoringSettings
from appliance.settings.parsers import address, choice, matching, milliseconds, seconds, whole
from appliance.settings.secret import Secret
from appliance.settings.variable import variable

_master = matching(r"local(\[([0-9]+|\*)(,[0-9]+)?\])?|(spark|k8s)://\S+", "local[*], spark://host:port or k8s://url")
_size = matching(r"[1-9][0-9]*[mMgG]", "a size such as 512m or 2g")
_HEAP_MIN = 470
"""Mebibytes: Spark ends unless 450 of the heap can be used, which leaves out a part of it that the collector keeps."""


def _memory(value: str) -> str:
    """The size of Java's heap, as Java takes it."""
    size = _size(value)
    if int(size[:-1]) * (1024 if size[-1] in "gG" else 1) < _HEAP_MIN:
        raise ValueError(f"expected at least {_HEAP_MIN}m: with less Spark does not start")
    return size


log = logging.getLogger("appliance.replicator")


class OnGap(enum.StrEnum):
    """The reaction if the source no longer holds the next record."""

    STOP = "stop"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The replicator's engine; times in seconds, sizes in bytes.

    ``spark_secret`` is the Spark cluster's. A ``spark_driver_host`` of "" means the address by which Spark's master is
    reached.
    """

    on_gap: OnGap = variable("ON_GAP", choice(OnGap), "stop").purpose(
        "Reaction to a source that no longer holds the next record: stop, or record the gap and go on."
    )
    lanes: int = variable("LANES", whole(0, 1000), "0").purpose(
        "Lanes (transactional ids that copy in parallel) of a new link or order; 0: one for each task, in an order 1."
    )
    tasks: int = variable("TASKS", whole(0, 1000), "0").purpose(
        "Number of Spark tasks; 0: one for each core of this host."
    )
    summary_seconds: float = variable("SLICE_SECONDS", seconds(1, 3600), "60").purpose(
        "Seconds between two log lines with the records that each task has copied."
    )
    discovery_seconds: float = variable("DISCOVERY_SECONDS", seconds(0.1, 3600), "3").purpose(
        "Seconds between two searches for new topics and partitions."
    )
    commit_interval: float = variable("COMMIT_INTERVAL_MS", milliseconds(1, 60_000), "25").purpose(
        "Longest time for which a transaction gathers records, in milliseconds."
    )
    commit_bytes: int = variable("COMMIT_BYTES", whole(2**16, 2**30), str(2**24)).purpose(
        "Size at which a transaction commits before that time, in bytes."
    )
    max_bytes_per_second: int = variable("MAX_BYTES_PER_SECOND", whole(0, 2**40), "0").purpose(
        "Most bytes of records read from the source in a second; 0: no bound. Changes need no restart."
    )
    transaction_timeout: float = variable("TRANSACTION_TIMEOUT_SECONDS", seconds(1, 900), "60").purpose(
        "Seconds after which the destination aborts the open transaction of a dead lane."
    )
    spark_master: str = variable("SPARK_MASTER", _master, "local[*]").purpose(
        "Spark master of the tasks: local[*], spark://host:port or k8s://url."
    )
    spark_secret: Secret = variable("SPARK_AUTHENTICATE_SECRET", Secret).purpose(
        "The shared secret of a Spark cluster; required with spark://host:port."
    )
    spark_driver_host: str = variable("SPARK_DRIVER_HOST", address).purpose(
        "Address at which the Spark cluster reaches this host; empty: the one from which it reaches SPARK_MASTER."
    )
    spark_driver_port: int = variable("SPARK_DRIVER_PORT", whole(0, 65_533), "0").purpose(
        "First of the three ports there that the Spark cluster dials; 0: any three."
    )
    spark_driver_memory: str = variable("SPARK_DRIVER_MEMORY", _memory, "512m").purpose(
        "Heap of the Spark driver's JVM, at least 470m."
    )
    standbys: int = variable("REPLICATOR_STANDBYS", whole(0, 100), "0").purpose("Replicators that are to stand by.")
    monitoring: MonitoringSettings = MonitoringSettings()

    @property
    def in_a_cluster(self) -> bool:
        """True if tasks run on other hosts than the driver's."""
        return not self.spark_master.startswith("local")

    @property
    def task_count(self) -> int:
        """The number of tasks that copy at once: as set, else one for each core."""
        return self.tasks or os.cpu_count() or 1


class Bound:
    """``bytes_per_second`` is the present bound; 0: none.

    A file may be half written when it is read, so a new value is used when it has been read twice.
    """

    def __init__(self, bytes_per_second: int, read: Callable[[], int]) -> None:
        """``read`` returns the value in the settings, or raises SettingsError."""
        self.bytes_per_second = bytes_per_second
        self._read = read
        self._last_value = bytes_per_second
        self._last_fault = ""

    async def follow(self, changed: Callable[[], None]) -> None:
        """Read once, and call ``changed`` if another bound holds now."""
        if self.read_again():
            log.info("bound changed", extra={"fields": {"bytes_per_second": self.bytes_per_second}})
            changed()

    def read_again(self) -> bool:
        """Read once; True if the bound changes. Unreadable settings change nothing, and are logged once."""
        try:
            value = self._read()
        except SettingsError as error:
            if str(error) != self._last_fault:
                log.warning(f"the settings cannot be read again, the bound stays: {error}")
            self._last_fault = str(error)
            return False
        self._last_fault = ""
        last, self._last_value = self._last_value, value
        if value != last or value == self.bytes_per_second:
            return False
        self.bytes_per_second = value
        return True
