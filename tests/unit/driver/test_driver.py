"""The driver's side of the tasks' reports and assignments, without Spark and without brokers."""

import asyncio
import functools
import threading
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from appliance.audit.model.progress import AuditProgress
from appliance.driver import jobs
from appliance.driver import replicator as driver
from appliance.driver.establish import Established
from appliance.driver.jobs import Jobs
from appliance.driver.replicator import Replicator
from appliance.driver.task_reports import TaskReports
from appliance.engine.control.assignment import Assignment, Copied, Notice
from appliance.engine.control.client import DriverEndpoint
from appliance.engine.model.chunk import Ledger
from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError, LinkRefused, ProcessFailed
from appliance.groups.model.newest_groups import NewestGroups
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import OPERATOR, Owner
from appliance.link.model.layout import Layout
from appliance.link.model.link_sql import LinkSql
from appliance.link.model.replicas import DiscoveredTopics, Replica
from appliance.settings.engine import Bound
from appliance.settings.parse import parse
from appliance.settings.role import Role
from tests.support.engine import ENGINE
from tests.support.patience import PATIENCE
from tests.support.settings import REQUIRED

LANES = 4
REPLICAS = tuple(Replica("orders", n, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2)) for n in range(LANES))


class Jvm:
    """A JVM that is never ready, until it is killed."""

    tempdir = Path("nowhere")

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


class Driver(Replicator):
    """A replicator whose job has begun, with its assignments."""

    def __init__(self, tasks: int, replicas: tuple[Replica, ...] = REPLICAS, bytes_per_second: int = 0) -> None:
        anything: Any = None
        jvm: Any = Jvm()
        bound = Bound(bytes_per_second, lambda: bytes_per_second)
        given = anything, bound, NewestGroups(), AuditProgress("")
        super().__init__(parse(REQUIRED, Role.REPLICATOR), jvm, *given)
        self.given: list[Assignment] = []
        self._control.assign = self.given.extend  # type: ignore[method-assign]
        self._link, self._found, self._jobs.tasks = Established(Layout(LANES), 1), DiscoveredTopics(replicas), tasks
        self._task_of = [lane % tasks for lane in range(LANES)]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_every_lane_is_assigned_once_and_a_tasks_second_try_gets_the_same() -> None:
    running = Driver(3)
    running._assign()
    running._assign()
    first, second = running.given[:3], running.given[3:]
    assert first == second
    assert sorted(lane for assignment in first for lane in assignment.lanes) == list(range(LANES))


def test_the_bound_is_shared_by_the_tasks_that_have_lanes() -> None:
    running = Driver(2, REPLICAS[:1], 1000)
    running._assign()
    assert [assignment.bytes_per_second for assignment in running.given if assignment.lanes] == [1000]
    running = Driver(2, REPLICAS, 1000)
    running._assign()
    assert [assignment.bytes_per_second for assignment in running.given] == [500, 500]


def test_case_52_the_problems_of_a_task_that_was_replaced_are_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    # Before, their end was not logged, and the same problems of the task in its place were not logged either.
    reports = TaskReports(ProblemLog())
    reports.new_job(2)
    reports.begun(0)
    reports.begun(1)
    for _ in range(2):
        reports.heard(0, Notice("lane 0", "no leader", "BrokerBusy"))
    reports.heard(1, Notice("lane 1", "no answer", "Unreachable"))
    assert lines(caplog) == ["no leader", "no answer"]
    reports.begun(0)
    reports.heard(0, Notice("lane 0", "no leader", "BrokerBusy"))
    reports.heard(1, Notice("lane 1", "no answer", "Unreachable"))
    assert lines(caplog) == ["no leader", "no answer", "no leader"]


def test_a_tasks_copied_records_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    TaskReports(ProblemLog()).heard(0, Copied(10, 900, 1, 2, 1))
    (record,) = caplog.records
    assert record.getMessage() == "copied"
    assert record.__dict__["fields"] == {
        "task": 0,
        "records": 10,
        "bytes": 900,
        "partitions": 1,
        "raw_batches": 2,
        "rebuilt_batches": 1,
        "filtered": 0,
    }


