"""The replicator: it schedules the lanes of a link, in one Spark job after the other, until it is stopped."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.driver.jobs import Jobs
from appliance.driver.model.assignments import assignments, lane_loads, tasks_by_load
from appliance.driver.model.link_facts import Established
from appliance.driver.spark_start import SqlJobs
from appliance.engine.control.client import DriverEndpoint
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.replicas import Replica
from appliance.listing import some
from appliance.runtime.background import unless_stopped
from appliance.settings.engine import Bound
from appliance.spark.session import Spark
from appliance.timestamps import utc

log = logging.getLogger("appliance.replicator")


@dataclass(slots=True)
class Replicator:
    """The lanes of a ``link``, within ``bound``; ``establish`` reads the link again once its layout has changed."""

    link: Established
    establish: Callable[[], Awaitable[Established]]
    jobs: Jobs
    bound: Bound
    _replicas: Sequence[Replica] = ()
    _loads: Mapping[Partition, int] = field(init=False)
    """Bytes copied of each partition, lately if that is known: lanes go to tasks by their load at a job's begin."""
    _task_of: Sequence[int] = ()

    def __post_init__(self) -> None:
        self._loads = self.link.copied

    def take(self, replicas: Sequence[Replica]) -> None:
        """Copy these from now on."""
        self._replicas = replicas
        self.assign()

    def assign(self) -> None:
        """Give each task of the running job its part of the current plan."""
        if tasks := self.jobs.tasks:
            parts = assignments(self.link, self._replicas, tasks, self._task_of, self.bound.bytes_per_second)
            self.jobs.control.assign(parts)

    async def run(self, spark: Spark, endpoint: DriverEndpoint, sql: SqlJobs) -> None:
        """Run one job after the other, until the stop or an end by itself."""
        jobs = self.jobs
        if before := self.link.predecessors(endpoint.run):
            hosts, since = some(sorted({each.host for each in before})), utc(min(each.since for each in before) / 1000)
            fields = {"run": before[0].run, "host": hosts, "since": since}
            log.info("takes the lanes from an earlier run", extra={"fields": fields})
        while not jobs.stopping.is_set() and not jobs.ending.begun.is_set():
            if jobs.reports.layout_changed.is_set():
                await unless_stopped(jobs.ending.begun, self.lay_out(endpoint.run))
            elif room := await unless_stopped(jobs.ending.begun, jobs.room(spark)):
                await self.run_job(spark, endpoint, room, sql)

    async def lay_out(self, run: str) -> None:
        """Read the link's new layout, once its change has ended, or end if a newer replicator has taken over."""
        newer = await self.establish()
        self.jobs.reports.layout_changed.clear()
        if owner := newer.newer_owner(run, self.link.generation):
            self.jobs.ending.fenced(f"the lanes by {owner}")
            return
        self._loads = newer.copied_since(self.link)
        self.link = replace(newer, generation=self.link.generation, sql=self.link.sql)
        fields = {"lanes": newer.layout.lanes, "layout": newer.layout.number}
        log.info("lanes changed", extra={"fields": fields})

    async def run_job(self, spark: Spark, endpoint: DriverEndpoint, room: int, sql: SqlJobs) -> None:
        """Run a job; lanes go to its tasks by their load."""
        layout = self.link.layout
        tasks = self.jobs.tasks = min(room, layout.lanes)
        self._task_of = tasks_by_load(lane_loads(layout, self._loads), tasks)
        self.jobs.reports.new_job(tasks)
        self.assign()
        await self.jobs.run(spark, endpoint, layout.lanes, room, sql.of_tasks(tasks))
