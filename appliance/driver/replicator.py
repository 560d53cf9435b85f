"""The replicator: it looks at both clusters, assigns lanes to Spark's tasks, and copies until it is stopped."""

import asyncio
import functools
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from appliance.audit.model.progress import AuditProgress
from appliance.clock import now_ms
from appliance.driver.discovery import TopicDiscovery
from appliance.driver.establish import Established, Establishing
from appliance.driver.jobs import Jobs, in_time
from appliance.driver.model.lane_balance import lane_loads, tasks_by_load
from appliance.driver.offsets_build import tell_what_is_missing
from appliance.driver.task_reports import TaskReports
from appliance.engine.control.assignment import Assignment
from appliance.engine.control.client import DriverEndpoint, transform_socket
from appliance.engine.control.connection import dialled
from appliance.engine.control.server import ControlServer
from appliance.engine.problem_log import ProblemLog
from appliance.engine.read.buffer_budget import share
from appliance.errors import ApplianceError, Fenced, LinkRefused
from appliance.groups.group_service import GROUPS, follow_groups
from appliance.groups.mirror_formats import HEARTBEAT_SECONDS, Heartbeats
from appliance.groups.model.newest_groups import NewestGroups
from appliance.kafka.client.client_tls import user_of
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.model.checkpoint import OPERATOR, Owner
from appliance.link.model.layout import Layout
from appliance.link.model.naming import Naming
from appliance.link.model.problems import Problems
from appliance.link.model.replicas import DiscoveredTopics, lanes_by_task, lanes_of
from appliance.runtime.background import unless_stopped
from appliance.settings.engine import Bound
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import Settings
from appliance.spark.configuration import slots_each
from appliance.spark.session import Spark
from appliance.spark.spark_jvm import SparkJvm, driver_host
from appliance.spark.submitted import SubmittedJvm
from appliance.sql.jobs.job_ends import Lanes, LanesOnHosts
from appliance.sql.jobs.jobs import Dial, Sql, run_jobs
from appliance.sql.model.statement import Statement

log = logging.getLogger("appliance.replicator")

Result = TypeVar("Result")

_RETRY = 1.0
"""Pause before a retry, in seconds."""

_START_PATIENCE = 180.0
"""Spark gives up a master after a minute, and we wait ten seconds for its executors."""