def test_a_lane_that_another_replicator_has_taken_ends_the_driver() -> None:
    reports = TaskReports(ProblemLog())
    reports.heard(0, Notice("lane 0", "lane 0 by another run", "Fenced"))
    assert reports.fenced.is_set()
    assert reports.fenced_from == "lane 0 by another run"


def test_a_lane_of_another_layout_has_the_driver_read_the_link_again() -> None:
    reports = TaskReports(ProblemLog())
    reports.heard(0, Notice("lane 0", "lane 0: the lanes were changed", "LayoutChanged"))
    assert reports.layout_changed.is_set()
    assert not reports.fenced.is_set()


def established(*owners: Owner) -> Established:
    copied = {Partition("orders", number): 100 + number for number in range(LANES)}
    return Established(Layout(2, 1), 9, owners=owners, copied=copied)


async def test_a_driver_takes_the_new_layout_and_stays_the_run_that_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Driver(2)
    own, operator = Owner(running._run, "worker", "host", 0, 1), Owner(OPERATOR, "c", "host", 0, 1)
    monkeypatch.setattr(driver, "Establishing", functools.partial(Making, made=established(own, operator)))
    running._link = replace(running._link, copied={Partition("orders", 1): 101})
    running._reports.layout_changed.set()
    assert await running._lay_out()
    assert (running._link.layout, running._link.generation) == (Layout(2, 1), 1)
    assert not running._reports.layout_changed.is_set()
    assert (running._loads["orders", 0], running._loads["orders", 1]) == (100, 0)


async def test_a_driver_that_wakes_up_to_another_layout_of_a_newer_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    running, newer = Driver(2), Owner("newer", "worker", "host", 0, 2)
    monkeypatch.setattr(driver, "Establishing", functools.partial(Making, made=established(newer)))
    assert not await running._lay_out()
    assert running._reports.fenced.is_set()
    assert running._reports.fenced_from == "the lanes by newer on host"


async def test_case_470_a_driver_takes_a_new_layout_with_the_sql_that_it_has_begun_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Before, it took the link's SQL for one that had been emptied: every task refused that, in job after job. With a
    # new number for its own, an older run would undo the change of a newer one that was killed.
    running, own = Driver(2), LinkSql(1, "SELECT * FROM records")
    made = replace(established(), sql=LinkSql(3))
    monkeypatch.setattr(driver, "Establishing", functools.partial(Making, made=made))
    running._link = replace(running._link, sql=own)
    assert await running._lay_out()
    assert running._link.sql == own


