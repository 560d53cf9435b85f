import random
import uuid

from appliance.driver.model.assignments import assignments, tasks_by_load
from appliance.driver.model.link_facts import Established
from appliance.link.model.layout import Layout
from appliance.link.model.replicas import Replica

REPLICAS = [Replica("orders", n, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2)) for n in range(4)]
LINK = Established(Layout(4), 1)


def test_lanes_without_load_go_to_the_tasks_in_turn() -> None:
    assert tasks_by_load([0.0] * 5, 2) == [0, 1, 0, 1, 0]
    assert tasks_by_load([], 2) == []


def test_a_busy_lane_has_a_task_for_itself_and_every_lane_has_one() -> None:
    assert tasks_by_load([1.0, 9.0, 1.0, 1.0], 2) == [1, 0, 1, 1]
    for seed in range(100):
        chance = random.Random(seed)
        loads, tasks = [chance.paretovariate(1) for _ in range(chance.randint(1, 32))], chance.randint(1, 8)
        held = [0.0] * tasks
        for lane, task in enumerate(tasks_by_load(loads, tasks)):
            held[task] += loads[lane]
        assert max(held) <= max(2 * sum(loads) / tasks, max(loads)) + 1e-9


def test_every_lane_is_assigned_once_and_a_tasks_second_try_gets_the_same() -> None:
    first, second = (assignments(LINK, REPLICAS, 3, [0, 1, 2, 0], 0) for _ in range(2))
    assert first == second
    assert sorted(lane for assignment in first for lane in assignment.lanes) == list(range(4))


def test_the_bound_is_shared_by_the_tasks_that_have_lanes() -> None:
    alone, all_four = (assignments(LINK, some, 2, [0, 1, 0, 1], 1000) for some in (REPLICAS[:1], REPLICAS))
    assert [assignment.bytes_per_second for assignment in alone if assignment.lanes] == [1000]
    assert [assignment.bytes_per_second for assignment in all_four] == [500, 500]
