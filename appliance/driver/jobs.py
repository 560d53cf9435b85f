"""The Spark jobs that copy, one after the other: room for them, their end, and the next one after a failure."""

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from appliance.clock import loop_seconds
from appliance.driver.task_reports import Ending, TaskReports
from appliance.engine.control.client import DriverEndpoint
from appliance.engine.control.server import ControlServer
from appliance.engine.problem_log import ProblemLog
from appliance.engine.task.worker import work
from appliance.errors import ApplianceError, ProcessFailed
from appliance.runtime.background import unless_stopped
from appliance.settings.values import EngineSettings
from appliance.spark.session import Spark
from appliance.spark.spark_jvm import SparkJvm
from appliance.spark.submitted import SubmittedJvm
from appliance.sql.jobs.listener import transforming
from appliance.version import VERSION

log = logging.getLogger("appliance.replicator")

Result = TypeVar("Result")

_ANSWER_PATIENCE = 20.0
"""Timeout of questions to Java and of killing Python workers, which take seconds at most."""


@dataclass(frozen=True, slots=True)
class JobTimes:
    """The times of jobs, in seconds.

    ``retry`` is the pause before a retry, which doubles up to ``retry_max`` for a job that fails repeatedly. After
    ``steady`` a job counts as well started: its failure is unrelated to earlier ones. Tasks end within ten seconds:
    after a stop, ``job_end`` and Java's own end fit into the 30 s that Docker gives. An executor that ends is replaced
    sooner than after two ``room_questions``, and Spark restarts its task there: lanes need no new assignment. In local
    mode there is always room, and the question only detects that Java hangs.
    """

    retry: float = 1.0
    retry_max: float = 5.0
    steady: float = 60.0
    listening: float = 5.0
    job_end: float = 15.0
    room: float = 60.0
    room_questions: float = 4.0
    local_room_questions: float = 30.0


TIMES = JobTimes()


