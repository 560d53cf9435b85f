"""The values that one transaction of an order's lane writes for a partition of T."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from appliance.engine.model.map_growth import interleaved_tail, read_tail
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import Outgoing
from appliance.link.model.checkpoint import Gap
from appliance.link.model.order import OrderRecord, Origin, Place, Run, SequenceMark, Vector
from appliance.link.model.position import CopyEnd, Position
from appliance.link.model.replicas import Replica


@dataclass(frozen=True, slots=True)
class Shown:
    """Records for T-global, with the runs that they come from, and the places after them."""

    batches: Sequence[Outgoing]
    runs: Sequence[Run]
    vector: Vector = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Their number."""
        return sum(run.length for run in self.runs)


@dataclass(frozen=True, slots=True)
class Taken:
    """Records for the hidden log, with their mark."""

    batches: Sequence[Outgoing]
    mark: SequenceMark

    @property
    def bytes(self) -> int:
        """Their size."""
        return sum(len(batch.data) for batch in self.batches)


@dataclass(frozen=True, slots=True)
class Change:
    """The outcome of a transaction for one partition of T: its ``record`` after it, but for the ends of both logs.

    ``gaps`` are records of origins that will never be in the order, or not in this T-global (invariant F); the latter
    goes on at the places ``begins``, and the maps of offsets before them hold no more.
    """

    partition: Partition
    record: OrderRecord
    shown: Sequence[Shown] = ()
    taken: Sequence[Taken] = ()
    gaps: Sequence[Gap] = ()
    begins: Vector = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """The size of all that it writes."""
        written = [*(each.batches for each in self.shown), *(each.batches for each in self.taken)]
        return sum(len(batch.data) for batches in written for batch in batches)


def show(record: OrderRecord, shown: Shown) -> OrderRecord:
    """The record after some more of T-global."""
    return replace(record, rank=record.rank + shown.records, digest=record.digest.after(shown.runs))


def places_of(key: Partition, positions: Mapping[Partition, Position], *, single: bool) -> dict[Origin, Place]:
    """The places of the origins of a partition of T, after what T-global shows; of a ``single`` one all partitions'."""
    return {
        Origin(cluster, partition.number): Place(position.source_id, position.next_offset, position.leader_epoch)
        for partition, position in positions.items()
        for cluster, _, topic in [partition.topic.partition(":")]
        if topic == key.topic and (single or partition.number == key.number)
    }


def positions_after(
    change: Change, positions: Mapping[Partition, Position], begin: int, end: CopyEnd
) -> dict[Replica, Position]:
    """The positions of the origins of what is shown in T-global from offset ``begin`` on; the newest one comes last.

    An origin that was made anew has one for each of its topics, whose map ends where that of the next one begins.
    """
    topic, global_id = change.partition.topic, change.record.global_id
    after = {}
    for origin, stretches in _stretches(change.shown, begin).items():
        source = origin.of(topic)
        before = positions.get(source)
        begins = [each.runs[0][1] if each.runs else end.offset for each in stretches[1:]]
        for stretch, at, until in zip(stretches, [begin, *begins], [*begins, end.offset], strict=True):
            place = stretch.place
            if stretch.runs:
                first = stretch.runs[0][0]
                before = _position(_before(before, place, global_id, first), place, stretch.runs, at, until, end)
            elif (moved := _moved(before, place)) is not None:
                before = moved
            else:
                continue
            after[Replica(topic, origin.number, "", before.source_id, global_id, origin.cluster)] = before
    return after


@dataclass(slots=True)
class _Stretch:
    """The records shown of one topic of an origin: offsets and lengths of their runs, and the place after them."""

    place: Place
    runs: list[tuple[int, int, int]] = field(default_factory=list)


def _stretches(shown: Iterable[Shown], begin: int) -> dict[Origin, list[_Stretch]]:
    """The stretches of each origin: a topic that is made anew has another id, or at least goes back in its offsets."""
    stretches: dict[Origin, list[_Stretch]] = {}
    at = begin
    for each in shown:
        for origin, place in each.vector.items():
            own = stretches.setdefault(origin, [])
            if own and own[-1].place.topic_id == place.topic_id:
                own[-1].place = place
            else:
                own.append(_Stretch(place))
        for run in each.runs:
            own = stretches[run.origin]
            if own[-1].runs and run.first < sum(own[-1].runs[-1][::2]):
                own[-1].runs.clear()  # they are of the topic before, whose id nobody knows here
            own[-1].runs.append((run.first, at, run.length))
            at += run.length
    return stretches


def positions_at(change: Change, positions: Mapping[Partition, Position]) -> dict[Replica, Position]:
    """The positions of the origins where T-global goes on after records that nobody has any more."""
    topic, record = change.partition.topic, change.record
    after = {}
    for origin, place in change.begins.items():
        before = positions.get(origin.of(topic), Position(place.topic_id, record.global_id, 0, -1))
        replica = Replica(topic, origin.number, "", place.topic_id, record.global_id, origin.cluster)
        after[replica] = replace(
            before,
            source_id=place.topic_id,
            next_offset=place.next_offset,
            leader_epoch=place.leader_epoch,
            tail=None,
        )
    return after


def _moved(before: Position | None, place: Place) -> Position | None:
    """The position of an origin of which nothing is shown, past offsets without records; None if it stays.

    Retention may delete these before this cluster is home, and they are no gap.
    """
    if before is None or (before.source_id == place.topic_id and before.next_offset >= place.next_offset):
        return None
    same = before.source_id == place.topic_id
    tail = read_tail(before, place.next_offset) if same else None
    moved = replace(before, source_id=place.topic_id, next_offset=place.next_offset, leader_epoch=place.leader_epoch)
    return replace(moved, tail=tail)


def _before(before: Position | None, place: Place, global_id: UUID, first: int) -> Position:
    """The position that the next records of an origin follow, the ``first`` of which has this offset."""
    if before is None:
        return Position(place.topic_id, global_id, 0, -1)
    if before.source_id != place.topic_id:  # it was recreated, and goes on by the operator's word
        return replace(before, source_id=place.topic_id, next_offset=0, tail=None)
    if before.next_offset > first:  # a former home skipped them by the operator's word, and this one never heard of it
        return replace(before, next_offset=first, tail=None)
    return before


def _position(
    before: Position, place: Place, placed: Sequence[tuple[int, int, int]], begin: int, until: int, end: CopyEnd
) -> Position:
    tail = interleaved_tail(before, placed, begin, place.next_offset, until)
    records = before.records + sum(length for _, _, length in placed)
    moved = replace(before, next_offset=place.next_offset, leader_epoch=place.leader_epoch, records=records)
    return moved.written(end, tail)
