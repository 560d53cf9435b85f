"""Partitions over lanes by their load. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from appliance.driver.model.assignments import lane_loads
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.layout import PLACED_MAX, Layout

_TOLERANCE = 0.1
"""Difference of the most and the least loaded lane that is left, as a share of a lane's mean load."""


def balanced(layout: Layout, loads: Mapping[Partition, float]) -> Layout:
    """The layout with as many lanes that spreads the loads evenly, by few moves from this one.

    The busiest lane that can gives the partition to the least busy one that leaves the smallest difference, again and
    again. A partition that alone is more than a lane's share stays, and others leave its lane.
    """
    placed = {partition: lane for partition, lane in layout.placed.items() if partition in loads}
    layout = replace(layout, placed=placed)
    hashed, lane_load = Layout(layout.lanes), lane_loads(layout, loads)
    own: list[dict[Partition, float]] = [{} for _ in lane_load]
    for partition in sorted(loads):
        own[layout.lane_of(*partition)][partition] = loads[partition]
    while len(placed) < PLACED_MAX and (move := _move(lane_load, own)):
        chosen, high, low = move
        own[low][chosen] = own[high].pop(chosen)
        lane_load[high] -= loads[chosen]
        lane_load[low] += loads[chosen]
        placed[chosen] = low
        if hashed.lane_of(*chosen) == low:
            del placed[chosen]
    return replace(layout, placed=placed)


def _move(lane_load: Sequence[float], own: Sequence[Mapping[Partition, float]]) -> tuple[Partition, int, int] | None:
    """The next partition to move, from which lane, and to which one; None where the lanes are as even as they get."""
    enough, low = _TOLERANCE * sum(lane_load) / len(lane_load), lane_load.index(min(lane_load))
    for high in sorted(range(len(lane_load)), key=lambda lane: -lane_load[lane]):
        difference = lane_load[high] - lane_load[low]
        if difference <= enough:
            return None
        fitting = {partition: load for partition, load in own[high].items() if 0 < load < difference}
        if fitting:
            return min(fitting, key=lambda partition: abs(fitting[partition] - difference / 2)), high, low
    return None
