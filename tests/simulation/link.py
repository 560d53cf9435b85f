"""A simulated link: two clusters in memory, the processes of its replicator, and the invariants."""

import random
from collections.abc import Callable
from typing import Any

from appliance.errors import LinkRefused
from appliance.kafka.protocol.metadata import Partition
from appliance.link import handle
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import Replica
from appliance.settings.values import OnGap, Side, Start
from tests.simulation.administration import Administration
from tests.simulation.at_rest import AtRest
from tests.simulation.brokers import Brokers
from tests.simulation.client import Fates, SimulatedCluster
from tests.simulation.coordinator import Transaction
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.looks import Looks, Losses
from tests.simulation.loop import SimulatedLoop
from tests.simulation.process import TRANSACTION_TIMEOUT, Replicator, settings
from tests.simulation.workload import Workload

_COMPACTED = {"cleanup.policy": "compact"}
_SHARE_COMPACTED = 0.7


class Link:
    """``own`` is one that the engine makes itself, and follows the topics of; else the copies are there already.

    With ``compacts`` most source topics are compacted, and so are their copies. With ``groups`` all groups follow.
    ``shared`` is the destination of a fan-in, which tells the link of its commits.
    """

    def __init__(
        self,
        chance: random.Random,
        loop: SimulatedLoop,
        fates: Fates,
        own: bool,
        compacts: bool,
        groups: bool,
        name: str = "orange",
        shared: Brokers | None = None,
    ) -> None:
        self.chance, self.loop, self.fates, self.own, self.compacts = chance, loop, fates, own, compacts
        self.source = Brokers(name, self.later, lambda _: None)
        self.destination = shared or Brokers("grape", self.later, self.committed)
        if shared is None:
            Administration(self.destination)
        Administration(self.source)
        self.lanes = chance.choice((1, 1, 2))
        self.on_gap = chance.choice((OnGap.STOP, OnGap.RECORD, OnGap.RECORD))
        start = chance.choice((Start.EARLIEST, Start.LATEST)) if own else Start.EARLIEST
        self.settings = settings(name, self.on_gap, start, self.lanes, ".*" if groups else "", shared is not None)
        self.naming = Naming.of(self.settings)
        self.invariants = Invariants(self.naming, self.destination, self.lanes)
        self.at_rest = AtRest(self.invariants, self.naming, self.destination)
        self.workload = Workload(self.source, chance)
        self.processes: list[Replicator] = []
        self.others: list[Replicator] = []
        self.replicas: tuple[Replica, ...] | None = None
        self.may_stop = self.damaged = False
        self.violation: Violation | None = None
        self.troubles: dict[Partition, float] = {}
        """When last a log of a source partition, or its copy, lost something or was made anew."""
        self.losses = Losses(self.invariants, self.troubles)
        self.looks: Looks | None = None

    def later(self, reason: str, act: Callable[[], None]) -> None:
        """Have something happen when chance has it."""
        delay = TRANSACTION_TIMEOUT
        if reason == "loading":
            delay = self.chance.random() * 0.1
        elif reason == "marker":
            delay = self.chance.random() * (1.0 if self.chance.random() < 0.05 else 0.005)
        self.at(self.loop.time() + delay, act)

    def committed(self, transaction: Transaction) -> None:
        """A transaction of the destination commits."""
        fencings = self.invariants.obedience.fencings
        try:
            self.invariants.committed(transaction)
            if self.looks is not None and self.invariants.obedience.fencings > fencings:
                self.looks.begin_anew(self.loop.time())
        except Violation as violation:
            self.violation = self.violation or violation

    def befell(self, topic: str, number: int) -> None:
        """A log of a source partition, or its copy, loses something now."""
        self.troubles[topic, number] = self.loop.time()

    def at(self, when: float, act: Callable[[], Any]) -> None:
        """Have something happen then."""
        self.loop.at(when, self.loop.world, act)

    def make_topics(self) -> None:
        """Make what is there when the replicator comes first."""
        chance = self.chance
        for name in ("orders", "payments")[: chance.choice((1, 1, 2))]:
            self.make_at_source(name, chance.choice((1, 2)))
        if not self.own:
            self.destination.make(self.naming.positions_topic, self.lanes, _COMPACTED)
            self.destination.make(self.naming.offsets_topic, self.lanes, _COMPACTED)
            self.replicas = tuple(
                Replica(topic.name, log.number, copy.name, topic.id, copy.id)
                for topic in self.source.topics.values()
                for copy in [self.destination.make(self.naming.destination(topic.name), len(topic.logs), topic.configs)]
                for log in topic.logs
            )

    def make_at_source(self, name: str, partitions: int) -> None:
        """Make a topic that is to be copied."""
        configs = _COMPACTED if self.compacts and self.chance.random() < _SHARE_COMPACTED else None
        self.invariants.watch(self.source.make(name, partitions, configs))

    def start_process(self) -> None:
        """Start a replicator."""
        process = Replicator(len(self.processes) + 1, self.source, self.destination, self.fates, self.settings)
        self.processes.append(process)
        self.fates.note("start of", process.life.name)
        process.start(self.replicas)

    def at_source(self) -> SimulatedCluster:
        """The source, as the process knows it that asks."""
        return SimulatedCluster(self.source, Side.SOURCE, self.loop.life, self.fates)

    def at_destination(self) -> SimulatedCluster:
        """The destination, as the process knows it that asks."""
        return SimulatedCluster(self.destination, Side.DESTINATION, self.loop.life, self.fates)

    def opened(self) -> handle.Link:
        """The link as a command opens it."""
        clusters: Any = self.at_source(), self.at_destination()
        return handle.Link.of(self.settings, *clusters)

    def refused(self) -> bool:
        """The link was damaged, and the process that started last has said so (invariant H)."""
        return self.damaged and isinstance(self.processes[-1].ended, LinkRefused)
