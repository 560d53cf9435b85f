"""The engine between two real clusters, without Spark: lanes, reader and runners on the test's own event loop."""

import asyncio
import contextlib
import functools
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from appliance.driver.discovery import TopicDiscovery
from appliance.driver.establish import Establishing
from appliance.engine.read.fetcher import Fetcher
from appliance.engine.read.source_reader import SourceReader
from appliance.engine.write.lane import Lane
from appliance.engine.write.lane_runner import LaneRunner
from appliance.engine.write.transformation import Transform
from appliance.errors import ApplianceError, BrokerBusy, PartitionStopped
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.dial import Resolve
from appliance.kafka.client.fetch import Session
from appliance.kafka.client.interface import TIMEOUTS, Timeouts
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.client.origins import Origins
from appliance.link.handle import Link
from appliance.link.model.checkpoint import Gap, LaneCheckpoint, Owner, StartOffsets
from appliance.link.model.layout import Layout
from appliance.link.model.link_sql import LinkSql
from appliance.link.model.naming import Naming
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica, lanes_of
from appliance.settings.monitoring import MonitoringSettings
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import (
    ClusterSettings,
    EngineSettings,
    OnGap,
    SaslMechanism,
    SecurityProtocol,
    Settings,
    Side,
    TopicNaming,
)
from appliance.sql.model.statement import Statement
from testbed.cluster import Cluster
from tests.support.administration import delete_topic, make_topic
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import Row, end, read_partitions
from tests.support.settings import REQUIRED

Answer = TypeVar("Answer")

LANES = 2
ENGINE = EngineSettings(
    on_gap=OnGap.STOP,
    lanes=LANES,
    tasks=1,
    summary_seconds=10.0,
    discovery_seconds=3.0,
    commit_interval=0.005,
    commit_bytes=4 * 1024 * 1024,
    max_bytes_per_second=0,
    transaction_timeout=30.0,
    spark_master="local[*]",
    spark_secret=Secret(""),
    spark_driver_host="",
    spark_driver_port=0,
    spark_driver_memory="512m",
    monitoring=MonitoringSettings(ui=False, ui_port=0, event_log=""),
)


async def as_it_is(host: str) -> Sequence[str]:
    return (host,)


def cluster_settings(cluster: Cluster, side: Side, bootstrap: Target | None = None) -> ClusterSettings:
    return ClusterSettings(
        side,
        cluster.plan.name,
        (bootstrap,) if bootstrap else cluster.home_targets,
        "",
        Secret(""),
        SecurityProtocol.PLAINTEXT,
        SaslMechanism.PLAIN,
        None,
    )


@functools.cache
def _parsed(variables: tuple[tuple[str, str], ...]) -> Settings:
    return parse(dict(variables), Role.REPLICATOR)


