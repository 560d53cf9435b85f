"""Cases of an order that histories by chance have found."""

from appliance.link.model.states import LaneState
from appliance.order.model.beats import Wish
from tests.simulation.brokers import NODES
from tests.simulation.order_scenario import Clusters


def test_case_1350_markers_that_retention_has_deleted_are_no_gap_for_the_next_home(calm: Clusters) -> None:
    # The places past markers and aborted records were in no mark: the next home began before them, and stopped.
    order = calm(3)
    order.start()
    order.commit(10)
    order.settle()
    logs = [
        (order.world.brokers[name], order.world.brokers[name].topics["orders"].logs[0]) for name in order.world.names
    ]
    for brokers, log in logs:
        log.mark(1, 0, committed=False)
        brokers.changed(log)
    order.go_on(3)
    for _, log in logs:
        log.delete_before(log.end)
    order.world.beside["lemon"].process.stand()
    order.until(lambda: order.homes() == {"lemon"}, 10)
    order.commit(10)
    order.settle()
    assert not any(order.faults().values())


def test_case_1360_a_lane_that_cannot_ask_by_whom_it_was_fenced_asks_again(calm: Clusters) -> None:
    # A late request of its own for an epoch had fenced it, and its process ended as if another one had the lane.
    order = calm(3)
    order.start()
    order.produce(20)
    order.settle()
    lemon = order.world.brokers["lemon"]
    (runner,) = order.world.beside["lemon"].process.runners
    lemon.coordinator.init(runner.lane.transactional_id)
    order.until(lambda: runner.lane.state is LaneState.FENCED, 10)
    lemon.away.update(NODES)
    order.go_on(5)
    lemon.away.clear()
    order.produce(20)
    order.settle()


def test_case_1361_a_cluster_that_is_no_member_does_not_become_home(calm: Clusters) -> None:
    # Its votes met no two clusters of those that had shown its records: another home ordered them otherwise.
    order = calm(4)
    world = order.world
    order.start()
    order.produce(20)
    order.settle()
    order.wish(Wish("0", members=("grape", "lemon")))  # they would end the membership of what is home meanwhile
    order.go_on(2)
    assert order.memberships() == {("grape", "lemon", "melon", "orange")}
    order.wish(Wish("1", members=("grape", "lemon", "orange")))
    order.until(lambda: order.memberships() == {("grape", "lemon", "orange")}, 10)
    order.wish(Wish("2", "melon", waits=False))
    order.go_on(3)
    for name in ("grape", "lemon"):
        world.cut(name, "melon")
        world.cut(name, "orange")
    order.produce(20, "melon", "orange")
    order.go_on(2)
    for name in ("melon", "orange"):
        world.kill(name)
        for each in ("grape", "lemon"):
            world.cut(each, name)
    world.beside["grape"].process.stand()
    order.produce(20, "grape", "lemon")
    order.go_on(5)
    world.mend()
    for name in ("melon", "orange"):
        world.start(name)
    order.settle()
    assert order.homes() == {"grape"}
