"""Cases of a total order in several clusters to which nothing happens but what a test does."""

from dataclasses import replace

import pytest

from appliance.order import process
from appliance.order.model.beats import Wish
from tests.simulation.order_scenario import Clusters


@pytest.mark.parametrize("clusters", [2, 3, 5])
def test_all_clusters_show_one_order_of_all_records(clusters: int, calm: Clusters) -> None:
    order = calm(clusters)
    order.start(partitions=2)
    order.produce(100)
    order.settle()


def test_a_new_home_goes_on_in_the_same_order(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    for name in order.world.names:
        order.produce(30)
        order.world.beside[name].process.stand()
    order.settle()


def test_a_home_that_is_lost_is_replaced_within_15_seconds_and_changes_nothing_when_it_is_back(
    calm: Clusters,
) -> None:
    order = calm(3)
    order.start()
    order.produce(30)
    order.world.kill("orange")
    before = order.shown("grape")
    order.commit(5, "grape", "lemon")
    took = order.until(lambda: order.shown("grape") > before and order.homes() in ({"grape"}, {"lemon"}), 15)
    assert order.causes() == {"orange was silent"}
    assert took > 5
    (home,) = order.homes()
    order.world.start("orange")
    order.produce(30)
    order.settle()
    assert order.homes() == {home}


def test_a_cut_between_two_clusters_changes_no_home_and_holds_nobody_up(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.produce(10)
    order.world.cut("lemon", "orange")
    order.world.cut("orange", "lemon")
    order.go_on(20)
    before = order.shown("lemon")
    order.commit(40, "orange", "grape")
    order.until(lambda: order.shown("lemon") > before + 10, 10)
    assert order.homes() == {"orange"}
    order.world.mend()
    order.settle()


def test_the_home_moves_by_an_operators_wish_and_nobody_waits_for_five_seconds(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.produce(30)
    order.wish(Wish("1", "lemon"))
    assert order.causes() == {"GLOBAL_HOME names the first home"}
    assert order.until(lambda: order.homes() == {"lemon"}, 5) < 2
    assert order.causes() == {"orange has handed over"}
    before = order.shown("grape")
    order.commit(5, "grape")
    assert order.until(lambda: order.shown("grape") > before, 5) < 3
    order.produce(30)
    order.settle()


def test_a_home_that_yields_to_a_cluster_that_is_down_takes_again(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.produce(10)
    order.world.kill("lemon")
    order.wish(Wish("1", "lemon"))
    order.go_on(6)
    before = order.shown("grape")
    order.commit(10, "grape")
    order.until(lambda: order.shown("grape") > before, 5)
    assert order.homes() == {"orange"}
    order.world.start("lemon")
    order.settle()


def test_of_two_clusters_the_home_goes_on_alone_after_ten_seconds_until_the_other_one_is_back(
    calm: Clusters,
) -> None:
    order = calm(2)
    order.start()
    order.commit(10)
    order.go_on(2)
    order.world.kill("grape")
    before = order.shown("orange")
    order.commit(10, "orange")
    order.go_on(5)
    assert order.shown("orange") == before
    order.until(lambda: order.shown("orange") > before, 10)
    order.world.start("grape")
    order.settle()
    runner = order.world.beside["orange"].process.runners[0]
    order.until(lambda: not any(each.is_alone for each in runner.lane.checkpoint.orders.values()), 10)


def test_without_going_alone_the_home_of_two_clusters_waits(calm: Clusters) -> None:
    order = calm(2)
    order.world.order = replace(order.world.order, alone=False)
    order.start()
    order.commit(10)
    order.go_on(2)
    order.world.kill("grape")
    before = order.shown("orange")
    order.produce(10, "orange")
    order.go_on(30)
    assert order.shown("orange") == before
    order.world.start("grape")
    order.settle()


def test_of_two_clusters_the_operators_word_makes_a_new_home_and_a_former_one_that_was_not_alone_follows(
    calm: Clusters,
) -> None:
    order = calm(2)
    order.start()
    order.produce(30)
    order.world.kill("orange")
    order.go_on(20)
    assert order.homes() == {"orange"}
    order.wish(Wish("1", "grape", lost=("orange",), waits=False), at="grape")
    before = order.shown("grape")
    order.commit(10, "grape")
    order.until(lambda: order.shown("grape") > before and order.homes() == {"grape"}, 20)
    order.world.start("orange")
    order.settle()


def test_a_former_home_that_was_alone_and_was_declared_lost_stops_and_says_so(calm: Clusters) -> None:
    order = calm(2)
    order.start()
    order.commit(10)
    order.part(records=10)


def test_a_cluster_joins_and_leaves(calm: Clusters) -> None:
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


def test_case_1240_a_candidate_forgets_of_a_hidden_log_what_a_catch_up_has_shown(calm: Clusters) -> None:
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
    calm: Clusters,
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
    calm: Clusters,
) -> None:
    # The process ended with an error if the broker went away just before it made its topics.
    order = calm(3)
    order.world.cuts.add(("grape", "grape"))
    order.start()
    order.produce(20)
    order.until(lambda: "is cut" in str(order.faults()["grape"].get("grape")), 5)
    order.world.mend()
    order.settle()
    assert not order.faults()["grape"]


def test_case_1221_a_process_ends_when_a_newer_one_has_taken_over(calm: Clusters) -> None:
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
    calm: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_TRIM_SECONDS", 1.0)
    monkeypatch.setattr(process, "_KEPT_SECONDS", 3.0)
    order = calm(3)
    order.start()
    order.produce(30)
    order.go_on(2)
    order.world.kill("lemon")
    order.commit(60, "orange", "grape")
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
    calm: Clusters,
) -> None:
    order = calm(3)
    order.world.make_topic("orders", 1)
    for name in ("orange", "grape"):
        order.world.start(name)
    order.produce(30)
    order.world.beside["orange"].process.stand()
    order.commit(30)
    order.go_on(5)
    shown = order.world.brokers["orange"].topics["orders-global"].logs[0]
    shown.delete_before(shown.entries[len(shown.entries) // 2].base)
    order.world.start("lemon")
    order.settle()