@dataclass(slots=True)
class Pair:
    """Two clusters and the names of one test's link."""

    orange: Cluster
    grape: Cluster
    tag: str
    kind: TopicNaming = TopicNaming.SUFFIX
    formats: bool = False
    groups: bool = False
    """True of a link that syncs the groups whose names end with its tag."""
    everything: bool = False
    """True of a link whose regex takes whatever has its tag in its name, also where a replicator would write it."""
    only: str = ""
    """The one topic of a link with an exact name for its copy."""
    copy: str = ""
    """The name of its copy, if that is not a name of the tag."""
    names: str = ""
    """The topics of a link with a map, each with its copy's name."""
    fan_in: bool = False
    link: str = ""
    """The source cluster's name in the link, if that is not the tag."""
    target: str = "grape"

    @property
    def naming(self) -> Naming:
        return Naming.of(self.settings())

    def settings(self, **variables: str) -> Settings:
        """The settings of this link."""
        clusters = {"SOURCE": self.orange, "DESTINATION": self.grape}
        servers = {f"{side}_BROKER_SERVERS": cluster.home_bootstrap for side, cluster in clusters.items()}
        if self.orange is self.grape:  # settings refuse one broker on both sides; the engine gets its clients otherwise
            servers["SOURCE_BROKER_SERVERS"] = "another.invalid:9092"
        protocols = dict.fromkeys((f"{side}_SECURITY_PROTOCOL" for side in clusters), "PLAINTEXT")
        names = {
            "DESTINATION_CLUSTER_ID": self.target,
            "SOURCE_CLUSTER_ID": self.link or self.tag,
            "SOURCE_ROUTE": "direct",
            "REPLICA_TOPICS_SOURCE_REGEX": self.only or (f".*{self.tag}.*" if self.everything else f".*{self.tag}"),
            "REPLICA_TOPICS_NAMING": self.kind,
            "REPLICA_TOPICS_DEST_NAME": (self.copy or f"the-copy-{self.tag}") if self.only else "",
            "REPLICA_TOPICS_NAMES": self.names,
            "REPLICA_FAN_IN": "yes" if self.fan_in else "no",
            "MM2_FORMATS": "yes" if self.formats else "no",
            "REPLICA_GROUPS_REGEX": f".*-{self.tag}" if self.groups else "",
            "GROUPS_SYNC_SECONDS": "0.2",
            "LANES": str(LANES),
        }
        return _parsed(tuple((REQUIRED | servers | protocols | names | variables).items()))

    def topic(self, name: str, partitions: int = 1, **configs: str) -> str:
        """Create a source topic."""
        full = f"{name}-{self.tag}"
        make_topic(self.orange, NewTopic(full, partitions, 1, config=configs))
        return full

    def topic_on(self, name: str, leader: int, follower: int) -> str:
        """Create a source topic that may lose records: a follower without them may be elected leader."""
        full = f"{name}-{self.tag}"
        configs = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
        make_topic(self.orange, NewTopic(full, 1, replica_assignment=[[leader, follower]], config=configs))
        return full

    def filled(self, name: str, records: int, partitions: int = 1, **configs: str) -> str:
        """Create a source topic with that many records in each partition."""
        topic = self.topic(name, partitions, **configs)
        self.write(topic, records, partitions)
        return topic

    def write(self, topic: str, records: int, partitions: int = 1) -> None:
        """Write that many records into each partition of a source topic."""
        for partition in range(partitions):
            produce(self.producer(), topic, records, partition)

    def copy_of(self, topic: str) -> str:
        """The name of a topic's copy."""
        return self.naming.destination(topic)

    def delete(self, topic: str) -> None:
        """Delete a source topic, and wait until it is deleted."""
        delete_topic(self.orange, topic)

    def delete_copy(self, topic: str) -> None:
        """Delete a copy's topic, and wait until it is deleted."""
        delete_topic(self.grape, self.copy_of(topic))

    def delete_positions(self) -> None:
        """Delete the positions topic, and wait until it is deleted."""
        delete_topic(self.grape, self.naming.positions_topic)

    def make_copy(self, topic: str, partitions: int, **configs: str) -> None:
        """Create a copy's topic before the replicator does."""
        copy = self.copy_of(topic)
        make_topic(self.grape, NewTopic(copy, partitions, 1, config=configs))

    def producer(self, **configuration: str | int | bool) -> Producer:
        return Producer({**self.orange.client_configuration(), "linger.ms": 5, **configuration})

    def rows(self, cluster: Cluster, topic: str, partitions: int) -> list[list[Row]]:
        """The records of each partition that a read_committed consumer sees."""
        return list(read_partitions(cluster, [Partition(topic, partition) for partition in range(partitions)]).values())

    def compare(self, topic: str, partitions: int = 1) -> list[list[Row]]:
        """Require that both sides have the same rows, and return them."""
        source = self.rows(self.orange, topic, partitions)
        assert self.rows(self.grape, self.copy_of(topic), partitions) == source
        return source

    def copy_counts(self, topic: str, partitions: int = 1) -> list[int]:
        """The number of records in each partition of a copy."""
        return [len(rows) for rows in self.rows(self.grape, self.copy_of(topic), partitions)]

    async def copy_all(self, **changed: Any) -> None:
        """Copy everything, by an engine that starts now."""
        async with self.engine(**changed) as engine:
            await engine.copy_all()

    async def copied(self, topic: str, partitions: int = 1, **changed: Any) -> list[int]:
        """Copy everything, and require that both sides have the same rows; the number in each partition."""
        await self.copy_all(**changed)
        return [len(rows) for rows in await asyncio.to_thread(self.compare, topic, partitions)]

    async def stopped(self, topic: str, **changed: Any) -> str:
        """Copy, by an engine that starts now, until the topic's first partition stops; the reason."""
        async with self.engine(**changed) as engine:
            return str(await engine.until_stopped(topic))

    @contextlib.asynccontextmanager
    async def engine(
        self,
        source_at: Target | None = None,
        destination_at: Target | None = None,
        resolve: Resolve = as_it_is,
        timeouts: Timeouts = TIMEOUTS,
        **changed: Any,
    ) -> "AsyncIterator[Engine]":
        """One process's engine on this link; several may run at once, as two replicators would.

        The clusters are reached directly, or through proxies before their brokers. ``resolve`` is for the destination's
        brokers, and so are ``timeouts``.
        """
        at_source = cluster_settings(self.orange, Side.SOURCE, source_at)
        at_destination = cluster_settings(self.grape, Side.DESTINATION, destination_at)
        async with (
            KafkaCluster(at_source, as_it_is, self.tag) as source,
            KafkaCluster(at_destination, resolve, self.tag, timeouts=timeouts) as destination,
        ):
            engine = Engine(self, source, destination, settings=replace(ENGINE, **changed))
            engine.origins = Origins(source) if self.naming.sharing.tells_origins else None
            engine.names = Origins(destination)
            engine.reader = SourceReader(source, engine.notice, engine.origins)
            try:
                yield engine
            finally:
                await engine.reader.close()


