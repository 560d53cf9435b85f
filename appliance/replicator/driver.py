"""The replicator: looks at both clusters, plans, and has Spark copy slice after slice until it is told to stop."""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from appliance.errors import ApplianceError, Fenced, ProcessFailed, Superseded
from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.model.checkpoint import StartOffsets
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import DiscoveredTopics, Replica, lanes_of, seats_of
from appliance.replicator.discovery import TopicDiscovery
from appliance.replicator.establish import Established, Establishing
from appliance.replicator.model.chunk import LedgerRow
from appliance.replicator.model.trouble import Troubles
from appliance.replicator.spark.seating import Notice, Seat
from appliance.replicator.spark.seats import SeatServer
from appliance.replicator.spark.session import Spark
from appliance.replicator.spark.spark_jvm import SparkJvm, driver_host
from appliance.replicator.spark.worker import DriverEndpoint
from appliance.settings.bound import Bound
from appliance.settings.target import Target
from appliance.settings.values import Settings

log = logging.getLogger("appliance.replicator")

Result = TypeVar("Result")

_RETRY = 1.0
_START_PATIENCE = 180.0
"""Spark itself gives a master up after a minute, and we wait ten seconds for its executors."""
_SLICE_END_PATIENCE = 40.0
_ANSWER_PATIENCE = 20.0
"""Java is asked for what it knows, or to kill Python workers: that takes seconds at most."""
_ROOM_PATIENCE = 60.0
_ROOM_INTERVAL = 4.0
"""An executor that ends has a successor sooner, in which Spark starts its task again: lanes need not be dealt anew."""


async def run_replicator(settings: Settings, machine: SparkJvm, stopping: asyncio.Event, bound: Bound) -> None:
    """Copy until ``stopping``, within ``bound``.

    Raises:
        Fenced: another replicator of this link has started.
        ProcessFailed: Spark's Java machine has ended, or its master gives us nothing.
        LinkRefused: the link must not go on as the destination is now.
        IdentityRefused, CredentialsRefused, BrokerUnsupported, BrokerRefused: no use trying again.
    """
    async with source_cluster(settings) as source, destination_cluster(settings) as destination:
        await Replicator(settings, machine, stopping, source, destination, bound).run()


