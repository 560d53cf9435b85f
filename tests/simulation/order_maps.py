"""Invariant L of an order: offsets of T in every cluster and of every T-global translate exactly, both ways."""

from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.offset_map import OffsetMap
from tests.simulation.invariants import Violation
from tests.simulation.log import Log
from tests.simulation.order_truth import OrderTruth

_STRIDE = 7
"""One record of so many is translated."""


async def check_maps(maps: OffsetMaps, shown: list[tuple[str, OrderTruth, Log]], first: int) -> None:
    """Hold a cluster's maps against what its T-globals show, each with its topic, from some rank on."""
    await maps.read()
    for topic, truth, log in shown:
        places = truth.places.get(log, [])
        for rank in range(first, len(places), _STRIDE):
            source = truth.sources[truth.order[rank]]
            if truth.is_plain(source.origin):
                _check(maps, topic, truth, log, rank)


def _check(maps: OffsetMaps, topic: str, truth: OrderTruth, log: Log, rank: int) -> None:
    source, place = truth.sources[truth.order[rank]], truth.places[log][rank]
    origin = source.origin.of(topic)
    there = maps.translate(origin, source.offset)
    back = OffsetMap(maps.segments(origin), maps.position(origin)).reverse(place)
    if (there.offset, back.offset) != (place, source.offset):
        raise Violation(f"L: offset {source.offset} of {origin} lies at {place} of {log}: {there}, and back {back}")
