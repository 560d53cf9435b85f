"""Maps of offsets for records copied without one, made by reading both logs once.

The n-th record of a range of the source is the n-th of its copy. Where one side lacks its beginning, both are aligned
as in a verification. Every record is compared, and both sides must reach the end of the range, whose offsets are
known, at once. If they do not, nothing of the range is remembered.

Nothing is fenced while the logs are read. The lane writes the segments, like an operator's change of a position: they
only fill the holes that other segments leave, so the replicator's writes in the meantime do not matter. A kill in
between leaves whole segments behind; the same command builds the rest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from appliance.commands.run.operation import Choice, Operation, operation
from appliance.driver.link_check import LinkCheck
from appliance.driver.missing_maps import Missing, has_no_tail, missing_maps, offsets_of
from appliance.engine.model.map_growth import SEGMENT_BYTES
from appliance.engine.write.lane import Lane
from appliance.errors import ApplianceError, LinkRefused, PartitionStopped, UnknownTopic
from appliance.kafka.client.offsets import Bound
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import effective
from appliance.link.model.offset_map import Hole, Segment
from appliance.link.model.offset_tail import MapFilling, OffsetTail
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica
from appliance.listing import number
from appliance.logs.beginning import begin
from appliance.logs.model.comparison import Pairing, Run
from appliance.logs.reader import LogReader, WriterFilter
from appliance.logs.side import Side
from appliance.output import say
from appliance.settings.values import Settings


@dataclass(frozen=True, slots=True)
class MapOutcome:
    """The state of a partition's missing map of copy offsets: ``missing``, ``built``, or for a reason ``not built``."""

    topic: str
    partition: int
    state: str
    copy_from: int | None = None
    copy_to: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        """Describe it in one line."""
        if self.reason:
            return f"{self.topic}-{self.partition}: {self.state}: {self.reason}"
        offsets = f"copy offsets {number(self.copy_from)} to {number(self.copy_to)}"
        return f"{self.topic}-{self.partition}: {offsets} have {'no map' if self.state == _MISSING else 'a map now'}"


_MISSING, _BUILT, _NOT_BUILT = "missing", "built", "not built"
Tell = Callable[[MapOutcome], None]
"""Shows the operator an outcome."""


async def build(settings: Settings, chosen: Callable[[Partition], bool], tell: Tell, *, only_plan: bool = False) -> int:
    """Build the maps of the chosen source partitions; the number of those that stay incomplete.

    Each is shown when it is done; with ``only_plan`` nothing is read or changed, and none is said to stay. After Fenced
    the next run continues.
    """
    async with operation(settings, Choice(dry_run=only_plan), partial(say, error=True)) as running:
        building = _Building(running, tell)
        await building.begin()
        lanes = [checkpoint.positions for checkpoint in running.lanes.checkpoints]
        copied = {partition for positions in lanes for partition in positions}
        if copied and not any(map(chosen, copied)):
            raise UnknownTopic(["--topic, --partition: no such partition is copied"])
        if not only_plan:
            await building.end_unknown_tails(lanes, chosen)
        missing = [each for each in await missing_maps(running.link) if chosen(each.partition)]
        if only_plan:
            for each in missing:
                tell(MapOutcome(*each.partition, _MISSING, each.copy.start, each.copy.end))
            return 0
        by_lane = [[each for each in missing if each.partition in positions] for positions in lanes]
        return sum([await building.build(lane, its_missing) for lane, its_missing in enumerate(by_lane)])


