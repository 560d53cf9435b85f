"""Cases of a total order in several clusters to which nothing happens but what a test does."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from appliance.order import process
from appliance.order.model.beats import Wish
from appliance.order.pulse import wish
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
        assert not self.world.unsettled(), self.faults()
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
        runners = [
            each for beside in self.world.beside.values() if beside.life.alive for each in beside.process.runners
        ]
        return {runner.lane.promise.members for runner in runners if runner.lane.promise is not None}

    def homes(self) -> set[str]:
        """The homes of the newest epochs, as the processes that run have promised them."""
        runners = [
            each for beside in self.world.beside.values() if beside.life.alive for each in beside.process.runners
        ]
        return {runner.lane.promise.epoch.home for runner in runners if runner.lane.promise is not None}

    def until(self, reached: Callable[[], bool], seconds: float) -> float:
        """Go on until this is so; how long it took. It must be so within these seconds."""
        began = self.loop.time()
        self.loop.run_while(lambda: not reached() and self.loop.time() < began + seconds and not self.world.violation)
        assert reached(), f"not within {seconds} s: {self.faults()}"
        return self.loop.time() - began

    def shown(self, name: str, number: int = 0) -> int:
        """The number of records in a T-global."""
        log = self.world.brokers[name].topics["orders-global"].logs[number]
        return self.world.truths["orders", number].ranks.get(log, 0)

    def faults(self) -> dict[str, dict[str, str]]:
        return {name: {k: str(v) for k, v in beside.faults.items()} for name, beside in self.world.beside.items()}

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
    order.start(partitions=2)
    order.produce(100)
    order.settle()


def test_a_new_home_goes_on_in_the_same_order(calm: Callable[[int], Calm]) -> None:
    order = calm(3)
    order.start()
    for name in order.world.names:
        order.produce(30)
        order.world.beside[name].process.stand()
    order.settle()


def test_a_home_that_is_lost_is_replaced_within_15_seconds_and_changes_nothing_when_it_is_back(
    calm: Callable[[int], Calm],
) -> None:
    order = calm(3)
    order.start()
    order.produce(30)
    order.world.kill("orange")
    before = order.shown("grape")
    order.produce(5, "grape", "lemon")
    order.world.decide_all()
    took = order.until(lambda: order.shown("grape") > before and order.homes() in ({"grape"}, {"lemon"}), 15)
    assert took > 5
    (home,) = order.homes()
    order.world.start("orange")
    order.produce(30)
    order.settle()
    assert order.homes() == {home}


def test_a_cut_between_two_clusters_changes_no_home_and_holds_nobody_up(calm: Callable[[int], Calm]) -> None:
    order = calm(3)
    order.start()
    order.produce(10)
    order.world.cut("lemon", "orange")
    order.world.cut("orange", "lemon")
    order.go_on(20)
    before = order.shown("lemon")
    order.produce(40, "orange", "grape")
    order.world.decide_all()
    order.until(lambda: order.shown("lemon") > before + 10, 10)
    assert order.homes() == {"orange"}
    order.world.mend()
    order.settle()


def test_the_home_moves_by_an_operators_wish_and_nobody_waits_for_five_seconds(calm: Callable[[int], Calm]) -> None:
    order = calm(3)
    order.start()
    order.produce(30)
    order.wish(Wish("1", "lemon"))
    assert order.until(lambda: order.homes() == {"lemon"}, 5) < 2
    before = order.shown("grape")
    order.produce(5, "grape")
    order.world.decide_all()
    assert order.until(lambda: order.shown("grape") > before, 5) < 3
    order.produce(30)
    order.settle()


def test_a_home_that_yields_to_a_cluster_that_is_down_takes_again(calm: Callable[[int], Calm]) -> None:
    order = calm(3)
    order.start()
    order.produce(10)
    order.world.kill("lemon")
    order.wish(Wish("1", "lemon"))
    order.go_on(6)
    before = order.shown("grape")
    order.produce(10, "grape")
    order.world.decide_all()
    order.until(lambda: order.shown("grape") > before, 5)
    assert order.homes() == {"orange"}
    order.world.start("lemon")
    order.settle()


def test_of_two_clusters_the_home_goes_on_alone_after_ten_seconds_until_the_other_one_is_back(
    calm: Callable[[int], Calm],
) -> None:
    order = calm(2)
    order.start()
    order.produce(10)
    order.world.decide_all()
    order.go_on(2)
    order.world.kill("grape")
    before = order.shown("orange")
    order.produce(10, "orange")
    order.world.decide_all()
    order.go_on(5)
    assert order.shown("orange") == before
    order.until(lambda: order.shown("orange") > before, 10)
    order.world.start("grape")
    order.settle()
    runner = order.world.beside["orange"].process.runners[0]
    order.until(lambda: not any(each.alone for each in runner.lane.checkpoint.orders.values()), 10)


def test_without_going_alone_the_home_of_two_clusters_waits(calm: Callable[[int], Calm]) -> None:
    order = calm(2)
    order.world.order = replace(order.world.order, alone=False)
    order.start()
    order.produce(10)
    order.world.decide_all()
    order.go_on(2)
    order.world.kill("grape")
    before = order.shown("orange")
    order.produce(10, "orange")
    order.go_on(30)
    assert order.shown("orange") == before
    order.world.start("grape")
    order.settle()


def test_of_two_clusters_the_operators_word_makes_a_new_home_and_a_former_one_that_was_not_alone_follows(
    calm: Callable[[int], Calm],
) -> None:
    order = calm(2)
    order.start()
    order.produce(30)
    order.world.kill("orange")
    order.go_on(20)
    assert order.homes() == {"orange"}
    order.wish(Wish("1", "grape", lost=("orange",), waits=False), at="grape")
    before = order.shown("grape")
    order.produce(10, "grape")
    order.world.decide_all()
    order.until(lambda: order.shown("grape") > before and order.homes() == {"grape"}, 20)
    order.world.start("orange")
    order.settle()


def test_a_former_home_that_was_alone_and_was_declared_lost_stops_and_says_so(calm: Callable[[int], Calm]) -> None:
    order = calm(2)
    order.start()
    order.produce(10)
    order.world.decide_all()
    order.go_on(2)
    order.world.kill("grape")
    order.produce(10, "orange")
    order.world.decide_all()
    before = order.shown("orange")
    order.until(lambda: order.shown("orange") > before, 20)
    order.world.kill("orange")
    order.world.cut("grape", "orange")
    order.world.declare_lost("orange")
    order.world.start("grape")
    order.go_on(2)
    order.wish(Wish("1", "grape", lost=("orange",), waits=False), at="grape")
    order.produce(10, "grape")
    order.until(lambda: order.homes() == {"grape"}, 20)
    order.world.mend()
    order.world.start("orange")
    order.until(lambda: "appliance order rebuild" in str(order.faults()["orange"]), 30)


def test_a_cluster_joins_and_leaves(calm: Callable[[int], Calm]) -> None:
    order = calm(4)
    everybody = order.world.order
    order.world.order = replace(everybody, listed=("orange", "grape", "lemon"))
    order.world.make_topic("orders", 1)
    for name in ("orange", "grape", "lemon"):
        order.world.start(name)
    order.produce(20, "orange", "grape", "lemon")
    order.world.order = everybody
    for name in ("orange", "grape", "lemon"):
        order.world.kill(name)
    for name in everybody.listed:
        order.world.start(name)
    order.produce(20)
    order.settle()
    order.wish(Wish("1", members=tuple(sorted(everybody.listed))))
    order.until(lambda: {len(members) for members in order.memberships()} == {4}, 10)
    order.produce(20)
    order.wish(Wish("2", members=("grape", "melon", "orange")))
    order.until(lambda: {len(members) for members in order.memberships()} == {3}, 10)
    order.produce(20)
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
    order.go_on_until(lambda: bool(candidate.hidden.tail))
    world.mend()
    order.settle()


def test_case_1241_a_candidate_takes_over_nothing_that_it_has_read_for_an_earlier_try(
    calm: Callable[[int], Calm],
) -> None:
    order = calm(3)
    world = order.world
    world.make_topic("orders", 1)
    for name in world.names:
        world.start(name)
    order.go_on(3)
    for pair in (("lemon", "orange"), ("lemon", "grape"), ("orange", "grape"), ("grape", "orange")):
        world.cut(*pair)
    for _ in range(300):
        world.write()
        order.go_on(0.02)
    world.cuts.discard(("lemon", "orange"))
    (runner,) = world.beside["lemon"].process.runners
    (candidate,) = runner.partitions.values()
    world.beside["lemon"].process.stand()
    order.go_on_until(lambda: bool(candidate.hidden.tail))
    world.cut("orange", "lemon")  # its vote is missed the next time
    world.cut("lemon", "orange")
    world.cuts.discard(("lemon", "grape"))
    world.beside["lemon"].process.stand()
    order.go_on(3)
    world.mend()
    order.settle()


def test_case_1220_a_process_that_starts_while_its_own_cluster_is_away_waits_for_it(
    calm: Callable[[int], Calm],
) -> None:
    # The process ended with an error if the broker went away just before it made its topics.
    order = calm(3)
    order.world.cuts.add(("grape", "grape"))
    order.start()
    order.produce(20)
    assert "is cut" in order.faults()["grape"]["grape"]
    order.world.mend()
    order.settle()
    assert not order.faults()["grape"]


def test_case_1221_a_process_ends_when_a_newer_one_has_taken_over(calm: Callable[[int], Calm]) -> None:
    # It went on with no lane at work, and nobody saw that it did nothing.
    order = calm(3)
    order.start()
    order.produce(20)
    before = order.world.beside["grape"]
    order.world.start("grape")
    order.go_on_until(before.task.done)
    order.produce(20)
    order.settle()


def test_a_late_cluster_goes_on_where_the_hidden_log_was_trimmed_and_the_trimming_harms_nobody(
    calm: Callable[[int], Calm], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_TRIM_SECONDS", 1.0)
    monkeypatch.setattr(process, "_KEPT_SECONDS", 3.0)
    order = calm(3)
    order.start()
    order.produce(30)
    order.go_on(2)
    order.world.kill("lemon")
    order.produce(60, "orange", "grape")
    order.world.decide_all()
    order.go_on(10)
    hidden = order.world.brokers["orange"].topics["replicator-order.orders.hidden"].logs[0]
    assert hidden.start > 0
    order.world.start("lemon")
    order.produce(10)
    order.settle()
    order.world.beside["grape"].process.stand()
    order.produce(10)
    order.settle()


def test_case_1242_a_late_cluster_catches_up_from_whichever_cluster_still_has_what_it_lacks(
    calm: Callable[[int], Calm],
) -> None:
    order = calm(3)
    order.world.make_topic("orders", 1)
    for name in ("orange", "grape"):
        order.world.start(name)
    order.produce(30)
    order.world.beside["orange"].process.stand()
    order.produce(30)
    order.world.decide_all()
    order.go_on(5)
    shown = order.world.brokers["orange"].topics["orders-global"].logs[0]
    shown.delete_before(shown.entries[len(shown.entries) // 2].base)
    order.world.start("lemon")
    order.settle()
