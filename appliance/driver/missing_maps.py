"""The offsets of copies for which no map has been written, and the advice to build it."""

import logging
from collections.abc import Collection
from dataclasses import dataclass

from appliance.errors import ApplianceError
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.link.handle import Link
from appliance.link.model.offset_map import Hole
from appliance.link.model.position import UNKNOWN, Position
from appliance.logs.model.span import Span

log = logging.getLogger("appliance.replicator")


@dataclass(frozen=True, slots=True)
class Missing:
    """A range of a copy without a map, as far as both logs still hold it."""

    partition: Partition
    position: Position
    hole: Hole
    source: Span
    copy: Span


async def missing_maps(link: Link) -> list[Missing]:
    """The ranges without a map that both logs still hold, so that it can be built."""
    maps, naming = link.maps(), link.naming
    await maps.read()
    holes = maps.holes()
    names = {Partition(naming.destination(topic), number) for topic, number in holes}
    copies = await offsets_of(link.destination, names, Bound.START)
    originals = await offsets_of(link.source, holes, Bound.START)
    missing = []
    for partition, some in sorted(holes.items()):
        position, copy = maps.position(partition), (naming.destination(partition[0]), partition[1])
        if position is None or partition not in originals or copy not in copies:
            continue
        for hole in some:
            at_source = Span(max(originals[partition], hole.source_from), hole.source_to)
            in_copy = Span(max(copies[copy], hole.copy_from), hole.copy_to)
            if len(at_source) > 0 and len(in_copy) > 0:
                missing.append(Missing(partition, position, hole, at_source, in_copy))
    return missing


async def tell_what_is_missing(link: Link) -> None:
    """Log once that missing maps of offsets can be built."""
    try:
        maps = link.maps()
        await maps.refresh(())
        without = {partition for partition, position in maps.positions() if has_no_tail(position)}
        without |= {each.partition for each in await missing_maps(link)}
    except ApplianceError as error:
        log.debug("the maps of offsets could not be looked at", exc_info=error)
        return
    if without:
        text = "older copies have no map of offsets: `bin/appliance offsets build` reads both logs once and makes them"
        log.warning(text, extra={"fields": {"partitions": len(without), "first": str(min(without))}})


async def offsets_of(cluster: Cluster, partitions: Collection[Partition], bound: Bound) -> dict[Partition, int]:
    """The bounds of partitions that a cluster tells."""
    metadata = await cluster.metadata(sorted({topic for topic, _ in partitions}))
    return (await try_offsets(cluster, metadata, partitions, bound))[0]


def has_no_tail(position: Position) -> bool:
    """True of a position that has copied records, and whose map of offsets has not begun."""
    return position.tail is None and position.next_offset != UNKNOWN and position.records > 0
