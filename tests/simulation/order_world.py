"""Several clusters with one order: a process beside each, producers in each, and tunnels that are cut."""

import asyncio
import functools
import random
from collections.abc import Callable, Sequence
from typing import Any

from appliance.errors import ApplianceError, Fenced, Unreachable
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.checkpoint import Owner
from appliance.link.model.order import Origin
from appliance.order.names import order_naming
from appliance.order.process import OrderProcess
from appliance.order.topics import Order
from appliance.settings.values import Side
from tests.simulation.administration import Administration
from tests.simulation.brokers import Brokers, Topic
from tests.simulation.client import TIMEOUTS, Fates, SimulatedCluster, SimulatedConnection
from tests.simulation.coordinator import Transaction
from tests.simulation.invariants import Violation
from tests.simulation.log import Log, contents
from tests.simulation.loop import Life, SimulatedLoop
from tests.simulation.order_maps import check_maps
from tests.simulation.order_truth import OrderTruth
from tests.simulation.order_watch import OrderWatch, hidden_log
from tests.simulation.workload import Workload

NAMES = ("orange", "grape", "lemon", "melon", "peach")
TRANSACTION_TIMEOUT = 4.0
_FORGED = 0.05
"""The share of users' batches that look like a mark of a hidden log."""


class DistantCluster(SimulatedCluster):
    """A cluster as a process beside another one sees it, through a tunnel that may be cut."""

    def __init__(self, world: "OrderWorld", own: str, name: str, life: Life) -> None:
        side = Side.DESTINATION if own == name else Side.SOURCE
        super().__init__(world.brokers[name], side, life, world.fates)
        self.world, self.own, self.name = world, own, name

    async def broker(self, node: int, purpose: str = "control") -> SimulatedConnection:
        if (self.own, self.name) in self.world.cuts:
            await asyncio.sleep(TIMEOUTS.connect)
            raise Unreachable(f"the tunnel from {self.own} to {self.name} is cut")
        return await super().broker(node, purpose)


class Beside:
    """One run of an order's process beside a cluster."""

    def __init__(self, world: "OrderWorld", own: str, number: int) -> None:
        self.own = own
        self.life = Life(f"{own}-{number}")
        self.faults: dict[str, ApplianceError] = {}
        self.notices: list[str] = []
        """The subjects of all lines of its log."""
        self.fates = world.fates
        self.clusters = {name: DistantCluster(world, own, name, self.life) for name in world.brokers}
        clusters: Any = self.clusters
        owner = Owner(self.life.name, "worker", "host", 0, number)
        self.process = OrderProcess(world.order, own, clusters, owner, self._notice)
        self.stopping: asyncio.Event
        self.task: asyncio.Task[None] = world.loop.start(self.life, self._run())

    async def _run(self) -> None:
        self.stopping = asyncio.Event()
        try:
            await self.process.run(self.stopping)
        except Fenced as error:
            self.fates.note("ends:", str(error))

    def _notice(self, subject: str, error: ApplianceError | None) -> None:
        self.notices.append(subject)
        self.fates.note("notice", subject, str(error) if error else "well again")
        if error is None:
            self.faults.pop(subject, None)
        else:
            self.faults[subject] = error


