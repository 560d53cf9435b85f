"""Partitions over lanes by their load, and lanes over tasks. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.layout import PLACED_MAX, Layout

_TOLERANCE = 0.1
"""Difference of the most and the least loaded lane that is left, as a share of a lane's mean load."""


def lane_loads(layout: Layout, loads: Mapping[Partition, float]) -> list[float]:
    """The load of each lane."""
    held = [0.0] * layout.lanes
    for partition, load in loads.items():
        held[layout.lane_of(*partition)] += load
    return held


def balanced(layout: Layout, loads: Mapping[Partition, float]) -> Layout:
    """The layout with as many lanes that spreads the loads evenly, by few moves from this one.

    The most loaded lane gives the partition to the least loaded one that leaves the smallest difference, again and
    again. A partition that alone is more than a lane's share stays, and others leave its lane.
    """
    placed = {partition: lane for partition, lane in layout.placed.items() if partition in loads}
    layout = replace(layout, placed=placed)
    hashed, held = Layout(layout.lanes), lane_loads(layout, loads)
    own: list[dict[Partition, float]] = [{} for _ in held]
    for partition in sorted(loads):
        own[layout.lane_of(*partition)][partition] = loads[partition]
    enough = _TOLERANCE * sum(held) / len(held)
    while len(placed) < PLACED_MAX:
        high, low = held.index(max(held)), held.index(min(held))
        difference = held[high] - held[low]
        fitting = {partition: load for partition, load in own[high].items() if 0 < load < difference}
        if difference <= enough or not fitting:
            break
        chosen = min(fitting, key=lambda partition: abs(fitting[partition] - difference / 2))
        own[low][chosen] = own[high].pop(chosen)
        held[high] -= loads[chosen]
        held[low] += loads[chosen]
        placed[chosen] = low
        if hashed.lane_of(*chosen) == low:
            del placed[chosen]
    return replace(layout, placed=placed)
