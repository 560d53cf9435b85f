"""The lanes of an order in one cluster; the topics are looked for, and their logs made, again and again."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from appliance.clock import loop_seconds
from appliance.engine.model.chunk import Spacing
from appliance.engine.problem_log import Notice, ProblemLog, until_answered
from appliance.engine.read.source_reader import SourceReader
from appliance.errors import ApplianceError, LinkRefused, raise_first
from appliance.kafka.client.delete_records import delete_records
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.topics import require_led
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.checkpoint import Owner
from appliance.link.model.layout import Layout
from appliance.link.model.topic_configs import beats_topic, offsets_topic, positions_topic
from appliance.order.ballot import Ballot
from appliance.order.lane import OrderLane
from appliance.order.model.beats import LaneBeat, Watch, Wish
from appliance.order.model.elections import NOT_LISTED
from appliance.order.names import BEATS_LOG
from appliance.order.partition import OrderedPartition
from appliance.order.peers import Peer
from appliance.order.pulse import Pulse
from appliance.order.runner import OrderRunner
from appliance.order.topics import Order, OrderTopics, PartitionLogs, make_topics
from appliance.order.ways import Way
from appliance.runtime.background import unless_stopped

_TRIM_SECONDS, _KEPT_SECONDS = 60.0, 3600.0
"""Interval of deletions from hidden logs, and the time for which what is shown stays there, in seconds."""


@dataclass(eq=False)
class OrderProcess:
    """The process beside the cluster ``own``, which reads all ``clusters`` and writes that one alone."""

    order: Order
    own: str
    clusters: Mapping[str, Cluster]
    owner: Owner
    notice: Notice
    runners: list[OrderRunner] = field(init=False, default_factory=list)
    _readers: dict[str, SourceReader] = field(init=False, default_factory=dict)
    _problems: ProblemLog = field(init=False)

    def __post_init__(self) -> None:
        self._problems = ProblemLog(self.notice)

    @property
    def cluster(self) -> Cluster:
        """The own cluster."""
        return self.clusters[self.own]

    async def run(self, stopping: asyncio.Event) -> None:
        """Order until ``stopping``; transactions are finished.

        Raises:
            LinkRefused: the order has another number of lanes here.
            Fenced: a newer process has taken over.
        """
        await unless_stopped(stopping, until_answered(self._make_own_topics, self.own, self._problems))
        if stopping.is_set():
            return
        ways = {name: Way(name, self.notice) for name in self.clusters}
        self._readers = {name: SourceReader(cluster, ways[name].tell) for name, cluster in self.clusters.items()}
        self.runners = [self._runner(lane) for lane in range(self.order.lanes)]
        pulse = Pulse(self.own, self.clusters, self._lane_beats, self._hear, self._meet, self._problems)
        for runner in self.runners:
            runner.ballot.beat_due = pulse.due
        ending = asyncio.Event()
        lanes = [asyncio.create_task(runner.run(ending), name=runner.name) for runner in self.runners]
        beside = [
            asyncio.create_task(stopping.wait(), name="order-stopping"),
            asyncio.create_task(self._search(ending, ways), name="order-topics"),
            asyncio.create_task(pulse.run(), name="order-pulse"),
            asyncio.create_task(self._trim(), name="order-trim"),
        ]
        try:
            await asyncio.wait([beside[0], *lanes], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.set()
            for runner in self.runners:
                runner.wake.set()
            for task in beside:
                task.cancel()
            await asyncio.gather(*lanes, *beside, return_exceptions=True)
            self.runners = []  # the pages of a standby show nothing that it heard once
            for reader in self._readers.values():
                await reader.close()
        for lane in lanes:
            lane.result()

    def _lane_beats(self) -> Sequence[LaneBeat]:
        return [runner.ballot.beat() for runner in self.runners]

    def _hear(self, cluster: str, lanes: Sequence[LaneBeat]) -> None:
        for runner, beat in zip(self.runners, lanes, strict=False):
            runner.ballot.hear(cluster, beat)

    def _meet(self, wish: Wish) -> None:
        for runner in self.runners:
            runner.ballot.meet(wish)

    def stand(self) -> None:
        """Become home of a new epoch, in all lanes."""
        for runner in self.runners:
            runner.ballot.meet(Wish("", self.own, waits=False))

    async def _make_own_topics(self) -> None:
        naming, factor = self.order.naming, self.order.replication_factor

        async def make() -> None:
            by_lane = positions_topic(naming, self.order.lanes, factor), offsets_topic(naming, self.order.lanes, factor)
            own = *by_lane, beats_topic(BEATS_LOG.topic, factor)
            await make_topics(self.cluster, [*own])
            metadata = await require_led(self.cluster, {topic.name: topic.partitions for topic in own})
            lanes = len(metadata.topics[naming.positions_topic].leaders)
            if lanes != self.order.lanes:
                text = f"{naming.positions_topic} of {self.own} has {lanes} lanes, and LANES={self.order.lanes}"
                raise LinkRefused(f"{text}: the number of an order's lanes is fixed, in all clusters")

        await retry_while_busy(make)

    def _runner(self, index: int) -> OrderRunner:
        order, wake = self.order, asyncio.Event()
        positions = Partition(order.naming.positions_topic, index)
        lane = OrderLane(index, self.cluster, order.naming, self.owner, order.transaction_timeout)
        peers = {
            name: Peer(name, cluster, positions, wake) for name, cluster in self.clusters.items() if name != self.own
        }
        first = order.clusters if order.home == self.own else None
        watch = Watch(self.own, order.listed.index(self.own), loop_seconds())
        partitions: dict[Partition, OrderedPartition] = {}
        ballot = Ballot(self.own, lane, peers, partitions, wake, watch, first, order.alone)
        return OrderRunner(
            lane, peers, ProblemLog(self.notice), wake, ballot, Spacing(order.commit_interval), partitions
        )

    async def _search(self, stopping: asyncio.Event, ways: Mapping[str, Way]) -> None:
        """Look for topics until the end."""
        problems = {name: ProblemLog(way.tell) for name, way in ways.items()}
        topics = OrderTopics(self.order, self.own, self.clusters, problems)
        while not stopping.is_set():
            self._compare_members()
            try:
                for key, logs in (await topics.search()).items():
                    self._assign(key, logs)
                for runner in self.runners:
                    runner.is_placed = runner.is_placed or topics.sees_own
                    runner.wake.set()
                self._problems.over("topics")
            except ApplianceError as error:
                self._problems.tell("topics", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.order.discovery_seconds):
                    await stopping.wait()

    def _compare_members(self) -> None:
        """Tell of members that are none of the own clusters: two lists elect nobody."""
        promises = [runner.lane.promise for runner in self.runners]
        strange = {name for each in promises if each for name in each.members} - {*self.order.listed}
        if strange:
            self._problems.tell("GLOBAL_CLUSTERS", LinkRefused(f"{', '.join(sorted(strange))}: {NOT_LISTED}"))
        else:
            self._problems.over("GLOBAL_CLUSTERS")

    def _assign(self, key: Partition, logs: PartitionLogs) -> None:
        runner = self.runners[Layout(self.order.lanes).lane_of(*key)]
        if key not in runner.partitions:
            runner.add(self._partition(runner, key))
        runner.partitions[key].replicas = logs.origins
        runner.partitions[key].hidden_logs = logs.hidden

    async def _trim(self) -> None:
        """Delete from the hidden logs what has been shown for long: nobody follows it any more."""
        shown: deque[tuple[float, dict[Partition, int]]] = deque()
        while True:
            await asyncio.sleep(_TRIM_SECONDS)
            shown.append((loop_seconds(), {log: at for each in self.runners for log, at in each.shown().items()}))
            if shown[0][0] > loop_seconds() - _KEPT_SECONDS:
                continue
            _, before = shown.popleft()
            try:
                metadata = await self.cluster.metadata(sorted({log.topic for log in before}))
                raise_first((await delete_records(self.cluster, metadata, before)).values())
                self._problems.over("hidden logs")
            except ApplianceError as error:
                self._problems.tell("hidden logs", error)

    def _partition(self, runner: OrderRunner, key: Partition) -> OrderedPartition:
        size = self.order.commit_bytes
        further = runner.problems, runner.wake, size, self.order.single, self.order.records_gaps
        return OrderedPartition(key, self.own, runner.lane, runner.peers, self._readers, *further)
