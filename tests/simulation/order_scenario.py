"""Clusters of an order to which nothing happens but what a test does."""

import random
from collections.abc import Callable

from appliance.link.model.order import Promise
from appliance.order.model.beats import Wish
from appliance.order.names import hidden_topic
from appliance.order.pulse import wish
from tests.simulation.client import Fates
from tests.simulation.log import Log, Record, seen
from tests.simulation.loop import SimulatedLoop
from tests.simulation.order_world import OrderWorld


class Calm:
    """Clusters in which all goes well."""

    def __init__(self, clusters: int) -> None:
        chance = random.Random(1)
        self.loop = SimulatedLoop(chance)
        self.fates = Fates(self.loop, chance)
        self.world = OrderWorld(chance, self.loop, self.fates, clusters)
        self._tick()

    def go_on(self, seconds: float) -> None:
        until = self.loop.time() + seconds
        self.loop.run_while(lambda: self.loop.time() < until and self.world.violation is None)
        if self.world.violation is not None:
            raise self.world.violation
        for beside in self.world.beside.values():
            if beside.life.alive and beside.task.done():
                beside.task.result()

    def go_on_until(self, reached: Callable[[], bool]) -> None:
        limit = self.loop.time() + 30
        self.loop.run_while(lambda: not reached() and self.loop.time() < limit)
        assert reached()

    def settle(self) -> None:
        self.world.decide_all()
        limit = self.loop.time() + 60
        while self.world.unsettled() and self.loop.time() < limit:
            self.go_on(1)
        assert not self.world.unsettled(), f"{self.world.unsettled()}: {self.faults()}"
        self.world.check(whole=True)

    def start(self, partitions: int = 1) -> None:
        """One topic in all clusters, and a process beside each."""
        self.world.make_topic("orders", partitions)
        for name in self.world.names:
            self.world.start(name)

    def produce(self, records: int, *names: str) -> None:
        """Batches in these clusters, or in all, some moments apart."""
        for _ in range(records):
            self.world.write(*names)
            self.go_on(0.02)

    def wish(self, wanted: Wish, at: str = "orange") -> None:
        """An operator's wish, in one cluster."""
        task = self.loop.start(self.loop.world, wish(self.world.view(at), wanted))
        self.loop.run_while(lambda: not task.done())
        task.result()

    def memberships(self) -> set[tuple[str, ...]]:
        """The members of the newest epochs, as the processes that run have promised them."""
        return {promise.members for promise in self._promises()}

    def homes(self) -> set[str]:
        """The homes of these epochs."""
        return {promise.epoch.home for promise in self._promises()}

    def causes(self) -> set[str]:
        """The reasons for which these epochs began."""
        return {promise.cause for promise in self._promises()}

    def _promises(self) -> list[Promise]:
        living = [beside for beside in self.world.beside.values() if beside.life.alive]
        promises = [runner.lane.promise for beside in living for runner in beside.process.runners]
        return [each for each in promises if each is not None]

    def until(self, reached: Callable[[], bool], seconds: float) -> float:
        """Go on until this is so; how long it took. It must be so within these seconds."""
        began = self.loop.time()
        self.loop.run_while(lambda: not reached() and self.loop.time() < began + seconds and not self.world.violation)
        assert reached(), f"not within {seconds} s: {self.faults()}"
        return self.loop.time() - began

    def t_global(self, name: str, number: int = 0) -> Log:
        """A partition of a T-global."""
        return self.world.brokers[name].topics["orders-global"].logs[number]

    def records(self, name: str, number: int = 0) -> list[Record]:
        """The records that a consumer of a T-global reads."""
        return [record for _, record in seen(self.t_global(name, number))]

    def shown(self, name: str, number: int = 0) -> int:
        """The number of records that a T-global has shown."""
        return self.world.truths["orders", number].ranks.get(self.t_global(name, number), 0)

    def shown_in_all(self, name: str) -> int:
        """The number of records in all partitions of a T-global."""
        return sum(self.shown(name, log.number) for log in self.world.brokers[name].topics["orders-global"].logs)

    def expire(self, *names: str) -> None:
        """Retention deletes all but the newest records of these T-globals, and their hidden logs are trimmed."""
        for name in names:
            shown, hidden = self.t_global(name), self.world.brokers[name].topics[hidden_topic("orders")].logs[0]
            shown.delete_before(shown.entries[-2].base)
            hidden.delete_before(hidden.end)

    def faults(self) -> dict[str, dict[str, str]]:
        return {name: {k: str(v) for k, v in beside.faults.items()} for name, beside in self.world.beside.items()}

    def commit(self, records: int, *names: str) -> None:
        """The same, and all producers end their transactions."""
        self.produce(records, *names)
        self.world.decide_all()

    def part(self, records: int, seconds: float = 0) -> None:
        """Of two clusters orange, the home, shows some records alone, is declared lost, and comes back later."""
        self.go_on(2)
        self.world.kill("grape")
        self.commit(records, "orange")
        (runner,) = self.world.beside["orange"].process.runners
        self.until(lambda: any(each.is_alone for each in runner.lane.checkpoint.orders.values()), 20)
        self.go_on(seconds)
        self.world.kill("orange")
        self.world.cut("grape", "orange")
        self.world.declare_lost("orange")
        self.world.start("grape")
        self.go_on(2)
        self.wish(Wish("1", "grape", lost=("orange",), waits=False), at="grape")
        self.commit(records, "grape")
        self.until(lambda: self.homes() == {"grape"}, 20)
        self.go_on(1)  # grape takes its own records before it sees those of orange again
        self.world.mend()
        self.world.start("orange")
        self.until(lambda: "appliance order rebuild" in str(self.faults()["orange"]), 30)

    def _tick(self) -> None:
        self.loop.at(self.loop.time() + 0.2, self.loop.world, self._tick)


Clusters = Callable[[int], Calm]
"""Makes so many clusters in which all goes well."""