class Replicator:
    """One run of the replicator: it copies until ``stopping``, within ``bound``.

    ``newest`` receives the positions of the groups, and ``audit`` the progress of the audit table.
    """

    def __init__(
        self,
        settings: Settings,
        jvm: SparkJvm | SubmittedJvm,
        stopping: asyncio.Event,
        bound: Bound,
        newest: NewestGroups,
        audit: AuditProgress,
    ) -> None:
        self._settings = settings
        self._naming = Naming.of(settings)
        self._jvm = jvm
        self._stopping = stopping
        self._source, self._destination = source_cluster(settings), destination_cluster(settings)
        self._problems = ProblemLog(clock=now_ms)
        engine = settings.engine
        between_hosts = Target(driver_host(engine), engine.spark_driver_port)
        at = between_hosts if engine.in_a_cluster else jvm.tempdir / "control"
        self._reports = TaskReports(self._problems)
        self._control = ControlServer(at, self._reports.begun, self._reports.heard)
        self._bound = bound
        self._newest = newest
        self._audit = audit
        self._found = DiscoveredTopics()
        self._said_nothing_matches = False
        self._run = uuid.uuid4().hex[:12]
        self._link = Established(Layout(0), 0)
        self._loads: Mapping[Partition, int] = {}
        """Bytes copied of each partition, lately if that is known: lanes go to tasks by their load at a job's begin."""
        self._task_of: Sequence[int] = ()
        each = slots_each(transforms=settings.transform.wanted)
        self._jobs = Jobs(engine, jvm, stopping, self._control, self._reports, self._problems, each)
        self._refused: LinkRefused | None = None
        self._beside: list[asyncio.Task[Any]] = []
        self._sql: Sql | None = None
        self._sql_threads = ThreadPoolExecutor(2 * engine.task_count, "sql")

    @property
    def problems(self) -> Problems:
        """The open problems, as they come and go."""
        return self._problems.open

    async def run(self) -> None:
        """Copy until the stop, once.

        Raises:
            Fenced: another replicator of this link has started.
            ProcessFailed: Spark's JVM has ended, or its master gives us nothing.
            LinkRefused: the link must not continue as the destination is now.
            IdentityRefused, CredentialsRefused, BrokerUnsupported, BrokerRefused: retrying is useless.
        """
        spark: Spark | None = None
        try:
            if spark := await unless_stopped(self._stopping, self._begin()):
                await self._copy(spark)
        finally:
            for task in self._beside:
                task.cancel()
            await asyncio.gather(*self._beside, return_exceptions=True)
            await self._control.close()
            if spark:
                spark.let_go()
            else:
                self._jvm.kill()
            await self._source.close()
            await self._destination.close()
        if self._refused:
            raise self._refused
        if self._reports.fenced.is_set():
            taken = f"another {self._settings.replicator} has taken {self._reports.fenced_from}"
            raise Fenced(f"{taken}: this one stops, a link has one")

    async def _begin(self) -> Spark:
        """Find or make the link, and look for topics from then on, while Spark starts.

        Both clusters must answer before anything is written to either, and Spark must take the SQL: a change of it is
        written down.
        """
        await self._insist(lambda: self._source.metadata([]), "source")
        await self._insist(lambda: self._destination.metadata([]), "destination")
        statement = Statement.of(self._settings.transform)
        starting = self._run_beside(self._start_spark(statement), "spark-start")
        if statement:
            await starting
        making = Establishing(self._settings, self._source, self._destination, self._run, statement)
        self._link = await self._insist(making.establish, "destination")
        self._loads = self._link.copied
        topics = self._settings.topics
        user = user_of(self._settings.destination)
        engine = self._settings.engine
        discovery = TopicDiscovery(self._source, self._destination, self._naming, topics, user, self._problems)
        self._repeat_beside(lambda: self._look(discovery), "discovery", engine.discovery_seconds)
        self._run_beside(tell_what_is_missing(self._source, self._destination, self._naming), "maps")
        if self._naming.mirror_formats:
            heartbeats = Heartbeats(self._source, self._destination, self._naming, topics.replication_factor)
            self._repeat_beside(heartbeats.beat, "heartbeats", HEARTBEAT_SECONDS)
        following = self._bound.follow(engine.discovery_seconds, lambda _: self._assign())
        self._run_beside(following, "bound")
        if self._settings.groups.wanted:
            keep = functools.partial(self._problems.keep, GROUPS)
            groups = follow_groups(self._settings, self._source, self._destination, self._newest, keep)
            self._run_beside(groups, "groups")
        if self._settings.audit.path:
            self._run_beside(self._write_audit(starting), "audit")
        return await starting

    async def _write_audit(self, starting: Awaitable[Spark]) -> None:
        from appliance.audit.writer import write_audit  # loads pyarrow

        await write_audit(self._settings, await asyncio.shield(starting), self._audit)

    def _run_beside(self, work: Coroutine[Any, Any, Result], name: str) -> asyncio.Task[Result]:
        task = asyncio.create_task(work, name=name)
        self._beside.append(task)
        return task

    async def _start_spark(self, statement: Statement | None) -> Spark:
        port, secret = await in_time(self._jvm.gateway(), _START_PATIENCE)
        transform, engine, entries = self._settings.transform, self._settings.engine, self._jvm.entries
        starting = asyncio.to_thread(Spark, port, secret, engine, entries, transforms=transform.wanted)
        spark = await in_time(starting, _START_PATIENCE)
        self._control.start()
        if spark.ui:
            log.info("Spark's page", extra={"fields": {"address": spark.ui}})
        if statement is not None:
            from appliance.sql.jobs.plan import prepare  # loads the whole of PySpark's SQL

            preparing = asyncio.to_thread(prepare, spark, statement, transform.salt, self._lanes())
            self._sql = await in_time(preparing, _START_PATIENCE)
        return spark

    def _lanes(self) -> Lanes:
        """The way of the SQL's jobs to the processes of the tasks."""
        at, tasks = self._control.address, self._settings.engine.task_count
        if isinstance(at, Path):
            return [str(transform_socket(at, task)) for task in range(tasks)]
        return LanesOnHosts(at, Secret(self._control.token), tasks)

    def _repeat_beside(self, step: Callable[[], Awaitable[None]], name: str, seconds: float) -> None:
        async def repeat() -> None:
            while True:
                try:
                    await step()
                except ApplianceError as error:
                    self._problems.tell(name, error)
                except Exception as error:  # a defect of ours: the work would end unnoticed
                    log.debug(f"{name} failed", exc_info=error)
                    self._problems.tell(name, ApplianceError(f"unexpected {type(error).__name__}: {error}"))
                else:
                    self._problems.over(name)
                await asyncio.sleep(seconds)

        self._run_beside(repeat(), name)

    async def _look(self, discovery: TopicDiscovery) -> None:
        """Look for topics."""
        try:
            found = await discovery.look()
        except LinkRefused as error:  # deleted meanwhile: retrying is useless
            self._refused = error
            self._reports.fenced.set()
            raise
        unfit = {f"topic {name}": ApplianceError(fault) for name, fault in found.unfit.items()}
        self._problems.keep("topic ", unfit)
        if not (found.replicas or found.unfit or found.inactive or self._said_nothing_matches):
            self._said_nothing_matches = True
            regex = self._settings.topics.regex
            log.warning(f"REPLICA_TOPICS_SOURCE_REGEX={regex} matches no topic of the source yet")
        if found.replicas != self._found.replicas:
            self._found = found
            topics = len({replica.source_topic for replica in found.replicas})
            log.info("topics to copy", extra={"fields": {"topics": topics, "partitions": len(found.replicas)}})
            self._assign()

    async def _copy(self, spark: Spark) -> None:
        """Run one job after the other."""
        at, transform = self._control.address, self._settings.transform
        where = str(at) if isinstance(at, Path) else (at.host, at.port)
        on_error = str(transform.on_error) if transform.wanted else ""
        endpoint = DriverEndpoint(where, self._control.token, self._run, self._link.generation, on_error)
        while not self._stopping.is_set() and not self._reports.fenced.is_set():
            if self._reports.layout_changed.is_set() and not await unless_stopped(self._stopping, self._lay_out()):
                continue
            if room := await unless_stopped(self._stopping, self._jobs.room(spark)):
                await self._one_job(spark, endpoint, room)

    async def _lay_out(self) -> bool:
        """Read the link's new layout, once its change has ended; False if a newer replicator has taken over."""
        making = Establishing(self._settings, self._source, self._destination, self._run)
        found = await self._insist(making.establish, "destination")
        self._reports.layout_changed.clear()
        own = Owner(self._run, "driver", "", 0, self._link.generation)
        others = [each for each in found.owners if each.run not in (OPERATOR, self._run) and each.is_newer_than(own)]
        if others:
            self._reports.fenced_from = f"the lanes by {max(others, key=lambda each: each.generation)}"
            self._reports.fenced.set()
            return False
        copied = {key: number - self._link.copied.get(key, 0) for key, number in found.copied.items()}
        self._loads = copied if any(copied.values()) else found.copied
        self._link = replace(found, generation=self._link.generation, sql=self._link.sql)
        log.info("lanes changed", extra={"fields": {"lanes": found.layout.lanes, "layout": found.layout.number}})
        return True

    def _assign(self) -> None:
        """Give each task of the running job its part of the current plan."""
        if not self._jobs.tasks:
            return
        parts = lanes_by_task(lanes_of(self._found.replicas, self._link.layout), self._jobs.tasks, self._task_of)
        each, starts = share(self._bound.bytes_per_second, sum(map(bool, parts))), self._link.starts
        assignments = []
        for lanes in parts:
            topics = {replica.source_topic for replicas in lanes.values() for replica in replicas}
            begins = {name: starts[name] for name in sorted(topics & starts.keys())}
            link = self._link
            assignments.append(Assignment(lanes, begins, each, link.producers, link.layout.number, link.sql))
        self._control.assign(assignments)

    async def _one_job(self, spark: Spark, endpoint: DriverEndpoint, room: int) -> None:
        """Run a job; lanes go to its tasks by their load."""
        layout = self._link.layout
        tasks = self._jobs.tasks = min(room, layout.lanes)
        self._task_of = tasks_by_load(lane_loads(layout, self._loads), tasks)
        self._reports.new_job(tasks)
        self._assign()
        await self._jobs.run(spark, endpoint, layout.lanes, room, self._sql_jobs(tasks))

    def _sql_jobs(self, tasks: int) -> list[Coroutine[Any, Any, None]]:
        """The SQL's jobs, one after the other for each task; none if records are copied as they are."""
        sql, threads = self._sql, self._sql_threads
        return [run_jobs(sql, task, self._dial(task), threads) for task in range(tasks)] if sql else []

    def _dial(self, task: int) -> Dial:
        """The driver's own way to the process of a task."""
        at, token = self._control.address, self._control.token
        if isinstance(at, Path):
            return functools.partial(dialled, transform_socket(at, task), token)
        return functools.partial(self._control.addresses.dial, task, token)

    async def _insist(self, ask: Callable[[], Awaitable[Result]], about: str) -> Result:
        """Ask until there is an answer.

        Raises:
            ApplianceError: an error that makes retries useless.
        """
        while True:
            try:
                answer = await ask()
            except ApplianceError as error:
                if not error.retriable:
                    raise
                self._problems.tell(about, error)
                await asyncio.sleep(_RETRY)
            else:
                self._problems.over(about)
                return answer