@dataclass(slots=True)
class OtherLink(Pair):
    """A link from another cluster, with the same topic names and the same suffix."""

    def __post_init__(self) -> None:
        self.link = f"other-{self.tag}"


@dataclass(slots=True)
class Engine:
    """Lane runners for every lane that has a partition."""

    pair: Pair
    source: KafkaCluster
    destination: KafkaCluster
    runners: list[LaneRunner] = field(default_factory=list)
    faults: dict[str, ApplianceError] = field(default_factory=dict)
    settings: EngineSettings = ENGINE
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    generation: int = 1
    layout: Layout = field(default_factory=lambda: Layout(LANES))
    starts: Mapping[str, StartOffsets] = field(default_factory=dict)
    reader: SourceReader = field(init=False)
    origins: Origins | None = None
    names: Origins | None = None
    statement: Statement | None = None
    sql: LinkSql = field(default_factory=LinkSql)
    transform: Transform | None = None
    """SQL in flight, without Spark."""

    @property
    def lanes(self) -> int:
        return self.layout.lanes

    def notice(self, subject: str, error: ApplianceError | None) -> None:
        if error is None:
            self.faults.pop(subject, None)
        else:
            self.faults[subject] = error

    def link(self, settings: Settings) -> Link:
        """The link of these settings, over the engine's clusters."""
        return Link.of(settings, self.source, self.destination)

    async def prepare(self) -> None:
        """Create the positions topic, discover topics, and start the lanes."""
        await self.establish()
        await self.assign()

    async def establish(self, **variables: str) -> None:
        """Create the link, or find the existing one."""
        settings = self.pair.settings(**variables)
        establishing = Establishing(settings, self.link(settings), self.run, self.statement)
        established = await _known(establishing.establish)
        self.generation, self.starts, self.layout = established.generation, established.starts, established.layout
        self.sql = established.sql
        if self.origins is not None:
            self.origins.topic_id = established.producers

    def discovery(self, **variables: str) -> TopicDiscovery:
        """A new discovery of topics in both clusters."""
        naming = self.pair.naming
        configs = {"CONFIGS_EXCLUDE_REGEX": "min.insync.replicas"}
        topics = self.pair.settings(**configs, **variables).topics
        return TopicDiscovery(Link(self.source, self.destination, naming, topics.replication_factor), topics)

    def held(self, topic: str, partition: int = 0) -> Position | None:
        """The position of a partition in its lane."""
        for runner in self.runners:
            if held := runner.lane.checkpoint.positions.get(Partition(topic, partition)):
                return held
        return None

    def position(self, topic: str, partition: int = 0) -> Position:
        """The position of a partition that its lane has."""
        position = self.held(topic, partition)
        assert position is not None
        return position

    @property
    def fetcher(self) -> Fetcher:
        """The engine's only fetcher."""
        (fetcher,) = self.reader.router.fetchers.values()
        return fetcher

    async def fetch_session(self) -> Session:
        """The session of the only fetcher, once it has one."""
        async with asyncio.timeout(PATIENCE):
            while not self.reader.router.fetchers or self.fetcher.session._epoch == 0:
                await asyncio.sleep(0.01)
        session = self.fetcher.session
        return Session(session._id, session._epoch)

    async def until_copied(self, topic: str, records: int, partitions: int = 1) -> None:
        """Wait until this number of records of each partition is copied."""

        def copied() -> bool:
            positions = [self.held(topic, partition) for partition in range(partitions)]
            return all(position is not None and position.records >= records for position in positions)

        await until(copied)

    async def assign(self) -> None:
        """Discover topics, and give their partitions to the lanes; running lanes continue."""
        naming, discovery = self.pair.naming, self.discovery()
        async with asyncio.timeout(PATIENCE):
            while not (found := await discovery.search()).replicas:
                await asyncio.sleep(0.05)
        warm = {runner.lane.index: runner for runner in self.runners}
        self.runners = []
        for lane, replicas in lanes_of(found.replicas, self.layout).items():
            owner = Owner(self.run, "worker", "host", 0, self.generation)
            timeout, number = self.settings.transaction_timeout, self.layout.number
            owned = Lane(lane, self.destination, naming, owner, timeout, number, self.names)
            anew = LaneRunner(owned, self.source, self.reader, self.settings, self.notice, sql=self.transform)
            anew.statement = self.sql
            runner = warm.get(lane, anew)
            runner.assign(replicas, self.starts)
            self.runners.append(runner)

    async def establish_topic_alone(self) -> None:
        """Create the positions topic, and take its first lane, like a start that is killed at this point."""
        settings = self.pair.settings()
        await Establishing(settings, self.link(settings), self.run).topics.make_positions()
        owner = Owner(self.run, "driver", "host", 0, 1)
        lane = Lane(0, self.destination, self.pair.naming, owner, self.settings.transaction_timeout)
        await _known(lane.start)

    async def prepare_as_an_older_release(self) -> None:
        """Create the positions topic without a link record."""
        settings = self.pair.settings()
        await Establishing(settings, self.link(settings), self.run).topics.make_positions()
        await self.assign()

    async def until_led(self, topic: str) -> None:
        """Wait until the leaders of a topic's copy know that they lead it."""
        copy = self.pair.naming.destination(topic)

        async def ends() -> dict[Partition, int]:
            metadata = await self.destination.metadata([copy])
            partitions = [Partition(copy, number) for number in range(len(metadata.topics[copy].leaders))]
            return await list_offsets(self.destination, metadata, partitions, Bound.END)

        async with asyncio.timeout(PATIENCE):
            await _known(ends)

    async def until_told(self, subject: str, text: str = "") -> None:
        """Wait until a subject has a problem with this text."""
        await until(lambda: subject in self.faults and text in str(self.faults[subject]))

    async def copy_until(self, finished: Awaitable[object]) -> None:
        """Copy until this is done."""
        stopping = asyncio.Event()
        running = [asyncio.create_task(runner.run(stopping), name="runner") for runner in self.runners]
        try:
            async with asyncio.timeout(PATIENCE):
                await finished
        finally:
            stopping.set()
            for runner in self.runners:
                runner.ready.set()
            await asyncio.gather(*running)

    async def copy_all(self) -> None:
        """Copy until every position is at the end of its source partition."""
        if not self.runners:
            await self.prepare()
        await self.copy_until(self.caught_up())
        await self.until_decided()

    async def until_stopped(self, topic: str, partition: int = 0) -> PartitionStopped:
        """Copy until the partition's stop is committed, and all others are at their ends; return the reason."""
        key, subject = Partition(topic, partition), f"{topic}-{partition}"
        if not self.runners:
            await self.prepare()

        async def stopped() -> None:
            while not (held := (await self.positions()).get(key)) or not held.stopped:
                await asyncio.sleep(0.05)
            await self.caught_up(besides=key)

        await self.copy_until(stopped())
        await self.until_decided()
        fault = self.faults[subject]
        assert isinstance(fault, PartitionStopped)
        assert (await self.positions())[key].stopped == str(fault)
        return fault

    async def until_all_stopped(self, topic: str, partitions: int) -> str:
        """Copy until the stops of all partitions of a topic are committed; return the first one's reason."""
        if not self.runners:
            await self.prepare()

        async def stopped() -> None:
            known: Mapping[Partition, Position] = {}
            while not all((topic, n) in known and known[topic, n].stopped for n in range(partitions)):
                await asyncio.sleep(0.05)
                known = await self.positions()

        await self.copy_until(stopped())
        return (await self.positions())[topic, 0].stopped

    async def caught_up(self, besides: Partition | None = None) -> None:
        """Wait until every position is at the end of its source partition, but for one."""
        owned = [(runner, replica) for runner in self.runners for replica in runner.replicas]
        awaited = [(runner, replica) for runner, replica in owned if _original(replica) != besides]
        await until(lambda: all(self._at_end(runner, replica) for runner, replica in awaited))

    def _at_end(self, runner: LaneRunner, replica: Replica) -> bool:
        held = runner.lane.checkpoint.positions.get(_original(replica))
        return held is not None and held.next_offset >= end(self.pair.orange, replica.source_topic, replica.partition)

    async def write_and_copy(self, topic: str, records: int = 10, partitions: int = 1) -> None:
        """Write that many records into each partition of a source topic, and copy everything."""
        self.pair.write(topic, records, partitions)
        await self.copy_all()

    async def until_decided(self) -> None:
        """A commit is answered before its markers are written, so readers see it a moment later."""
        async with asyncio.timeout(PATIENCE):
            while not await _known(self._decided):
                await asyncio.sleep(0.02)

    async def _decided(self) -> bool:
        """True if no transaction is open in the copies and the positions."""
        written = [Partition(self.pair.naming.positions_topic, lane) for lane in range(self.lanes)]
        for runner in self.runners:
            written += [(replica.destination_topic, replica.partition) for replica in runner.replicas]
        metadata = await self.destination.metadata(sorted({topic for topic, _ in written}))
        stable_ends = await list_offsets(self.destination, metadata, written, Bound.STABLE_END)
        return stable_ends == await list_offsets(self.destination, metadata, written, Bound.END)

    async def positions(self) -> dict[tuple[str, int], Position]:
        """The positions at the destination, as a new process reads them."""
        known = {key: held for runner in self.runners for key, held in runner.lane.checkpoint.positions.items()}
        async with asyncio.timeout(PATIENCE):
            while True:
                found = {
                    key: held for checkpoint in await self._checkpoints() for key, held in checkpoint.positions.items()
                }
                # A commit is answered before its markers are written, so readers see it a moment later.
                if all(found.get(key, held).records >= held.records for key, held in known.items()):
                    return found
                await asyncio.sleep(0.05)

    async def positions_now(self) -> dict[tuple[str, int], Position]:
        """The positions at the destination, whatever the lanes believe."""
        return {key: held for checkpoint in await self._checkpoints() for key, held in checkpoint.positions.items()}

    async def gaps(self) -> list[Gap]:
        """The gap ledger."""
        return [gap for checkpoint in await self._checkpoints() for gap in checkpoint.gaps.values()]

    async def _checkpoints(self) -> list[LaneCheckpoint]:
        checkpoints = [LaneCheckpoint() for _ in range(self.lanes)]
        for lane, checkpoint in enumerate(checkpoints):
            await _known(
                functools.partial(peek_checkpoint, self.destination, self.pair.naming.positions_topic, lane, checkpoint)
            )
        return checkpoints


async def until(condition: Callable[[], bool]) -> None:
    """Wait until this is so."""
    while not condition():
        await asyncio.sleep(0.02)


def _original(replica: Replica) -> Partition:
    return replica.source_topic, replica.partition


async def _known(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """The answer, once the leaders of a possibly new topic know it."""
    while True:
        try:
            return await ask()
        except BrokerBusy:
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def copying(engine: Engine) -> AsyncIterator[None]:
    """Run the lanes during the block."""
    stopping = asyncio.Event()
    running = [asyncio.create_task(runner.run(stopping), name="runner") for runner in engine.runners]
    try:
        yield
    finally:
        stopping.set()
        for runner in engine.runners:
            runner.ready.set()
        await asyncio.gather(*running)