def test_a_job_that_failed_is_over_with_when_every_task_of_the_next_has_begun(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    problems = ProblemLog()
    reports = TaskReports(problems)
    problems.tell("spark", ApplianceError("a Spark job failed: why"))
    reports.new_job(2)
    reports.begun(0)
    reports.begun(0)
    assert lines(caplog) == ["a Spark job failed: why"]
    reports.begun(1)
    assert lines(caplog) == ["a Spark job failed: why", "well again"]


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_case_53_a_task_that_hangs_or_never_begins_is_silent_after_a_minute() -> None:
    # Before, its job ran for ever, and its lanes were silently not copied.
    clock = Clock()
    reports = TaskReports(ProblemLog(), clock)
    reports.new_job(3)
    reports.begun(0)
    reports.begun(1)
    clock.now = 50.0
    reports.heard(0, Copied.of(Ledger()))
    assert reports.silent() == []
    clock.now = 70.0
    assert reports.silent() == [1, 2]
    reports.new_job(1)
    assert reports.silent() == []


class Answering:
    """A cluster that answers, or one that has not been reached yet."""

    def __init__(self, *, reached: bool) -> None:
        self.asked, self.reached = asyncio.Event(), reached

    async def metadata(self, _: object) -> None:
        self.asked.set()
        if not self.reached:
            await asyncio.Event().wait()

    async def close(self) -> None:
        """It holds nothing."""


class Making:
    """A substitute for ``Establishing`` with an existing link."""

    def __init__(self, *_: object, made: Established | None = None) -> None:
        self._made = made or Established(Layout(LANES), 1)

    async def establish(self) -> Established:
        return self._made


def starting(monkeypatch: pytest.MonkeyPatch, source: Answering) -> tuple[Driver, Jvm]:
    async def look_for_ever(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(driver, "Establishing", Making)
    monkeypatch.setattr(Driver, "_look", look_for_ever)
    running, clusters = Driver(1), Answering(reached=True)
    jvm: Any = running._jvm
    running._stopping, running._source, running._destination = asyncio.Event(), source, clusters  # type: ignore[assignment]
    return running, jvm


async def test_case_63_a_stop_does_not_wait_for_spark_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    # It may take three minutes, and Docker gives half a minute; Java does no work yet that is worth waiting for.
    running, jvm = starting(monkeypatch, Answering(reached=True))
    work = asyncio.create_task(running.run())
    async with asyncio.timeout(PATIENCE):
        await jvm.asked.wait()
        running._stopping.set()
        await work
    assert jvm.killed.is_set()


async def test_case_62_a_stop_does_not_wait_for_a_cluster_that_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    running, jvm = starting(monkeypatch, source := Answering(reached=False))
    work = asyncio.create_task(running.run())
    async with asyncio.timeout(PATIENCE):
        await source.asked.wait()
        running._stopping.set()
        await work
    assert jvm.killed.is_set()
    assert not jvm.asked.is_set()


@pytest.mark.parametrize("formats", [True, False])
async def test_heartbeats_are_written_beside_the_copying_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, formats: bool
) -> None:
    running, jvm = starting(monkeypatch, Answering(reached=True))
    running._naming = replace(running._naming, mirror_formats=formats)
    work = asyncio.create_task(running.run())
    async with asyncio.timeout(PATIENCE):
        await jvm.asked.wait()
        while "bound" not in (beside := {task.get_name() for task in running._beside}):
            await asyncio.sleep(0)
        running._stopping.set()
        await work
    assert ("heartbeats" in beside) == formats


async def test_work_that_is_repeated_beside_the_copying_goes_on_after_any_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    running, done = Driver(1), asyncio.Event()
    failures: list[Exception] = [ValueError("a defect"), ApplianceError("no answer"), ApplianceError("no answer")]

    async def step() -> None:
        if failures:
            raise failures.pop()
        done.set()

    running._repeat_beside(step, "heartbeats", 0.0)
    async with asyncio.timeout(PATIENCE):
        await done.wait()
    running._beside[0].cancel()
    assert lines(caplog) == ["no answer", "unexpected ValueError: a defect", "well again"]


class Hanging:
    """A Spark whose job ends only by force."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def room(self) -> int:
        return 1

    def run(self, *_: object) -> None:
        self.cancelled.wait(PATIENCE)

    def cancel(self) -> None:
        self.cancelled.set()


ENDPOINT = DriverEndpoint("/nowhere/control", "token", "run", 1)


@dataclass
class Cores(Hanging):
    """A Spark with so many cores."""

    cores: int

    def room(self) -> int:
        return self.cores


async def test_cores_that_do_not_do_for_the_tasks_and_the_sql_beside_them_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    monkeypatch.setattr(jobs, "_ROOM_PATIENCE", 0.0)
    monkeypatch.setattr(jobs, "_RETRY", 0.01)
    running: Any = Driver(1)
    engine = replace(ENGINE, spark_master="spark://10.0.0.9:7077", tasks=2)
    beside = Jobs(engine, running._jvm, asyncio.Event(), running._control, running._reports, running._problems, 2)
    spark: list[Any] = [Cores(number) for number in range(5)]
    assert [await beside.room(spark[number]) for number in (2, 3, 4)] == [1, 1, 2]
    for number, said in ((1, "1 core"), (0, "no core")):
        with pytest.raises(ProcessFailed, match=rf"gave {said} for 0 s; with SQL in flight each task needs 2"):
            await beside.room(spark[number])
    assert lines(caplog) == [
        "Spark has cores for 1 of TASKS=2: these copy every lane; with SQL in flight each task needs 2",
        "SPARK_MASTER=spark://10.0.0.9:7077 has 1 core for us; with SQL in flight each task needs 2",
        "SPARK_MASTER=spark://10.0.0.9:7077 has no core for us: is a worker up?",
    ]


async def test_case_53_the_job_of_a_silent_task_is_ended_by_force(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(jobs, "_LISTEN_INTERVAL", 0.0)
    monkeypatch.setattr(jobs, "_JOB_END_PATIENCE", 0.0)
    running, clock, spark = Driver(1), Clock(), Hanging()
    running._reports = running._jobs.reports = TaskReports(running._problems, clock)
    running._jobs.stopping = asyncio.Event()
    job = asyncio.create_task(running._one_job(spark, ENDPOINT, 1))  # type: ignore[arg-type]
    while not running._reports._heard:
        await asyncio.sleep(0)
    clock.now = 61.0
    await job
    assert spark.cancelled.is_set()
    assert "nothing is heard of task 0: its job ends, and the next one begins" in lines(caplog)


async def test_sql_that_makes_no_progress_ends_the_replicator_and_its_spark(
    caplog: pytest.LogCaptureFixture,
) -> None:
    running, spark = Driver(1), Hanging()
    running._jobs.stopping = asyncio.Event()
    running._jobs.control.stop = spark.cancel  # type: ignore[method-assign]
    job = asyncio.create_task(running._one_job(spark, ENDPOINT, 1))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    silent = "SQL in flight: no progress for 60 s in orders-0 offsets 5 to 9"
    running._reports.heard(0, Notice("SQL in flight", silent, "ProcessFailed"))
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(ProcessFailed, match=silent):
            await job
    assert lines(caplog) == [silent]


async def test_case_64_a_stop_does_not_wait_for_a_job_that_hangs_to_be_ended_by_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Before, it took 70 seconds until Java was killed.
    monkeypatch.setattr(jobs, "_JOB_END_PATIENCE", 0.0)
    running, spark = Driver(1), Hanging()
    running._jobs.stopping = asyncio.Event()
    running._jobs.stopping.set()
    with pytest.raises(ProcessFailed, match="Spark hangs: its job has not ended"):
        await running._one_job(spark, ENDPOINT, 1)  # type: ignore[arg-type]
    assert not spark.cancelled.is_set()
    spark.cancel()


def test_case_54_a_problem_of_two_tasks_is_over_when_neither_has_it(caplog: pytest.LogCaptureFixture) -> None:
    # Before, it was logged as over when the first task had recovered, and never again logged.
    caplog.set_level("INFO")
    reports = TaskReports(ProblemLog())
    for task in range(3):
        reports.heard(task, Notice("source broker 1", "no answer", "Unreachable"))
    reports.heard(0, Notice("source broker 1", "", ""))
    reports.begun(1)
    assert lines(caplog) == ["no answer"]
    reports.heard(2, Notice("source broker 1", "", ""))
    assert lines(caplog) == ["no answer", "well again"]


def test_a_task_that_has_copied_nothing_says_that_it_lives_and_the_log_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    TaskReports(ProblemLog()).heard(0, Copied.of(Ledger()))
    assert lines(caplog) == []


async def test_a_replicator_whose_link_is_deleted_meanwhile_ends_and_says_so() -> None:
    class Deleted:
        async def look(self) -> DiscoveredTopics:
            raise LinkRefused("the link was deleted")

    running, discovery = Driver(1), cast("Any", Deleted())
    running._stopping = asyncio.Event()

    async def begin() -> None:
        with pytest.raises(LinkRefused):
            await running._look(discovery)

    running._begin = begin  # type: ignore[assignment]
    with pytest.raises(LinkRefused, match="the link was deleted"):
        await running.run()
    assert running._reports.fenced.is_set()