class Replicator:
    """One run of the replicator."""

    def __init__(
        self,
        settings: Settings,
        machine: SparkJvm,
        stopping: asyncio.Event,
        source: KafkaCluster,
        destination: KafkaCluster,
        bound: Bound,
    ) -> None:
        self._settings = settings
        self._naming = Naming.of(settings)
        self._machine = machine
        self._stopping = stopping
        self._source = source
        self._destination = destination
        self._troubles = Troubles()
        engine = settings.engine
        between_hosts = Target(driver_host(engine), engine.spark_driver_port)
        self._seats = SeatServer(between_hosts if engine.in_a_cluster else machine.scratch / "seats", self._noticed)
        self._bound = bound
        self._found = DiscoveredTopics()
        self._changed = asyncio.Event()
        self._fenced: str | None = None
        self._run = uuid.uuid4().hex[:12]
        self._slice = 0

    async def run(self) -> None:
        """See ``run_replicator``."""
        # Both clusters must answer before anything is written to either.
        if not await self._insist(lambda: self._source.metadata([]), "source"):
            return
        if not await self._insist(lambda: self._destination.metadata([]), "destination"):
            return
        starting = asyncio.create_task(self._start_spark(), name="spark-start")
        making = Establishing(self._settings, self._source, self._destination, self._run)
        established = await self._insist(making.establish, "destination")
        self._seats.bound(self._bound.bytes_per_second)
        following = self._bound.follow(self._settings.engine.discovery_seconds, self._seats.bound)
        beside = [
            asyncio.create_task(self._watch(), name="discovery"),
            asyncio.create_task(following, name="bound"),
        ]
        spark = await starting
        self._seats.start()
        try:
            if established is not None:
                await self._copy(spark, established)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await self._seats.close()
            spark.let_go()
        if self._fenced is not None:
            raise Fenced(
                f"another {self._settings.replicator} has taken {self._fenced}: this one stops, a link has one"
            )

    async def _start_spark(self) -> Spark:
        port, secret = await _in_time(self._machine.gateway(), _START_PATIENCE)
        return await _in_time(asyncio.to_thread(Spark, port, secret, self._settings.engine), _START_PATIENCE)

    async def _watch(self) -> None:
        """Look for topics, for ever."""
        said_nothing_matches = False
        discovery = TopicDiscovery(self._source, self._destination, self._naming, self._settings.topics)
        while True:
            try:
                found = await discovery.look()
            except ApplianceError as error:
                self._troubles.tell("discovery", str(error))
            except Exception as error:  # a defect of ours: topics would be looked for no more, and nobody would know
                log.debug("discovery failed", exc_info=error)
                self._troubles.tell("discovery", f"unexpected {type(error).__name__}: {error}")
            else:
                self._troubles.over("discovery")
                self._troubles.keep("topic ", {f"topic {name}": fault for name, fault in found.unfit.items()})
                if not found.replicas and not found.unfit and not said_nothing_matches:
                    said_nothing_matches = True
                    regex = self._settings.topics.regex
                    log.warning(f"REPLICA_TOPICS_SOURCE_REGEX={regex} matches no topic of the source yet")
                if found.replicas != self._found.replicas:
                    self._found = found
                    self._changed.set()
                    topics = len({replica.source_topic for replica in found.replicas})
                    fields = {"topics": topics, "partitions": len(found.replicas)}
                    log.info("topics to copy", extra={"fields": fields})
            await asyncio.sleep(self._settings.engine.discovery_seconds)

    async def _copy(self, spark: Spark, link: Established) -> None:
        """Slice after slice."""
        at = self._seats.address
        where = str(at) if isinstance(at, Path) else (at.host, at.port)
        endpoint = DriverEndpoint(where, self._seats.token, self._run, link.generation)
        while not self._stopping.is_set() and self._fenced is None:
            self._changed.clear()
            dealt = lanes_of(self._found.replicas, link.lanes)
            if not dealt:
                await self._first_of(self._changed.wait(), self._stopping.wait())
                continue
            if tasks := await self._room(spark):
                seats = [
                    self._seat({lane: dealt[lane] for lane in seat}, link.starts) for seat in seats_of(dealt, tasks)
                ]
                await self._one_slice(spark, endpoint, seats, tasks)
                self._slice += 1

    def _seat(self, lanes: Mapping[int, Sequence[Replica]], starts: Mapping[str, StartOffsets]) -> Seat:
        topics = {replica.source_topic for replicas in lanes.values() for replica in replicas}
        held = {lane: tuple(replicas) for lane, replicas in lanes.items()}
        return Seat(self._slice, {topic: starts[topic] for topic in sorted(topics & starts.keys())}, held)

    async def _room(self, spark: Spark) -> int:
        """For how many tasks there is room now; waits for some, and gives 0 when told to stop meanwhile.

        Raises:
            ProcessFailed: there was none for long; the next application of ours may get it, from a new master too. Or
                Java does not answer.
        """
        wanted, master = self._settings.engine.task_count, self._settings.engine.spark_master
        self._machine.require_running()
        until = asyncio.get_running_loop().time() + _ROOM_PATIENCE
        while not (room := await self._room_now(spark)):
            self._troubles.tell("executors", f"SPARK_MASTER={master} has no core for us: is a worker up?")
            await self._first_of(asyncio.sleep(_RETRY), self._stopping.wait())
            if self._stopping.is_set():
                return 0
            if asyncio.get_running_loop().time() > until:
                raise ProcessFailed(f"SPARK_MASTER={master} gave no core for {_ROOM_PATIENCE:g} s")
        if room < wanted:
            self._troubles.tell("executors", f"Spark has cores for {room} of TASKS={wanted}: these copy every lane")
        else:
            self._troubles.over("executors")
        return room

    async def _room_now(self, spark: Spark) -> int:
        return min(self._settings.engine.task_count, await _in_time(asyncio.to_thread(spark.room)))

    async def _room_changes(self, spark: Spark, tasks: int) -> None:
        """Returns when a look and the one before it have found room for more or fewer tasks than these."""
        changed = changed_before = False
        with contextlib.suppress(ProcessFailed):  # whoever asks next is told again
            while not (changed and changed_before):
                await asyncio.sleep(_ROOM_INTERVAL)
                changed_before, changed = changed, await self._room_now(spark) != tasks

    async def _one_slice(self, spark: Spark, endpoint: DriverEndpoint, seats: list[Seat], tasks: int) -> None:
        self._seats.open(seats)
        slice_task = asyncio.create_task(asyncio.to_thread(spark.slice, endpoint, len(seats)), name="slice")
        limit = asyncio.sleep(self._settings.engine.slice_seconds)
        news = [event.wait() for event in (self._changed, self._stopping, self._seats.unseated)]
        room = [self._room_changes(spark, tasks)] if self._settings.engine.in_a_cluster else []
        await self._first_of(slice_task, limit, *news, *room)
        self._seats.stop()
        try:
            async with asyncio.timeout(_SLICE_END_PATIENCE):
                self._tell_copied(await asyncio.shield(slice_task))
        except TimeoutError:
            log.warning("a slice did not end in time: its tasks are ended by force")
            await _in_time(asyncio.gather(asyncio.to_thread(spark.cancel), slice_task, return_exceptions=True))
        except Exception as error:  # Spark's own errors have no common type that is fit to be shown
            reason = str(error).strip().splitlines()
            self._troubles.tell("spark", f"a slice failed: {reason[0] if reason else type(error).__name__}")
            log.debug("a slice failed", exc_info=error)
            self._machine.require_running()
            await asyncio.sleep(_RETRY)
        else:
            self._troubles.over("spark")

    def _tell_copied(self, rows: list[LedgerRow]) -> None:
        if not rows:
            return
        fields = {
            "slice": self._slice,
            "records": sum(row.records for row in rows),
            "bytes": sum(row.bytes for row in rows),
            "partitions": len({(row.topic, row.partition) for row in rows}),
            "raw_batches": sum(row.raw_batches for row in rows),
            "rebuilt_batches": sum(row.rebuilt_batches for row in rows),
        }
        log.info("slice copied", extra={"fields": fields})

    def _noticed(self, notice: Notice) -> None:
        if notice.kind == Fenced.__name__:
            self._fenced = notice.fault
            self._changed.set()
        elif notice.kind == Superseded.__name__:
            # Nothing that goes on being wrong: the task that has the lane now says nothing about it.
            log.warning(notice.fault)
        elif notice.fault:
            self._troubles.tell(notice.subject, notice.fault)
        else:
            self._troubles.over(notice.subject)

    async def _insist(self, ask: Callable[[], Awaitable[Result]], about: str) -> Result | None:
        """Ask until there is an answer; None when told to stop meanwhile.

        Raises:
            ApplianceError: one that is no use to retry.
        """
        while not self._stopping.is_set():
            try:
                answer = await ask()
            except ApplianceError as error:
                if not error.retriable:
                    raise
                self._troubles.tell(about, str(error))
                await self._first_of(asyncio.sleep(_RETRY), self._stopping.wait())
            else:
                self._troubles.over(about)
                return answer
        return None

    async def _first_of(self, *awaitables: Awaitable[object]) -> None:
        """Wait for the first of them; the others are cancelled, but not a slice."""
        tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if not task.done() and task not in awaitables:
                task.cancel()


async def _in_time(answer: Awaitable[Result], seconds: float = _ANSWER_PATIENCE) -> Result:
    """Spark's answer.

    Raises:
        ProcessFailed: there is none in that time: the next run of Spark may give one.
    """
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError as error:
        raise ProcessFailed(f"Spark hangs: its Java machine has not answered for {seconds:g} s") from error