class _Building:
    """One run of the command."""

    def __init__(self, running: Operation, tell: Tell) -> None:
        self.naming = running.naming
        self._link, self._lanes, self._tell = running.link, running.lanes, tell
        self._written = WriterFilter(running.source, running.destination, running.naming)

    async def begin(self) -> None:
        """Read the positions of each lane, once it is clear that the link may continue."""
        topic, name = await LinkCheck(self._link).fit_positions(), self.naming.offsets_topic
        if name not in (await self._link.destination.metadata([name])).topics:
            raise LinkRefused(f"there is no {name}: start the replicator once, it makes the topic")
        await self._lanes.read(topic)

    async def end_unknown_tails(
        self, lanes: Sequence[Mapping[Partition, Position]], chosen: Callable[[Partition], bool]
    ) -> None:
        """Begin the tails of maps without one: then both offsets at the end of the missing range are known."""
        for lane, positions in enumerate(lanes):
            if not any(chosen(partition) and has_no_tail(position) for partition, position in positions.items()):
                continue
            taken = await self._lanes.take(lane)
            without_tail = [
                (partition, position)
                for partition, position in taken.checkpoint.positions.items()
                if chosen(partition) and has_no_tail(position) and self._follows(taken, partition)
            ]
            ends = await self._copy_ends([partition for partition, _ in without_tail])
            changed = {
                self._replica(partition, position): replace(
                    position, tail=OffsetTail.begin(position.next_offset, ends[partition])
                )
                for partition, position in without_tail
                if partition in ends
            }
            await taken.commit([], changed)

    def _follows(self, taken: Lane, partition: Partition) -> bool:
        """True while nobody else writes to the copy; otherwise its end says nothing about the copied records."""
        state = effective(taken.checkpoint.states, partition[0])
        if not state.follows:
            why = f"its copy is {state}, so nobody knows where what was copied ends"
            self._tell(MapOutcome(*partition, _NOT_BUILT, reason=why))
        return state.follows

    async def build(self, lane: int, missing: Sequence[Missing]) -> int:
        """Read the missing ranges of a lane's partitions, and write their segments; the number of failures."""
        read: list[tuple[Missing, list[Segment]]] = []
        for each in missing:
            try:
                ranges = await self._read(each)
            except ApplianceError as error:
                self._tell(MapOutcome(*each.partition, _NOT_BUILT, each.copy.start, each.copy.end, str(error)))
                continue
            ids = each.position.source_id, each.position.destination_id
            read.append((each, [Segment(*ids, each_range, fills=True) for each_range in ranges]))
        if not read:
            return len(missing)
        taken = await self._lanes.take(lane)
        unknown = await self._still_unknown([each for each, _ in read])
        filled = [(each, segments) for each, segments in read if each.partition in unknown]
        await taken.remember_segments([(each.partition, segment) for each, segments in filled for segment in segments])
        await taken.commit([], {})  # the operator's name after them: it makes a running replicator take the lane back
        for each, segments in read:
            why = "" if each.partition in unknown else "its copy was changed, or its map built, meanwhile"
            offsets = segments[0].range.copy_from, each.copy.end
            self._tell(MapOutcome(*each.partition, _NOT_BUILT if why else _BUILT, *offsets, why))
        return len(missing) - len(filled)

    async def _still_unknown(self, missing: Sequence[Missing]) -> set[Partition]:
        """The partitions whose maps, now that their lane is fenced, know nothing more than when they were read."""
        maps = self._link.maps()
        await maps.read({each.partition for each in missing})
        holes = maps.holes({each.partition for each in missing})
        changed = {each.partition for each in missing if not each.hole.lies_in(holes.get(each.partition, ()))}
        return {each.partition for each in missing} - changed

    async def _read(self, missing: Missing) -> list[OffsetTail]:
        """The map of a missing range."""
        partition, hole = missing.partition, missing.hole
        copy_of = Partition(self.naming.destination(partition.topic), partition.number)
        reader = LogReader(self._link.source, partition, "build", missing.source.start, self._written.at_source)
        source = Side(reader, missing.source)
        reader = LogReader(self._link.destination, copy_of, "build", missing.copy.start, self._written.in_copy)
        copy = Side(reader, missing.copy)
        if (missing.source.start, missing.copy.start) != (hole.source_from, hole.copy_from):
            beginning = await begin(source, copy, asked_from=missing.source.end)
            if not beginning.state.well and await source.more():
                raise PartitionStopped(beginning.detail)
        filling = MapFilling(source.stream.start, copy.stream.start, SEGMENT_BYTES)
        await _pair(source, copy, hole, filling)
        return filling.finished(hole.source_to, hole.copy_to)

    async def _copy_ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        copies = {Partition(self.naming.destination(each.topic), each.number): each for each in partitions}
        return {
            copies[copy]: end for copy, end in (await offsets_of(self._link.destination, copies, Bound.END)).items()
        }

    def _replica(self, partition: Partition, position: Position) -> Replica:
        topic, number = partition
        return Replica(topic, number, self.naming.destination(topic), position.source_id, position.destination_id)


async def _pair(source: Side, copy: Side, hole: Hole, filling: MapFilling) -> None:
    """Pair the records of both sides up to the end of the hole, which both must reach at once."""
    pairing, ended = Pairing(source.stream, copy.stream), False
    while not ended and await source.more() and await copy.more():
        difference = pairing.advance()
        for run in pairing.runs():
            inside = min(run.length, hole.source_to - run.source, hole.copy_to - run.copy)
            if inside > 0:
                filling.add(run.source, run.copy, inside)
            if inside < run.length:
                _require_end(Run(run.source + max(inside, 0), run.copy + max(inside, 0), 1), hole)
                ended = True
                break
        if difference is not None and not ended:
            _require_end(Run(difference.source_offset, difference.destination_offset, 1), hole)
            ended = True
    if not ended:
        source_has_more = source.stream.position < hole.source_to and bool(source.stream)
        if source_has_more or (await copy.more() and copy.stream.position < hole.copy_to):
            side = "source" if source_has_more else "copy"
            raise PartitionStopped(f"the {side} has more records than the other side before they meet again")


def _require_end(at: Run, hole: Hole) -> None:
    """Check that a pair of records lies past the hole on both sides."""
    if at.source < hole.source_to or at.copy < hole.copy_to:
        text = f"source offset {at.source} and copy offset {at.copy} do not hold the same record"
        raise PartitionStopped(f"{text}: something was left out, copied twice or compacted there")
