"""What histories have found, each by itself."""

import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from appliance.link.client.registry import Registry
from appliance.link.model.naming import Naming
from appliance.replicator.discovery import TopicDiscovery
from appliance.settings.values import OnGap, Side, Start
from tests.simulation.administration import Administration
from tests.simulation.brokers import Brokers
from tests.simulation.client import Fates, SimulatedCluster
from tests.simulation.loop import SimulatedLoop
from tests.simulation.process import TRANSACTION_TIMEOUT, settings

Result = TypeVar("Result")


class Clusters:
    """Both clusters of a link to which nothing happens but what a test does."""

    def __init__(self) -> None:
        chance = random.Random(0)
        self.loop = SimulatedLoop(chance)
        self.source, self.destination = (Brokers(name, self._later, lambda _: None) for name in ("orange", "grape"))
        Administration(self.source)
        Administration(self.destination)
        fates = Fates(self.loop, chance)
        self.at_source = SimulatedCluster(self.source, Side.SOURCE, self.loop.world, fates)
        self.at_destination = SimulatedCluster(self.destination, Side.DESTINATION, self.loop.world, fates)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        task = self.loop.start(self.loop.world, work)
        self.loop.run_while(lambda: not task.done())
        return task.result()

    def _later(self, reason: str, act: Callable[[], None]) -> None:
        delay = 0.001 if reason == "marker" else TRANSACTION_TIMEOUT
        self.loop.at(self.loop.time() + delay, self.loop.world, act)


def test_case_60_a_copy_that_was_claimed_and_not_written_to_yet_is_grown() -> None:
    clusters = Clusters()
    known = settings("orange", OnGap.STOP, Start.EARLIEST, 1)
    naming = Naming.of(known)
    clusters.source.make("orders", 3)
    copy = clusters.destination.make(naming.destination("orders"), 2)
    clusters.destination.make(naming.positions_topic, 1)
    registry = Registry(clusters.at_destination, naming.replicator)
    assert clusters.run(registry.claim({copy.name: copy.id})) == {}
    found = clusters.run(TopicDiscovery(clusters.at_source, clusters.at_destination, naming, known.topics).look())
    assert found.unfit == {}
    assert [replica.partition for replica in found.replicas] == [0, 1, 2]
