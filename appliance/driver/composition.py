"""The parts of a replicator, and the order in which they start and end."""

import asyncio
import functools
import uuid
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from appliance.audit.model.progress import AuditProgress
from appliance.clock import deadline, loop_seconds
from appliance.driver.background import Background, Repeated, Service
from appliance.driver.discovery import Search, TopicDiscovery
from appliance.driver.establish import Establishing
from appliance.driver.jobs import Jobs
from appliance.driver.missing_maps import tell_what_is_missing
from appliance.driver.model.link_facts import Established
from appliance.driver.replicator import Replicator
from appliance.driver.spark_start import SqlJobs, start_spark
from appliance.driver.task_reports import Ending, TaskReports
from appliance.engine.control.client import DriverEndpoint
from appliance.engine.control.server import ControlServer
from appliance.engine.problem_log import ProblemLog, log_defect, until_answered
from appliance.errors import ApplianceError, Fenced
from appliance.groups.group_service import GroupService
from appliance.groups.mirror_formats import HEARTBEAT_SECONDS, Heartbeats
from appliance.groups.model.newest_groups import NewestGroups
from appliance.kafka.client.client_tls import user_of
from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.client.membership import Membership
from appliance.link.client.standing_by import goes_on, set_when_over
from appliance.link.handle import Link
from appliance.link.model.problems import AUDIT, BOUND, HEARTBEATS, MAPS
from appliance.runtime.background import unless_stopped
from appliance.settings.engine import Bound
from appliance.settings.target import Target
from appliance.settings.values import Settings
from appliance.spark.configuration import slots_each
from appliance.spark.session import Spark
from appliance.spark.spark_jvm import SparkJvm, driver_host
from appliance.spark.submitted import SubmittedJvm
from appliance.sql.model.statement import Statement

_AUDIT_RETRY = 60.0
"""Pause before the audit table is opened again, in seconds."""
_SOURCE_PAUSE, _SOURCE_PATIENCE = 3.0, 8.0
"""Seconds between two questions to the source, and those after which its answers or their absence count."""
_STOP_SECONDS = 1.0
"""Time for a run's last transactions before another member takes the lanes."""


