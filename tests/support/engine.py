"""The engine between two real clusters, without Spark: lanes, intake and copiers on the test's own event loop."""

import asyncio
import contextlib
import functools
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.demo.cluster import Cluster
from appliance.errors import ApplianceError, BrokerBusy, PartitionStopped
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.offsets import Bound, Partition, list_offsets
from appliance.kafka.topics import NewTopic as OurNewTopic
from appliance.kafka.topics import create_topics
from appliance.replicator.copy import Copier
from appliance.replicator.discovery import Scout
from appliance.replicator.intake import Intake
from appliance.replicator.lane import Lane
from appliance.replicator.memory import Gap, Memory, Owner
from appliance.replicator.naming import Naming
from appliance.replicator.plan import Replica, lanes_of
from appliance.replicator.position import Position
from appliance.replicator.recall import next_generation, peek_memory
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import (
    ClusterSettings,
    EngineSettings,
    OnGap,
    SaslMechanism,
    SecurityProtocol,
    Side,
    Start,
    TopicSettings,
)
from tests.support.administration import make_topic
from tests.support.patience import PATIENCE
from tests.support.rows import Row, end, read_rows

Answer = TypeVar("Answer")

LANES = 4
ENGINE = EngineSettings(
    LANES, 1, 10.0, 3.0, 0.005, 4 * 1024 * 1024, 30.0, OnGap.STOP, "local[*]", "512m", Secret(""), "", 0
)


async def as_it_is(host: str) -> Sequence[str]:
    return (host,)


def cluster_settings(cluster: Cluster, side: Side, bootstrap: Target | None = None) -> ClusterSettings:
    return ClusterSettings(
        side,
        cluster.plan.name,
        (bootstrap,) if bootstrap else cluster.home_targets,
        SecurityProtocol.PLAINTEXT,
        SaslMechanism.PLAIN,
        "",
        Secret(""),
        None,
    )


@dataclass(slots=True)
class Pair:
    """Two clusters and the names of one test's link."""

    orange: Cluster
    grape: Cluster
    tag: str

    @property
    def naming(self) -> Naming:
        return Naming(f"replicator-{self.tag}", "copy", re.compile(f".*{self.tag}"), re.compile(""))

    def topic(self, name: str, partitions: int = 1, **configs: str) -> str:
        """Make a source topic."""
        full = f"{name}-{self.tag}"
        make_topic(self.orange, NewTopic(full, partitions, 1, config=configs))
        return full

    def topic_on(self, name: str, leader: int, follower: int) -> str:
        """Make a source topic that may lose what it holds: its follower may come to lead without it."""
        full = f"{name}-{self.tag}"
        configs = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
        make_topic(self.orange, NewTopic(full, 1, replica_assignment=[[leader, follower]], config=configs))
        return full

    def delete(self, topic: str) -> None:
        """Delete a source topic, and wait until it is gone."""
        _delete(self.orange, topic)

    def delete_copy(self, topic: str) -> None:
        """Delete a copy's topic, and wait until it is gone."""
        _delete(self.grape, self.naming.destination(topic))

    def make_copy(self, topic: str, partitions: int, **configs: str) -> None:
        """Make a copy's topic before the replicator does."""
        copy = self.naming.destination(topic)
        make_topic(self.grape, NewTopic(copy, partitions, 1, config=configs))

    def producer(self, **configuration: str | int | bool) -> Producer:
        return Producer({**self.orange.client_configuration(), "linger.ms": 5, **configuration})

    def rows(self, cluster: Cluster, topic: str, partitions: int) -> list[list[Row]]:
        """All that a read_committed consumer sees of each partition."""
        return [read_rows(cluster, topic, partition) for partition in range(partitions)]

    def compare(self, topic: str, partitions: int = 1) -> list[list[Row]]:
        """The source's rows, once they are found to be the destination's too."""
        source = self.rows(self.orange, topic, partitions)
        assert self.rows(self.grape, self.naming.destination(topic), partitions) == source
        return source

    @contextlib.asynccontextmanager
    async def engine(
        self, source_at: Target | None = None, destination_at: Target | None = None, **changed: Any
    ) -> "AsyncIterator[Engine]":
        """A process's worth of engine on this link; several may run at once, as two replicators would.

        The clusters are found where they are, or where something stands before their brokers.
        """
        async with (
            KafkaCluster(cluster_settings(self.orange, Side.SOURCE, source_at), as_it_is, self.tag) as source,
            KafkaCluster(
                cluster_settings(self.grape, Side.DESTINATION, destination_at), as_it_is, self.tag
            ) as destination,
        ):
            engine = Engine(self, source, destination, settings=replace(ENGINE, **changed))
            engine.intake = Intake(source, engine.notice)
            try:
                yield engine
            finally:
                await engine.intake.close()


def _delete(cluster: Cluster, topic: str) -> None:
    admin = AdminClient(cluster.client_configuration())
    admin.delete_topics([topic])[topic].result(PATIENCE)
    while topic in admin.list_topics(timeout=PATIENCE).topics:
        time.sleep(0.05)