class OrderWorld:
    """The clusters, of which the first is the first home."""

    def __init__(
        self,
        chance: random.Random,
        loop: SimulatedLoop,
        fates: Fates,
        clusters: int,
        lanes: int = 1,
        *,
        single: bool = False,
    ) -> None:
        self.chance, self.loop, self.fates = chance, loop, fates
        self.names: Sequence[str] = NAMES[:clusters]
        naming = order_naming("orders|payments")
        self.order = Order(
            tuple(self.names), self.names[0], naming, lanes, single, discovery_seconds=0.5, commit_bytes=2000
        )
        self.cuts: set[tuple[str, str]] = set()
        self.commits = 0
        self.brokers = {
            name: Brokers(name, self.later, functools.partial(self._committed, name)) for name in self.names
        }
        self.workloads: dict[str, Workload] = {}
        self.beside: dict[str, Beside] = {}
        self.truths: dict[Partition, OrderTruth] = {}
        self.down: set[str] = set()
        self.damaged: set[str] = set()
        """Clusters with something that only an operator can mend."""
        self.watch = OrderWatch(naming, self.brokers, self.truths)
        self.violation: Violation | None = None
        self._runs = 0
        for number, (name, brokers) in enumerate(self.brokers.items()):
            Administration(brokers)
            self.workloads[name] = Workload(brokers, chance, written=number * 1_000_000)
            brokers.grown.append(functools.partial(self._changed, name))

    def later(self, reason: str, act: Callable[[], None]) -> None:
        """Have something happen when chance has it."""
        delay = TRANSACTION_TIMEOUT
        if reason == "loading":
            delay = self.chance.random() * 0.1
        elif reason == "marker":
            delay = self.chance.random() * (1.0 if self.chance.random() < 0.05 else 0.005)
        self.loop.at(self.loop.time() + delay, self.loop.world, act)

    def make_topic(self, name: str, partitions: int) -> None:
        """Make a topic in every cluster."""
        for cluster, brokers in self.brokers.items():
            self._watch_origins(cluster, brokers.make(name, partitions))

    def grow_topic(self, cluster: str, name: str) -> None:
        """Give a topic one more partition in one cluster."""
        brokers = self.brokers[cluster]
        topic = brokers.topics[name]
        brokers.grow(name, len(topic.logs) + 1)
        self._watch_origins(cluster, topic)

    def remake_topic(self, cluster: str, name: str) -> None:
        """Delete a topic of one cluster, and make it anew."""
        brokers = self.brokers[cluster]
        partitions = len(brokers.topics[name].logs)
        brokers.delete(name)
        self._watch_origins(cluster, brokers.make(name, partitions))

    def damage(self, cluster: str, name: str) -> None:
        """Delete a topic's T-global in one cluster, of which nothing is expected any more."""
        self.damaged.add(cluster)
        self.watch.deleted.add((cluster, name))
        topic = self.brokers[cluster].topics[f"{name}-global"]
        for log in topic.logs:
            self.truths[Partition(name, log.number)].ranks.pop(log, None)
        self.brokers[cluster].delete(topic.name)

    def topics(self) -> list[str]:
        """The topics that have one order."""
        return sorted({topic for topic, _ in self.truths})

    def key(self, log: Log) -> Partition:
        """The partition whose order has the records of a partition of T."""
        return Partition(log.topic, 0 if self.order.single else log.number)

    def _watch_origins(self, cluster: str, topic: Topic) -> None:
        for log in topic.logs:
            key = self.key(log)
            logs = self.truths.setdefault(key, OrderTruth(str(key))).origins.setdefault(Origin(cluster, log.number), [])
            if not logs or logs[-1] is not log:
                logs.append(log)

    def start(self, name: str) -> None:
        """Start the process beside a cluster, unless that is down."""
        if name in self.down:
            return
        self._runs += 1
        self.fates.note("start of", name, self._runs)
        self.beside[name] = Beside(self, name, self._runs)

    def kill(self, name: str) -> None:
        """End it as by SIGKILL."""
        self.fates.note("kill of", name)
        self.beside[name].life.alive = False

    def home(self) -> str | None:
        """The home of the newest epoch that any lane has promised."""
        newest = max((each.epoch for each in self.watch.promises.values()), default=None)
        return newest.home if newest else None

    def cut(self, own: str, name: str) -> None:
        """Cut the way from one cluster's process to another cluster."""
        self.fates.note("cut", own, name)
        self.cuts.add((own, name))
        beside = self.beside.get(own)
        for connection in beside.clusters[name]._connections.values() if beside else ():
            self.loop.at(self.loop.time(), beside.life, connection.close)

    def mend(self) -> None:
        """All tunnels are well again."""
        self.fates.note("mended", *self.cuts)
        self.cuts.clear()

    def declare_lost(self, name: str) -> None:
        """An operator says that a cluster, which was alone, is lost."""
        for key, truth in self.truths.items():
            if (log := self.brokers[name].log(Partition(f"{key.topic}-global", key.number))) is not None:
                self.watch.forget(name, key, truth.forget(log))

    def view(self, name: str) -> Any:
        """A cluster, as an operator beside it sees it."""
        return SimulatedCluster(self.brokers[name], Side.DESTINATION, self.loop.world, self.fates)

    def write(self, *names: str) -> None:
        """Some producer in some cluster, of these or of all, writes, or ends a transaction."""
        name = self.chance.choice(names or self.names)
        topic = self.chance.choice(self.topics())
        log = self.chance.choice(self.brokers[name].topics[topic].logs)
        if self.chance.random() < _FORGED and (mark := self._any_mark(log)) is not None:
            self.workloads[name].forge(log, mark)
        else:
            self.workloads[name].write(log)
        if self.chance.random() < 0.5:
            self.workloads[name].decide()

    def _any_mark(self, log: Log) -> bytes | None:
        """The newest record of some cluster's hidden log, which is a mark."""
        hidden = self.chance.choice([*self.brokers.values()]).log(hidden_log(self.key(log)))
        newest = next((entry for entry in reversed(hidden.entries if hidden else []) if not entry.marker), None)
        return contents(newest)[-1][1] if newest is not None else None

    def decide_all(self) -> None:
        """All producers end their transactions."""
        for workload in self.workloads.values():
            while workload.decide():
                pass

    def unsettled(self, *names: str) -> list[str]:
        """The records of these clusters, or of all, that not every T-global of theirs has yet."""
        found = []
        asked = [name for name in names or self.names if name not in self.damaged]
        for (topic, number), truth in self.truths.items():
            logs = {name: self.brokers[name].log(Partition(f"{topic}-global", number)) for name in asked}
            found += [f"{name} has no {topic}-global" for name, log in logs.items() if log is None]
            found += truth.missing([log for log in logs.values() if log is not None], names or self.names)
        return found

    async def check_maps(self, name: str) -> None:
        """Hold the maps of offsets of a cluster against its T-globals (invariant L)."""
        shown = [
            (topic, truth, log)
            for (topic, number), truth in self.truths.items()
            if (log := self.brokers[name].log(Partition(f"{topic}-global", number))) is not None
        ]
        await check_maps(OffsetMaps(self.view(name), self.order.naming), shown, self.chance.randrange(7))

    def check(self, whole: bool) -> None:
        """Check all origins."""
        for truth in self.truths.values():
            truth.check_origins(whole)

    def _committed(self, name: str, transaction: Transaction) -> None:
        self.commits += 1
        self._check(lambda: self.watch.committed(name, transaction))

    def _changed(self, name: str, log: Log) -> None:
        own, origin = self.truths.get(self.key(log)), Origin(name, log.number)
        if own is not None and log is own.origins.get(origin, [None])[-1]:
            own.learn(origin)
        ordered = self.truths.get(Partition(log.topic.removesuffix("-global"), log.number))
        if own is None and ordered is not None:
            if name in self.damaged and log not in ordered.ranks:
                ordered.ignored.add(log)
            self._check(lambda: ordered.look(log))

    def _check(self, check: Callable[[], None]) -> None:
        try:
            check()
        except Violation as violation:
            self.violation = self.violation or violation