@dataclass(slots=True)
class Composition:
    """One replicator: it copies whenever it is its link's active one, until ``stopping``, within ``bound``.

    ``newest`` receives the positions of the groups, ``audit`` the progress of the audit table, and ``problems`` the
    open problems, as they come and go. Each time that it becomes the active one, a run of the link begins.
    """

    settings: Settings
    source: KafkaCluster
    destination: KafkaCluster
    jvm: SparkJvm | SubmittedJvm
    stopping: asyncio.Event
    bound: Bound
    newest: NewestGroups
    audit: AuditProgress
    problems: ProblemLog
    membership: Membership
    run_name: str = ""
    ending: Ending = field(init=False)
    background: Background = field(init=False)
    jobs: Jobs = field(init=False)
    _spark_start: "asyncio.Task[tuple[Spark, SqlJobs]] | None" = None

    def __post_init__(self) -> None:
        settings, engine = self.settings, self.settings.engine
        self.ending, self.background = Ending(settings.replicator), Background(self.problems)
        reports = TaskReports(self.problems, self.ending)
        between_hosts = Target(driver_host(engine), engine.spark_driver_port)
        at = between_hosts if engine.in_a_cluster else self.jvm.tempdir / "control"
        control = ControlServer(at, reports.begun, reports.heard)
        slots = slots_each(transforms=settings.transform.wanted)
        self.jobs = Jobs(engine, self.jvm, self.stopping, self.ending, control, reports, self.problems, slots)

    async def run(self) -> None:
        """Copy or stand by until the stop; Fenced if a replicator that is no member of the group has the lanes."""
        self.background.task(self._essential(self._end_at_the_stop()), "stop")
        try:
            await unless_stopped(self.ending.begun, self._prepare())
            begun = self.ending.begun
            while not begun.is_set() and await unless_stopped(begun, self.membership.until_active()):
                await self._copy()
        finally:
            await self.membership.leave()
            await self.background.stop()
            await self.jobs.control.close()
            self._end_spark()
        if self.ending.error and not self._gave_way():
            raise self.ending.error

    def _gave_way(self) -> bool:
        """True after a stop while another member was taking over, which is how a stop may end."""
        return isinstance(self.ending.error, Fenced) and self.stopping.is_set() and not self.membership.active

    def _end_spark(self) -> None:
        start = self._spark_start
        if start and start.done() and not start.cancelled() and not start.exception():
            start.result()[0].let_go()
        else:
            self.jvm.kill()

    async def _end_at_the_stop(self) -> None:
        """End the run, and hand over after a second even if its transactions last: they are fenced then."""
        await self.stopping.wait()
        self.ending.begun.set()
        await asyncio.sleep(_STOP_SECONDS)
        await self.membership.leave()

    async def _essential(self, work: Coroutine[Any, Any, None]) -> None:
        """Do work without which the process is of no use: it ends with it."""
        try:
            await work
        except Exception as error:
            self.ending.end(error if isinstance(error, ApplianceError) else log_defect(error))

    async def _prepare(self) -> None:
        """Become a member of the group, while Spark starts.

        Both clusters must answer before anything is written to either. A standby in a cluster starts Spark once it
        copies: its executors would take the cores of the active one.
        """
        await until_answered(lambda: self.source.metadata([]), "source", self.problems)
        await until_answered(lambda: self.destination.metadata([]), "destination", self.problems)
        self.background.task(self._essential(self.membership.run()), "membership")
        self.background.task(self._essential(self._tell_readiness()), "ready")

    async def _tell_readiness(self) -> None:
        """Tell the group if this process could copy: Spark has started, Java runs, and the source answers.

        A change of the source's answers counts once it has lasted: each one may move the link.
        """
        if not self.settings.engine.in_a_cluster:
            spark, _ = await self._spark()
            if not self.membership.active:  # the first job starts the daemon of the Python workers, for seconds
                await asyncio.to_thread(spark.call, abs, 0, "standing by")
        ready, since = True, loop_seconds()
        while True:
            self.membership.tell_ready(ready)
            await asyncio.sleep(_SOURCE_PAUSE)
            self.jvm.require_running()
            if await self._source_answers() is ready:
                since = loop_seconds()
            elif loop_seconds() - since > _SOURCE_PATIENCE:
                ready, since = not ready, loop_seconds()

    async def _source_answers(self) -> bool:
        try:
            async with deadline(_SOURCE_PAUSE, "no answer"):
                await self.source.metadata([])
        except ApplianceError:
            return False
        return True

    async def _spark(self) -> tuple[Spark, SqlJobs]:
        """Spark, which starts at the first call."""
        if self._spark_start is None:
            statement = Statement.of(self.settings.transform)
            starting = start_spark(self.settings, self.jvm, self.jobs.control, statement)
            self._spark_start = self.background.task(starting, "spark-start")
        return await asyncio.shield(self._spark_start)

    async def _copy(self) -> None:
        """One run of the link: until the stop, an end by itself, or the assignment of another member."""
        self.run_name, beside, began = uuid.uuid4().hex[:12], Background(self.problems), loop_seconds()
        ending = self.background.task(self._end_services(beside), "services")
        beside.task(set_when_over(self.ending.begun, self.stopping, self.membership), "assignment")
        try:
            if started := await unless_stopped(self.ending.begun, self._start(beside)):
                replicator, spark, sql = started
                await replicator.run(spark, self.endpoint(replicator), sql)
        finally:
            ending.cancel()
            await beside.stop()
        await self._stand_by(began)

    async def _end_services(self, beside: Background) -> None:
        """End the services with the run, and not with its last transactions: another member has its own."""
        await self.ending.begun.wait()
        await beside.stop()

    async def _stand_by(self, began: float) -> None:
        """Go on as a standby after a run since ``began``, or begin another one; or end for the run's reason."""
        if not await goes_on(self.membership, self.stopping, self.ending.error, began) or self.stopping.is_set():
            return
        if self.settings.engine.in_a_cluster and not self.membership.active:
            self.ending.end(Fenced(f"{self.membership.assignment.host} copies now: Spark's executors are given back"))
            return
        for subject in list(self.problems.open):
            self.problems.forget(subject)
        self.jobs.reports.layout_changed.clear()
        self.ending.renew()

    async def _start(self, beside: Background) -> tuple[Replicator, Spark, SqlJobs]:
        """Make or continue the link, and search for topics from then on, while Spark starts.

        Spark must take the SQL: a change of it is written down.
        """
        if statement := Statement.of(self.settings.transform):
            await self._spark()
        replicator = Replicator(await self._establish(statement), self._establish, self.jobs, self.bound)
        beside.start(self.services(replicator))
        spark, sql = await self._spark()
        beside.start(self.services_in(spark))
        return replicator, spark, sql

    async def _establish(self, statement: Statement | None = None) -> Established:
        establishing = Establishing(self.settings, self._link(), self.run_name, statement)
        return await until_answered(establishing.establish, "destination", self.problems)

    def _link(self) -> Link:
        return Link.of(self.settings, self.source, self.destination)

    def services(self, replicator: Replicator) -> Iterator[Service]:
        """The services beside the copying."""
        settings, link, seconds = self.settings, self._link(), self.settings.engine.discovery_seconds
        discovery = TopicDiscovery(link, settings.topics, user_of(settings.destination), self.problems)
        yield Search(discovery, seconds, replicator.take, self.ending)
        yield Repeated(BOUND, seconds, functools.partial(self.bound.follow, replicator.assign))
        yield Repeated(MAPS, None, functools.partial(tell_what_is_missing, link))
        if link.naming.mirror_formats:
            yield Repeated(HEARTBEATS, HEARTBEAT_SECONDS, Heartbeats(link).beat)
        if settings.groups.wanted:
            # With a link of its own: of two that read one registry at once, the slower would show an older state of it.
            yield GroupService(self._link(), settings, self.newest, self.problems)

    def services_in(self, spark: Spark) -> Iterator[Service]:
        """The services that need Spark."""
        if self.settings.audit.path:
            yield Repeated(AUDIT, _AUDIT_RETRY, functools.partial(self._write_audit, spark))

    async def _write_audit(self, spark: Spark) -> None:
        from appliance.audit.writer import write_audit  # loads pyarrow

        await write_audit(self.settings, spark, self.audit)

    def endpoint(self, replicator: Replicator) -> DriverEndpoint:
        """The driver's address for the tasks."""
        at, transform = self.jobs.control.address, self.settings.transform
        where = str(at) if isinstance(at, Path) else (at.host, at.port)
        on_error = str(transform.on_error) if transform.wanted else ""
        return DriverEndpoint(where, self.jobs.control.token, self.run_name, replicator.link.generation, on_error)
