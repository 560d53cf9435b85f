"""Cases in which an order's engine broke what its protocol promises, found by attacking it."""

import asyncio
from typing import Any

import pytest

from appliance.kafka.client.produce import append
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, body
from appliance.order.model.beats import Wish
from appliance.order.names import BEATS_LOG
from appliance.order.topics import OrderTopics
from tests.simulation.brokers import NODES
from tests.simulation.order_scenario import Clusters

POSITIONS, OFFSETS, HIDDEN = "replicator-order.positions", "replicator-order.offsets", "replicator-order.orders.hidden"


def test_case_1310_a_later_home_does_not_resume_an_origin_as_the_one_before_was_told_to(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.produce(20)
    order.settle()
    next_offset = order.world.brokers["grape"].topics["orders"].logs[0].end
    order.wish(Wish("1", resumed=(("grape", "orders", 0, next_offset),)))
    order.go_on(2)
    order.produce(20)
    order.settle()
    order.world.beside["lemon"].process.stand()
    order.produce(20)
    order.settle()


def test_case_1311_an_origin_that_is_resumed_at_an_earlier_offset_is_not_taken_twice(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.produce(20)
    order.settle()
    order.wish(Wish("1", resumed=(("grape", "orders", 0, 0),)))
    order.go_on(2)
    order.produce(20)
    order.settle()


def test_case_1312_what_a_commit_left_unwritten_is_taken_again(calm: Clusters) -> None:
    # The maps of offsets had no leader, and what was to be written then was never taken again.
    order = calm(3)
    order.world.make_topic("payments", 1)
    order.start()
    order.go_on(3)
    orange = order.world.brokers["orange"]
    orange.topics["payments-global"].configs["cleanup.policy"] = "compact"  # this one is looked at again and again
    order.world.start("orange")
    order.go_on(3)
    maps = orange.topics[OFFSETS].logs[0]
    orange.lead(maps, -1)
    order.until(lambda: "has no leader now" in str(order.faults()["orange"]), 10)
    for _ in range(20):
        order.world.workloads["grape"].write(order.world.brokers["grape"].topics["orders"].logs[0])
        order.world.decide_all()
        order.go_on(0.1)
    orange.lead(maps, NODES[0])
    order.produce(20, "grape")
    order.go_on(5)
    assert order.homes() == {"orange"}
    del orange.topics["payments-global"].configs["cleanup.policy"]
    order.produce(20)
    order.settle()


def test_case_1313_a_cluster_that_has_lost_the_end_of_its_positions_does_not_vote(calm: Clusters) -> None:
    order = calm(3)
    world = order.world
    order.start()
    order.go_on(3)
    world.kill("lemon")
    log = world.brokers["grape"].topics[POSITIONS].logs[0]
    before = log.end
    order.produce(30, "orange", "grape")
    world.decide_all()
    order.go_on(3)
    for name in ("orange", "grape"):
        world.kill(name)
    log.truncate(before)
    world.brokers["grape"].lead(log, log.leader)
    world.damaged.add("grape")
    world.watch.damaged.add(("grape", "orders"))
    world.truths["orders", 0].ranks.pop(world.brokers["grape"].topics["orders-global"].logs[0])
    world.cut("lemon", "orange")
    world.cut("grape", "orange")
    world.start("lemon")
    order.go_on(3)
    world.beside["lemon"].process.stand()
    order.go_on(1)
    world.start("grape")
    order.produce(30, "lemon")
    order.go_on(5)
    world.mend()
    world.start("orange")
    order.produce(30, "orange", "lemon")
    order.settle()


def test_case_1314_a_home_that_was_made_anew_does_not_open_its_epoch_again(calm: Clusters) -> None:
    order = calm(3)
    world = order.world
    order.start()
    order.produce(30)
    order.settle()
    world.kill("orange")
    orange = world.brokers["orange"]
    for truth in world.truths.values():
        truth.ranks.pop(orange.topics["orders-global"].logs[0])
    for name in (POSITIONS, OFFSETS, BEATS_LOG.topic, HIDDEN, "orders-global"):
        orange.delete(name)
    key = ("orange", Partition("orders", 0))
    world.watch._parts.pop(key)
    world.watch._shown.pop(key)
    world.watch.promises.pop(("orange", 0))
    world.start("orange")
    order.go_on(3)
    assert "began here" in str(order.faults()["orange"])
    order.produce(30)
    order.settle()
    assert "orange" not in order.homes()


def test_case_1315_older_memberships_count_until_all_partitions_have_accepted_the_newer_one(
    calm: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process that had not seen its topics yet took all of them for accepted.
    order = calm(3)
    order.start()
    order.produce(10)
    for name in ("grape", "lemon"):
        order.world.kill(name)
    order.wish(Wish("1", members=("grape", "orange")))
    order.go_on(3)
    order.world.kill("orange")
    look = OrderTopics._look

    async def late(self: OrderTopics, name: str) -> None:
        await asyncio.sleep(5)
        await look(self, name)

    monkeypatch.setattr(OrderTopics, "_look", late)
    order.world.start("orange")
    order.go_on(15)
    promise = order.world.watch.promises["orange", 0]
    assert promise.members == ("grape", "orange")
    assert ("grape", "lemon", "orange") in promise.named


def test_case_1316_what_a_lost_cluster_has_shown_keeps_no_new_home_waiting(calm: Clusters) -> None:
    order = calm(2)
    world = order.world
    order.start()
    order.produce(10)
    world.decide_all()
    order.go_on(2)
    world.kill("grape")
    before = order.shown("orange")
    order.produce(10, "orange")
    world.decide_all()
    order.until(lambda: order.shown("orange") > before, 20)
    order.go_on(2)
    for name in ("orders-global", HIDDEN):
        log = world.brokers["orange"].topics[name].logs[0]
        log.delete_before(log.end)
    world.start("grape")
    order.go_on(3)
    world.kill("orange")
    world.cut("grape", "orange")
    world.declare_lost("orange")
    order.wish(Wish("1", "grape", lost=("orange",), waits=False), at="grape")
    before = order.shown("grape")
    order.produce(10, "grape")
    world.decide_all()
    order.until(lambda: order.shown("grape") > before, 25)


def test_case_1317_nobody_catches_up_from_a_cluster_whose_records_are_ordered_otherwise(calm: Clusters) -> None:
    order = calm(3)
    world = order.world
    order.start()
    order.produce(10)
    world.decide_all()
    order.go_on(2)
    for name in ("grape", "lemon"):
        world.kill(name)
    order.wish(Wish("1", alone=True))
    before = order.shown("orange")
    order.produce(40, "orange")
    world.decide_all()
    order.until(lambda: order.shown("orange") > before + 20, 30)
    world.kill("orange")
    world.damaged.add("orange")
    world.declare_lost("orange")
    for name in ("grape", "lemon"):
        world.cut(name, "orange")
        world.start(name)
    order.go_on(1)
    world.beside["grape"].process.stand()
    order.produce(5, "grape", "lemon")
    order.until(lambda: order.homes() == {"grape"}, 20)
    world.decide_all()
    order.go_on(2)
    world.cut("lemon", "grape")
    order.produce(5, "grape", "lemon")
    world.cuts.discard(("lemon", "orange"))
    world.start("orange")
    order.go_on(10)
    world.mend()
    order.produce(5, "grape", "lemon")
    order.settle()


def test_case_1318_a_foreign_record_among_the_beats_silences_no_home(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.produce(10)

    async def write() -> None:
        cluster: Any = order.world.view("orange")
        foreign = Record(0, 0, body(b"foreign", b"foreign"))
        await append(cluster, await cluster.metadata([BEATS_LOG.topic]), BEATS_LOG, [foreign])

    task = order.loop.start(order.loop.world, write())
    order.loop.run_while(lambda: not task.done())
    order.go_on(20)
    assert order.homes() == {"orange"}
    order.settle()


def test_case_1319_a_wish_that_was_met_is_not_met_again_when_the_beats_have_lost_their_end(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.produce(10)
    order.wish(Wish("1", "lemon", waits=False))
    order.until(lambda: order.homes() == {"lemon"}, 10)
    order.world.beside["orange"].process.stand()
    order.until(lambda: order.homes() == {"orange"}, 10)
    order.go_on(2)
    orange = order.world.brokers["orange"]
    log = orange.topics[BEATS_LOG.topic].logs[0]
    log.truncate(log.entries[-2].base)
    orange.lead(log, sum(NODES) - log.leader)
    order.go_on(10)
    assert order.homes() == {"orange"}
    order.settle()


def test_case_1351_a_home_that_was_alone_says_so_in_its_next_epoch_until_others_have_what_it_showed(
    calm: Clusters,
) -> None:
    order = calm(3)
    order.start()
    order.commit(10)
    order.go_on(2)
    for name in ("grape", "lemon"):
        order.world.kill(name)
    order.wish(Wish("1", alone=True))
    order.commit(20, "orange")
    process, key = order.world.beside["orange"].process, Partition("orders", 0)
    lane = process.runners[0].lane
    order.until(lambda: lane.record(key).is_alone, 30)
    order.world.start("grape")
    process.stand()
    order.until(lambda: lane.record(key).accepted.number > 1, 10)
    assert lane.record(key).is_alone
    order.world.start("lemon")
    order.settle()
    order.until(lambda: not lane.record(key).is_alone, 10)


def test_case_1352_a_topic_that_only_others_have_is_checked_before_a_vote(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.commit(10)
    order.settle()
    order.world.kill("grape")
    order.world.brokers["grape"].delete("orders")
    order.world.cut("grape", "orange")
    order.world.cut("grape", "lemon")
    order.world.start("grape")
    order.go_on(5)
    (runner,) = order.world.beside["grape"].process.runners
    assert {*runner.partitions} == {Partition("orders", 0)}
