"""Cases of a total order in several clusters to which nothing happens but what a test does."""

import random
from collections.abc import Callable, Iterator

import pytest

from tests.simulation.client import Fates
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
        faults = {name: {k: str(v) for k, v in beside.faults.items()} for name, beside in self.world.beside.items()}
        assert not self.world.unsettled(), faults
        self.world.check(whole=True)

    def _tick(self) -> None:
        self.loop.at(self.loop.time() + 0.2, self.loop.world, self._tick)


@pytest.fixture
def calm() -> Iterator[Callable[[int], Calm]]:
    """Makes clusters, and lets go of all that runs there at the end."""
    made: list[Calm] = []

    def make(clusters: int) -> Calm:
        made.append(Calm(clusters))
        return made[-1]

    yield make
    for each in made:
        each.loop.close()


@pytest.mark.parametrize("clusters", [2, 3, 5])
def test_all_clusters_show_one_order_of_all_records(clusters: int, calm: Callable[[int], Calm]) -> None:
    order = calm(clusters)
    order.world.make_topic("orders", 2)
    for name in order.world.names:
        order.world.start(name)
    for _ in range(100):
        order.world.write()
        order.go_on(0.02)
    order.settle()


def test_a_new_home_goes_on_in_the_same_order(calm: Callable[[int], Calm]) -> None:
    order = calm(3)
    order.world.make_topic("orders", 1)
    for name in order.world.names:
        order.world.start(name)
    for turn in range(90):
        order.world.write()
        order.go_on(0.02)
        if turn % 30 == 29:
            order.world.beside[order.world.names[turn // 30]].process.stand()
    order.settle()


def test_case_1240_a_candidate_forgets_of_a_hidden_log_what_a_catch_up_has_shown(calm: Callable[[int], Calm]) -> None:
    order = calm(3)
    world = order.world
    world.make_topic("orders", 1)
    for name in world.names:
        world.start(name)
    order.go_on(3)
    for pair in (("lemon", "orange"), ("lemon", "grape"), ("orange", "grape")):
        world.cut(*pair)  # grape shows what orange, the home, does not know of
    for _ in range(300):
        world.write()
        order.go_on(0.02)
    world.cuts.discard(("lemon", "orange"))
    (runner,) = world.beside["lemon"].process.runners
    (candidate,) = runner.partitions.values()
    world.beside["lemon"].process.stand()
    order.go_on_until(lambda: bool(candidate._tail))
    world.mend()
    order.settle()
