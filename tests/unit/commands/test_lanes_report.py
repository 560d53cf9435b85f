import random

import pytest

from appliance.commands.model.lanes_report import LanesReport, Loads, balanced
from appliance.driver.model.assignments import lane_loads
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.layout import PLACED_MAX, Layout

SEEDS = range(100)


def test_four_hot_partitions_of_sixteen_in_one_lane_get_a_lane_each() -> None:
    layout = Layout(4)
    partitions = [Partition("orders", number) for number in range(16)]
    hot = [each for each in partitions if layout.lane_of(*each) == 2]
    loads = {each: 1000.0 if each in hot else 1.0 for each in partitions}
    found = balanced(layout, loads)
    assert sorted(found.lane_of(*each) for each in hot) == [0, 1, 2, 3]
    assert len(found.placed) == 3


def test_the_other_lanes_are_balanced_where_one_partition_is_more_than_a_lanes_share() -> None:
    loads = {Partition("huge", 0): 100.0, **{Partition("orders", number): 1.0 for number in range(12)}}
    layout = Layout(3, placed={each: 0 if each[0] == "huge" else 1 for each in loads})
    small, large, huge = sorted(lane_loads(balanced(layout, loads), loads))
    assert (small + large, huge) == (12.0, 100.0)
    assert large <= 8.0


@pytest.mark.parametrize("seed", SEEDS)
def test_balancing_makes_the_busiest_lane_no_busier_and_again_changes_nothing(seed: int) -> None:
    chance = random.Random(seed)
    lanes = chance.choice((1, 2, 4, 8, 16))
    loads = {Partition(f"topic-{n % 9}", n): chance.paretovariate(1.1) for n in range(chance.choice((0, 1, 16, 300)))}
    placed = {each: chance.randrange(lanes) for each in chance.sample(sorted(loads), len(loads) // 10)}
    layout = Layout(lanes, 7, {**placed, Partition("gone", 1): 0})
    found = balanced(layout, loads)
    before, after = lane_loads(layout, loads), lane_loads(found, loads)
    assert max(after) <= max(before)
    assert sum(after) == pytest.approx(sum(before))
    assert max(after) <= max(2 * sum(after) / lanes, max(loads.values(), default=0)) + 1e-9
    assert balanced(found, loads) == found
    assert (found.lanes, found.number) == (lanes, 7)
    assert all(Layout(lanes).lane_of(*each) != lane or each in placed for each, lane in found.placed.items())
    assert ("gone", 1) not in found.placed


def test_the_link_record_never_names_more_partitions_than_fit() -> None:
    layout = Layout(2)
    partitions = [Partition("orders", number) for number in range(8 * PLACED_MAX)]
    loads = {each: 1.0 if layout.lane_of(*each) == 0 else 0.0 for each in partitions}
    assert len(balanced(layout, loads).placed) == PLACED_MAX


def report(loads: Loads, before: Layout, after: Layout | None = None) -> LanesReport:
    return LanesReport("replicator-orange", before, after or before, loads, dry_run=after is not None)


def test_lanes_are_shown_with_their_share_and_balancing_is_proposed_where_it_is_worth_it() -> None:
    layout = Layout(2)
    loads = {Partition("orders", number): 30.0 if layout.lane_of("orders", number) else 10.0 for number in range(4)}
    lines = list(report(Loads(loads, 5.0), layout).lines())
    assert lines == [
        "lane 0: 2 partitions, 25% of what was due within 5 s",
        "lane 1: 2 partitions, 75% of what was due within 5 s",
        "2 lanes: 4 partitions, 80 bytes; placed by load: 0",
        "`appliance lanes --balance` would bring the busiest lane from 75% to 50%",
    ]
    even = Loads(dict.fromkeys(loads, 1.0))
    assert list(report(even, layout).lines())[-1].endswith("placed by load: 0")
    assert report(Loads({}), layout).document()["lanes"] == [
        {"lane": lane, "partitions": 0, "bytes": 0, "percent": 0} for lane in range(2)
    ]


def test_a_plan_says_what_would_move_and_where() -> None:
    loads = Loads({Partition("orders", number): 1.0 for number in range(4)})
    planned = report(loads, Layout(2), Layout(3, 1))
    moved = [each for each in sorted(loads.partitions) if Layout(2).lane_of(*each) != Layout(3).lane_of(*each)]
    assert list(planned.lines())[-1] == f"would change 2 lanes to 3, and move {len(moved)} of 4 partitions"
    assert planned.document()["moved"] == [
        {"topic": topic, "partition": number, "lane": Layout(3).lane_of(topic, number)} for topic, number in moved
    ]