@dataclass(slots=True)
class Jobs:
    """The jobs of one run; ``tasks`` is the number of tasks of the running one, 0 without one.

    Each task needs ``slots_each`` of Spark's slots: with SQL, one for the lanes and one for its short jobs.
    """

    engine: EngineSettings
    jvm: SparkJvm | SubmittedJvm
    stopping: asyncio.Event
    ending: Ending
    control: ControlServer
    reports: TaskReports
    problems: ProblemLog
    slots_each: int = 1
    times: JobTimes = TIMES
    tasks: int = 0
    _failures: int = 0

    async def room(self, spark: Spark) -> int:
        """Number of tasks for which there is room now; waits for some.

        ProcessFailed if there was none for long: our next application may get it, even from a new master.
        """
        master = self.engine.spark_master
        self.jvm.require_running()
        until = loop_seconds() + self.times.room
        while not (room := self._tasks_in(slots := await self._slots(spark))):
            cores, cure = (f"{slots} core", self._needed()) if slots else ("no core", ": is a worker up?")
            self.problems.tell("executors", ApplianceError(f"SPARK_MASTER={master} has {cores} for us{cure}"))
            await asyncio.sleep(self.times.retry)
            if loop_seconds() > until:
                raise ProcessFailed(f"SPARK_MASTER={master} gave {cores} for {self.times.room:g} s{self._needed()}")
        if room < (tasks := self.engine.task_count):
            few = f"Spark has cores for {room} of TASKS={tasks}: these copy every lane{self._needed()}"
            self.problems.tell("tasks", ApplianceError(few))
        else:
            self.problems.over("tasks")
        self.problems.over("executors")
        return room

    def _needed(self) -> str:
        """The cores of a task, where they are more than one."""
        return f"; with SQL in flight each task needs {self.slots_each}" if self.slots_each > 1 else ""

    async def _slots(self, spark: Spark) -> int:
        return await with_timeout(asyncio.to_thread(spark.room))

    def _tasks_in(self, slots: int) -> int:
        return min(self.engine.task_count, slots // self.slots_each)

    async def _room_changes(self, spark: Spark, room: int) -> None:
        """Wait until two questions in a row find room for more or fewer tasks than these."""
        times, in_a_cluster = self.times, self.engine.in_a_cluster
        interval = times.room_questions if in_a_cluster else times.local_room_questions
        changed = changed_before = False
        with contextlib.suppress(ProcessFailed):  # the next question meets it again
            while not (changed and changed_before):
                await asyncio.sleep(interval)
                changed_before, changed = changed, self._tasks_in(await self._slots(spark)) != room

    async def run(
        self, spark: Spark, endpoint: DriverEndpoint, lanes: int, room: int, beside: Sequence[Coroutine[Any, Any, None]]
    ) -> None:
        """Run a job of ``tasks`` until it has to end (a stop, an end by itself, another layout) or fails.

        Work ``beside`` it ends with it. ProcessFailed if Java has ended, or hangs, or SQL in it does.
        """
        began = loop_seconds()
        task = partial(work, VERSION, dataclasses.asdict(endpoint), transforming)
        description = f"{lanes} lanes in {self.tasks} tasks"
        job = asyncio.create_task(asyncio.to_thread(spark.run, task, self.tasks, description), name="job")
        others = [asyncio.create_task(each, name="beside") for each in beside]
        reports, room_changes = self.reports, self._room_changes(spark, room)
        ends = self.stopping.wait(), self.ending.begun.wait(), reports.layout_changed.wait()
        await _first_of(job, *ends, room_changes, self._silence(), reports.sql_silent.wait())
        self.tasks = 0
        for each in others:
            each.cancel()
        self.control.stop()
        if error := await self._until_ended(spark, job):
            await self._failed(error, loop_seconds() - began)
        if reports.sql_silent.is_set():  # only the end of its Java ends it
            raise ProcessFailed(f"{reports.sql_silence}: Spark ends, and the next start tries them in parts")

    async def _until_ended(self, spark: Spark, job: asyncio.Task[None]) -> Exception | None:
        """Wait for the end of a job, and give its failure; end it by force if that takes long."""
        try:
            async with asyncio.timeout(self.times.job_end):
                await asyncio.shield(job)
        except TimeoutError as error:
            if self.stopping.is_set():
                job.cancel()  # Java ends the job
                late = f"Spark hangs: its job has not ended {self.times.job_end:g} s after the stop"
                raise ProcessFailed(late) from error
            log.warning("a Spark job did not end in time: its tasks are ended by force")
            await with_timeout(asyncio.gather(asyncio.to_thread(spark.cancel), job, return_exceptions=True))
        except Exception as error:  # Spark's own errors have no common type that users could read
            return error
        return None

    async def _failed(self, error: Exception, seconds: float) -> None:
        """Tell of a job's failure after so many seconds, and wait before the next one."""
        reason = str(error).strip().splitlines()
        what = f"a Spark job failed: {reason[0] if reason else type(error).__name__}"
        self.problems.tell("spark", ApplianceError(what))
        log.debug("a Spark job failed", exc_info=error)
        self.jvm.require_running()
        if seconds > self.times.steady:
            self._failures = 0
        pause = min(self.times.retry * 2**self._failures, self.times.retry_max)
        self._failures += 1
        await unless_stopped(self.stopping, asyncio.sleep(pause))

    async def _silence(self) -> None:
        """Return when a task hangs, or was never started: only a new job copies its lanes again."""
        silent: list[int] = []
        while not silent:
            await asyncio.sleep(self.times.listening)
            silent = self.reports.silent()
        what = f"nothing is heard of task {', '.join(map(str, silent))}: its job ends, and the next one begins"
        self.problems.tell("spark", ApplianceError(what))


async def _first_of(*awaitables: Awaitable[object]) -> None:
    """Wait for the first of them, and cancel the others, except a job."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if not task.done() and task not in awaitables:
            task.cancel()


async def with_timeout(answer: Awaitable[Result], seconds: float = _ANSWER_PATIENCE) -> Result:
    """Spark's answer; ProcessFailed if there is none in that time: the next run of Spark may give one."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError as error:
        raise ProcessFailed(f"Spark hangs: its JVM has not answered for {seconds:g} s") from error
