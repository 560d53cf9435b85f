"""The lanes of a link with their load, partitions placed by it, and the outcome of a change, in lines and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from appliance.driver.model.assignments import lane_loads
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.layout import PLACED_MAX, Layout
from appliance.listing import counted, number

_WORTH = 1.2
"""Load of the busiest lane, as a multiple of what it could be, from which on balancing is proposed."""


@dataclass(frozen=True, slots=True)
class Loads:
    """The load of each source partition with a position, in bytes: those copied in ``seconds``, and those behind.

    With ``seconds`` 0 they are all bytes ever copied.
    """

    partitions: Mapping[Partition, float]
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """The unit, for people."""
        return f"what was due within {self.seconds:g} s" if self.seconds else "all that was ever copied"


@dataclass(frozen=True, slots=True)
class LanesReport:
    """The layout of a link ``before`` a change and ``after`` it, or with ``dry_run`` what it would be.

    Both are the same where only the lanes are shown. ``stall`` are the seconds in which nothing could be copied,
    ``segments`` the moved ones of the maps of offsets.
    """

    replicator: str
    before: Layout
    after: Layout
    loads: Loads
    dry_run: bool = False
    stall: float = 0.0
    segments: int = 0

    @property
    def is_same(self) -> bool:
        """True when nothing was changed, nor would be."""
        return (self.before.lanes, self.before.placed) == (self.after.lanes, self.after.placed)

    @property
    def moved(self) -> list[Partition]:
        """The partitions that change their lanes."""
        partitions = sorted(self.loads.partitions)
        return [each for each in partitions if self.before.lane_of(*each) != self.after.lane_of(*each)]

    def lines(self) -> Iterator[str]:
        """Print it for the operator."""
        for row in self._rows(self.after):
            partitions = counted(row["partitions"], "partition")
            yield f"lane {row['lane']}: {partitions}, {row['percent']}% of {self.loads.text}"
        now, then, placed = self.before.lanes, self.after.lanes, len(self.before.placed)
        moved = f"{number(len(self.moved))} of {counted(len(self.loads.partitions), 'partition')}"
        if self.is_same:
            whole = f"{counted(now, 'lane')}: {counted(len(self.loads.partitions), 'partition')}"
            yield f"{whole}, {number(sum(self.loads.partitions.values()))} bytes; placed by load: {number(placed)}"
            yield from self._proposal()
        elif self.dry_run:
            yield f"would change {now} lanes to {then}, and move {moved}"
        else:
            yield f"changed {now} lanes to {then}, and moved {moved} and {counted(self.segments, 'segment')} of maps"
            yield f"nothing could be copied for {self.stall:.1f} s; a running replicator goes on by itself"

    def _proposal(self) -> Iterator[str]:
        loads = self.loads.partitions
        better = balanced(self.before, loads)
        now, then = (max(lane_loads(layout, loads), default=0) for layout in (self.before, better))
        if now > _WORTH * then > 0:
            whole = sum(loads.values())
            yield (
                f"`appliance lanes --balance` would bring the busiest lane from {100 * now / whole:.0f}% to "
                f"{100 * then / whole:.0f}%"
            )

    def document(self) -> dict[str, object]:
        """The JSON object."""
        return {
            "replicator": self.replicator,
            "dry_run": self.dry_run,
            "before": self.before.lanes,
            "after": self.after.lanes,
            "partitions": len(self.loads.partitions),
            "placed": _places(self.after.placed),
            "moved": _places({each: self.after.lane_of(*each) for each in self.moved}),
            "segments": self.segments,
            "stall_seconds": round(self.stall, 3),
            "load_seconds": self.loads.seconds,
            "lanes": self._rows(self.after),
        }

    def _rows(self, layout: Layout) -> Sequence[Mapping[str, int]]:
        """The partitions and the load of each lane."""
        counts = lane_loads(layout, dict.fromkeys(self.loads.partitions, 1))
        loads = lane_loads(layout, self.loads.partitions)
        whole = sum(loads) or 1
        return [
            {"lane": lane, "partitions": int(count), "bytes": round(load), "percent": round(100 * load / whole)}
            for lane, (count, load) in enumerate(zip(counts, loads, strict=True))
        ]


def _places(lanes: Mapping[Partition, int]) -> list[dict[str, object]]:
    return [{"topic": each.topic, "partition": each.number, "lane": lane} for each, lane in sorted(lanes.items())]


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
