"""Cases of an order that histories by chance have found."""

from appliance.link.model.states import LaneState
from tests.simulation.brokers import NODES
from tests.simulation.order_scenario import Clusters


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
