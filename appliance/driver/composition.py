"""The parts of a replicator, and the order in which they start and end."""

import asyncio
import functools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from appliance.audit.model.progress import AuditProgress
from appliance.driver.background import Background, Repeated, Service, until_answered
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
from appliance.engine.problem_log import ProblemLog
from appliance.groups.group_service import GroupService
from appliance.groups.mirror_formats import HEARTBEAT_SECONDS, Heartbeats
from appliance.groups.model.newest_groups import NewestGroups
from appliance.kafka.client.client_tls import user_of
from appliance.kafka.client.cluster import KafkaCluster
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


@dataclass(slots=True)
class Composition:
    """One run of the replicator: it copies until ``stopping``, within ``bound``.

    ``newest`` receives the positions of the groups, ``audit`` the progress of the audit table, and ``problems`` the
    open problems, as they come and go.
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
    run_name: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    ending: Ending = field(init=False)
    background: Background = field(init=False)
    jobs: Jobs = field(init=False)

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
        """Copy until the stop, once; Fenced if another replicator of this link has started."""
        spark: Spark | None = None
        try:
            if started := await unless_stopped(self.stopping, self._start()):
                replicator, spark, sql = started
                await replicator.run(spark, self.endpoint(replicator), sql)
        finally:
            await self.background.stop()
            await self.jobs.control.close()
            if spark:
                spark.let_go()
            else:
                self.jvm.kill()
        if self.ending.error:
            raise self.ending.error

    async def _start(self) -> tuple[Replicator, Spark, SqlJobs]:
        """Make or continue the link, and search for topics from then on, while Spark starts.

        Both clusters must answer before anything is written to either, and Spark must take the SQL: a change of it is
        written down.
        """
        await until_answered(lambda: self.source.metadata([]), "source", self.problems)
        await until_answered(lambda: self.destination.metadata([]), "destination", self.problems)
        statement = Statement.of(self.settings.transform)
        starting = start_spark(self.settings, self.jvm, self.jobs.control, statement)
        spark_start = self.background.task(starting, "spark-start")
        if statement:
            await spark_start
        replicator = Replicator(await self._establish(statement), self._establish, self.jobs, self.bound)
        self.background.start(self.services(replicator))
        spark, sql = await spark_start
        self.background.start(self.services_in(spark))
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