@dataclass(slots=True)
class Engine:
    """Copiers for every lane that has a partition."""

    pair: Pair
    source: KafkaCluster
    destination: KafkaCluster
    copiers: list[Copier] = field(default_factory=list)
    faults: dict[str, ApplianceError] = field(default_factory=dict)
    settings: EngineSettings = ENGINE
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    generation: int = 1
    intake: Intake = field(init=False)

    def notice(self, subject: str, error: ApplianceError | None) -> None:
        if error is None:
            self.faults.pop(subject, None)
        else:
            self.faults[subject] = error

    async def prepare(self) -> None:
        """Positions topic, discovery, lanes."""
        naming = self.pair.naming
        await create_topics(
            self.destination, [OurNewTopic(naming.positions_topic, LANES, 1, {"cleanup.policy": "compact"})]
        )
        self.generation = await _known(lambda: next_generation(self.destination, naming.positions_topic, LANES))
        await self.assign()

    async def assign(self) -> None:
        """Look for topics, and give the lanes what there is, as a new slice does; lanes that are warm stay warm."""
        naming = self.pair.naming
        topics = TopicSettings(naming.included.pattern, "", naming.suffix, Start.EARLIEST, 1)
        async with asyncio.timeout(PATIENCE):
            scout = Scout(self.source, self.destination, naming, topics)
            while not (found := await scout.look()).replicas:
                await asyncio.sleep(0.05)
        warm = {copier.lane.index: copier for copier in self.copiers}
        self.copiers = []
        for lane, replicas in lanes_of(found.replicas, LANES).items():
            owner = Owner(self.run, "worker", "host", 0, self.generation)
            owned = Lane(lane, self.destination, naming, owner, self.settings.transaction_timeout)
            anew = Copier(owned, self.source, self.destination, self.intake, self.settings, self.notice)
            copier = warm.get(lane, anew)
            copier.assign(replicas, frozenset())
            self.copiers.append(copier)

    async def until_led(self, topic: str) -> None:
        """Returns when the leaders of a topic's copy know that they lead it."""
        copy = self.pair.naming.destination(topic)

        async def ends() -> dict[Partition, int]:
            metadata = await self.destination.metadata([copy])
            partitions = [(copy, number) for number in range(len(metadata.topics[copy].leaders))]
            return await list_offsets(self.destination, metadata, partitions, Bound.END)

        async with asyncio.timeout(PATIENCE):
            await _known(ends)

    async def copy_until(self, finished: "asyncio.Task[None]") -> None:
        """Copy until the task is done."""
        stopping = asyncio.Event()
        running = [asyncio.create_task(copier.run(stopping), name="copier") for copier in self.copiers]
        try:
            async with asyncio.timeout(PATIENCE):
                await finished
        finally:
            stopping.set()
            for copier in self.copiers:
                copier.arrived.set()
            await asyncio.gather(*running)

    async def copy_all(self) -> None:
        """Copy until every position is at the end of its source partition."""
        if not self.copiers:
            await self.prepare()
        await self.copy_until(asyncio.create_task(self._caught_up(), name="caught-up"))
        await self._until_decided()

    async def until_stopped(self, topic: str, partition: int = 0) -> PartitionStopped:
        """Copy until the partition has stopped, that is remembered, and every other one is at its end; why."""
        key, subject = (topic, partition), f"{topic}-{partition}"

        async def stopped() -> None:
            while not (held := (await self.positions()).get(key)) or not held.stopped:
                await asyncio.sleep(0.05)
            await self._caught_up(besides=key)

        await self.copy_until(asyncio.create_task(stopped()))
        await self._until_decided()
        fault = self.faults[subject]
        assert isinstance(fault, PartitionStopped)
        assert (await self.positions())[key].stopped == str(fault)
        return fault

    async def _caught_up(self, besides: Partition | None = None) -> None:
        owned = [(copier, replica) for copier in self.copiers for replica in copier.replicas]
        awaited = [(copier, replica) for copier, replica in owned if _original(replica) != besides]
        while not all(self._at_end(copier, replica) for copier, replica in awaited):
            await asyncio.sleep(0.02)

    def _at_end(self, copier: Copier, replica: Replica) -> bool:
        held = copier.lane.memory.positions.get(_original(replica))
        return held is not None and held.next_offset >= end(self.pair.orange, replica.source_topic, replica.partition)

    async def _until_decided(self) -> None:
        """A commit is answered before its markers are written, and readers see it a moment later."""
        async with asyncio.timeout(PATIENCE):
            while not await _known(self._decided):
                await asyncio.sleep(0.02)

    async def _decided(self) -> bool:
        """Whether nothing is open in the copies and the positions."""
        written = [(self.pair.naming.positions_topic, lane) for lane in range(LANES)]
        for copier in self.copiers:
            written += [(replica.destination_topic, replica.partition) for replica in copier.replicas]
        metadata = await self.destination.metadata(sorted({topic for topic, _ in written}))
        stable_ends = await list_offsets(self.destination, metadata, written, Bound.STABLE_END)
        return stable_ends == await list_offsets(self.destination, metadata, written, Bound.END)

    async def positions(self) -> dict[tuple[str, int], Position]:
        """What the destination remembers, read as a new process would."""
        known = {key: held for copier in self.copiers for key, held in copier.lane.memory.positions.items()}
        async with asyncio.timeout(PATIENCE):
            while True:
                found = {key: held for memory in await self._memories() for key, held in memory.positions.items()}
                # A commit is answered before its markers are written, and readers see it a moment later.
                if all(found.get(key, held).records >= held.records for key, held in known.items()):
                    return found
                await asyncio.sleep(0.05)

    async def gaps(self) -> list[Gap]:
        """The gap ledger."""
        return [gap for memory in await self._memories() for gap in memory.gaps.values()]

    async def _memories(self) -> list[Memory]:
        memories = [Memory() for _ in range(LANES)]
        for lane, memory in enumerate(memories):
            await _known(
                functools.partial(peek_memory, self.destination, self.pair.naming.positions_topic, lane, memory)
            )
        return memories


def _original(replica: Replica) -> Partition:
    return replica.source_topic, replica.partition


async def _known(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """The answer, as soon as the leaders of a topic that may be new know it."""
    while True:
        try:
            return await ask()
        except BrokerBusy:
            await asyncio.sleep(0.05)
