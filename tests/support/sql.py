"""SQL in flight in this process, with Spark's own JVM and Python workers, and without brokers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import psutil

from appliance.engine.control.assignment import Assignment, Hello
from appliance.engine.control.client import DriverEndpoint, control_client
from appliance.engine.control.connection import dialled
from appliance.engine.control.server import ControlServer
from appliance.engine.model.ranges import Outcome, Range
from appliance.errors import ApplianceError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import key_and_value
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import EngineSettings
from appliance.spark.configuration import Application
from appliance.spark.session import Spark
from appliance.spark.spark_jvm import spark_jvm
from appliance.sql.flight.service import TransformService
from appliance.sql.jobs.job_ends import Lanes, LanesOnHosts
from appliance.sql.jobs.jobs import Dial, Sql, run_jobs
from appliance.sql.jobs.listener import serving_hosts
from appliance.sql.jobs.plan import prepare
from appliance.sql.model.statement import Statement
from tests.support.engine import ENGINE
from tests.support.patience import PATIENCE
from tests.support.processes import family, runs
from tests.support.record_batches import outgoing_of, record, records_of
from tests.support.spark_context import forget_context, hide_gateway


def range_of(values: Sequence[bytes | None], first: int = 0, partition: int = 0, key: bytes = b"key") -> Range:
    """A range of records with these values, one after the other."""
    end = first + len(values)
    records = [record(first + at, value, key=key, timestamp=1000 + first + at) for at, value in enumerate(values)]
    return Range(Partition("orders", partition), first, end, outgoing_of(records, end), 10**6)


def values_of(outcome: Outcome) -> list[bytes | None]:
    """The values of the records that came out."""
    return [key_and_value(each.body)[1] for each in records_of(outcome.batches)]


@dataclass(slots=True)
class RunningSql:
    """The service of one task, and the jobs that it has got."""

    service: TransformService
    events: Path
    jobs: int = 0
    token: str = ""
    problems: list[str] = field(default_factory=list)
    sql: Sql | None = None

    def run(self, task: int) -> None:
        """Run a job, and count it."""
        assert self.sql is not None
        self.jobs += 1
        self.sql.run(task)

    def reason(self, record: Range) -> str:
        """See ``Sql``."""
        assert self.sql is not None
        return self.sql.reason(record)

    def event_log(self) -> bytes:
        """All that Spark has written to its event log."""
        return b"".join(path.read_bytes() for path in self.events.rglob("*") if path.is_file())

    def ends(self) -> dict[str, list[psutil.Process]]:
        """The Python processes of each end."""
        every = family(psutil.Process().pid)
        # A fork has the command line of its daemon.
        daemons = [process for process in every if runs(process, "appliance.driver.daemon")]
        forked = [(daemon.environ(), workers) for daemon in daemons if (workers := daemon.children())]
        return {environment["APPLIANCE_TRANSFORM_END"]: workers for environment, workers in forked}

    def workers(self) -> list[psutil.Process]:
        """The Python processes of both ends."""
        return [worker for workers in self.ends().values() for worker in workers]


@contextlib.asynccontextmanager
async def running_sql(
    directory: Path,
    statement: str,
    *,
    stops: bool = True,
    salt: str = "",
    between_hosts: bool = False,
    silence: float = PATIENCE,
) -> AsyncIterator[RunningSql]:
    """A statement, run by Spark for the ranges that the block asks for; ``between_hosts`` as in a cluster.

    Spark's event log is in the directory, in text.
    """

    def tell(_: str, error: ApplianceError | None) -> None:
        if error:
            made.problems.append(str(error))

    service = TransformService(stops, tell)
    service.progress.silence = silence
    made = RunningSql(service, directory / "events")
    way = _between_hosts(service) if between_hosts else _on_this_host(service, directory / "transform-0")
    engine = replace(ENGINE, monitoring=replace(ENGINE.monitoring, event_log=str(made.events)))
    async with spark_for_sql(directory, engine) as spark:
        threads = ThreadPoolExecutor(2)
        async with way as (lanes, dial):
            made.token = lanes.token.reveal() if isinstance(lanes, LanesOnHosts) else ""
            given = Statement(statement), Secret(salt), lanes
            made.sql = await asyncio.to_thread(prepare, spark, *given)
            jobs = asyncio.create_task(run_jobs(made, 0, dial, threads), name="jobs")
            try:
                yield made
            finally:
                jobs.cancel()
                await asyncio.gather(jobs, return_exceptions=True)
                threads.shutdown(wait=False)  # a job that hangs ends with Java


@contextlib.asynccontextmanager
async def spark_for_sql(directory: Path, engine: EngineSettings = ENGINE) -> AsyncIterator[Spark]:
    """Spark with room for the jobs of SQL."""
    legible = {"spark.eventLog.compress": "false"}
    async with spark_jvm(
        Application(engine, "sql", directory / "setenv.sh", legible, transforms=True), directory
    ) as jvm:
        spark = await asyncio.to_thread(Spark, *await jvm.gateway(), engine, transforms=True)
        hide_gateway()
        try:
            yield spark
        finally:
            spark.let_go()
            forget_context()


@contextlib.asynccontextmanager
async def _on_this_host(service: TransformService, socket: Path) -> AsyncIterator[tuple[Lanes, Dial]]:
    """The way of jobs and of their driver to a service at a socket."""
    async with service.serving(socket):
        yield [str(socket)], partial(dialled, socket, "")


@contextlib.asynccontextmanager
async def _between_hosts(service: TransformService) -> AsyncIterator[tuple[Lanes, Dial]]:
    """The same in a cluster, where the driver says where the service is."""
    control = ControlServer(Target("127.0.0.1", 0), lambda _: None, lambda *_: None)
    control.start()
    try:
        control.assign([Assignment()])
        at = control.address
        assert isinstance(at, Target)
        endpoint = DriverEndpoint((at.host, at.port), control.token, "run", 1)
        async with (
            control_client(endpoint, Hello(0, 0)) as client,
            serving_hosts(service, 0, client, control.token),
        ):
            yield LanesOnHosts(at, Secret(control.token), 1), partial(control.addresses.dial, 0, control.token)
    finally:
        await control.close()
