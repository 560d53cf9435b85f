"""Parts of a driver without Spark and without brokers."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from appliance.driver.jobs import TIMES, Jobs, JobTimes
from appliance.driver.model.link_facts import Established
from appliance.driver.replicator import Replicator
from appliance.driver.spark_start import SqlJobs
from appliance.driver.task_reports import Ending, TaskReports
from appliance.engine.control.assignment import Assignment
from appliance.engine.control.client import DriverEndpoint
from appliance.engine.problem_log import ProblemLog
from appliance.link.model.layout import Layout
from appliance.settings.engine import Bound
from appliance.settings.values import EngineSettings
from tests.support.clock import Clock
from tests.support.engine import ENGINE
from tests.support.patience import PATIENCE

ENDPOINT = DriverEndpoint("/nowhere/control", "token", "run", 1)
LANES = 4


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


class Jvm:
    """A JVM that is never ready, until it is killed."""

    tempdir = Path("nowhere")
    entries = None

    def __init__(self) -> None:
        self.asked, self.killed = asyncio.Event(), threading.Event()

    async def gateway(self) -> tuple[int, str]:
        self.asked.set()
        await asyncio.Event().wait()
        return 0, ""

    def require_running(self) -> None:
        """It runs."""

    def kill(self) -> None:
        self.killed.set()


class Control:
    """The driver's end of the connections to the tasks: keeps what it is to send."""

    def __init__(self) -> None:
        self.assigned: list[Sequence[Assignment]] = []
        self.stopped = threading.Event()

    def assign(self, assignments: Sequence[Assignment]) -> None:
        self.assigned.append(assignments)

    def stop(self) -> None:
        self.stopped.set()


class Spark:
    """A Spark with so many cores, whose job ends only by force, or with ``ends``."""

    def __init__(self, cores: int = 1, ends: threading.Event | None = None) -> None:
        self.cores, self.ends, self.cancelled = cores, ends or threading.Event(), threading.Event()

    def room(self) -> int:
        return self.cores

    def run(self, *_: object) -> None:
        self.ends.wait(PATIENCE)

    def cancel(self) -> None:
        self.cancelled.set()
        self.ends.set()


def jobs(
    engine: EngineSettings = ENGINE,
    clock: Clock | None = None,
    slots_each: int = 1,
    times: JobTimes = TIMES,
) -> Jobs:
    """The jobs of a replicator whose tasks are never connected."""
    problems, ending, control = ProblemLog(), Ending("replicator-orange"), cast("Any", Control())
    reports = TaskReports(problems, ending, clock or Clock())
    jvm = cast("Any", Jvm())
    return Jobs(engine, jvm, asyncio.Event(), ending, control, reports, problems, slots_each, times)


def replicator(of: Jobs, link: Established | None = None, later: Established | None = None) -> Replicator:
    """The replicator of a link, which is read as ``later`` the next time."""
    first = link or Established(Layout(LANES), 1)

    async def establish() -> Established:
        return later or first

    return Replicator(first, establish, of, Bound(0, lambda: 0))


async def run_job(of: Jobs, spark: Spark) -> None:
    """Run one job of a link."""
    await replicator(of).run_job(cast("Any", spark), ENDPOINT, 1, SqlJobs(None, of.control, cast("Any", None)))
