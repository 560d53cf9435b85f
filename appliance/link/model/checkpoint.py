"""The checkpoint of a lane, as values; ``checkpoint_records`` has them as bytes."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import StateRecord
from appliance.link.model.layout import Layout, LayoutRecord
from appliance.link.model.link_sql import SqlChange
from appliance.link.model.order import OrderRecord, Promise
from appliance.link.model.position import Position, SourcePlace
from appliance.timestamps import utc

OPERATOR = "operator"
"""The run of an owner that is not a replicator: a command that changed a position."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Source offsets that will never be copied: from ``first`` up to but without ``next``; ``found`` in milliseconds.

    ``next`` is -1 if unknown: the log that held them is gone.
    """

    partition: Partition
    source_id: uuid.UUID
    first: int
    next: int
    cause: str
    found: int


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a lane: a run of the replicator and one of its workers, or the operator; ``since`` in milliseconds.

    ``generation`` counts the link's runs: it is greater than that of every run that had left its name before.
    """

    run: str
    worker: str
    host: str
    since: int
    generation: int = 1

    def __str__(self) -> str:
        return f"{self.run} on {self.host} since {utc(self.since / 1000)}"

    def is_newer_than(self, other: "Owner") -> bool:
        """True when this run stays: simultaneous starts share a generation, and any order among them will do."""
        return (self.generation, self.run) > (other.generation, other.run)


@dataclass(frozen=True, slots=True)
class Mark:
    """The producer of a lane's newest start, written before anything is read: a reader that sees it has read far
    enough.

    A former leader of the partition that does not know yet that it was replaced does not have it.
    """

    lane: int
    producer_id: int
    epoch: int

    def is_newer_than(self, other: "Mark") -> bool:
        """True when it was made by a later epoch of the same producer id."""
        return self.producer_id == other.producer_id and self.epoch > other.epoch


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """The link as it was made, and its current layout; in partition 0, written again when the layout changes.

    ``source_cluster`` is the id of the source cluster, empty when it has none. ``partitions`` is the size of the
    positions topic: that of ``lanes``, unless an operator has adopted a grown topic, or there were more lanes before.
    ``made`` is in milliseconds. ``producers`` is the id, in hexadecimal, of the source's topic of producers, if the
    link must know who wrote there. ``number`` and ``placed`` are the layout's, the latter as topic, partition and lane.
    """

    source_cluster: str
    lanes: int
    partitions: int
    made: int
    producers: str = ""
    number: int = 0
    placed: tuple[tuple[str, int, int], ...] = ()

    @property
    def layout(self) -> Layout:
        """The number of lanes, and the lane of each source partition."""
        return Layout(self.lanes, self.number, {Partition(topic, number): lane for topic, number, lane in self.placed})

    def laid_out(self, layout: Layout, partitions: int) -> "LinkRecord":
        """The same with another layout, and another size of the positions topic."""
        placed = tuple(sorted((*partition, lane) for partition, lane in layout.placed.items()))
        return replace(self, lanes=layout.lanes, partitions=partitions, number=layout.number, placed=placed)


@dataclass(frozen=True, slots=True)
class StartOffsets:
    """The first offsets of a topic that existed when the link was made to start later (REPLICA_TOPICS_START).

    One place for each partition of that time; offset -1: at its first record. Older releases recorded no leader epochs.
    """

    topic: str
    source_id: uuid.UUID
    places: tuple[SourcePlace, ...]


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A deleted position, or with ``gap`` the deleted entry of the gap ledger with that offset and time: a tombstone.

    An entry is deleted only where it has moved to another lane.
    """

    partition: Partition
    gap: tuple[int, int] | None = None


CheckpointRecord = (
    tuple[Partition, Position]
    | tuple[Partition, OrderRecord]
    | Promise
    | Gap
    | tuple[int, Owner]
    | Mark
    | LinkRecord
    | StartOffsets
    | StateRecord
    | LayoutRecord
    | SqlChange
    | Tombstone
)
"""The meaning of one record."""


@dataclass(slots=True)
class LaneCheckpoint:
    """The content of one lane's partition before offset ``read_to``; -1: nothing has been read yet.

    ``read_epoch`` is the epoch of the partition's leader then.
    """

    positions: dict[Partition, Position] = field(default_factory=dict)
    gaps: dict[tuple[Partition, int, int], Gap] = field(default_factory=dict)
    owner: Owner | None = None
    mark: Mark | None = None
    link: LinkRecord | None = None
    starts: dict[str, StartOffsets] = field(default_factory=dict)
    states: dict[str, StateRecord] = field(default_factory=dict)
    layout: LayoutRecord | None = None
    sql: dict[tuple[int, str], SqlChange] = field(default_factory=dict)
    promise: Promise | None = None
    orders: dict[Partition, OrderRecord] = field(default_factory=dict)
    read_to: int = -1
    read_epoch: int = -1

    def forget(self) -> None:
        """Start again with a log from its beginning."""
        fresh = LaneCheckpoint()
        for each in fields(self):
            setattr(self, each.name, getattr(fresh, each.name))

    def allows(self, number: int) -> bool:
        """True when a lane of the layout with this number may write here."""
        return number == 0 if self.layout is None else self.layout.number == number and not self.layout.changing

    def add(self, record: CheckpointRecord) -> None:
        """Add one record; the newest of a key holds."""
        match record:
            case Gap() as gap:
                self.gaps[gap.partition, gap.first, gap.found] = gap
            case Mark() as mark:
                self.mark = mark
            case LinkRecord() as link:
                self.link = link
            case StartOffsets() as starts:
                self.starts[starts.topic] = starts
            case StateRecord() as record:
                self.states[record.topic] = record
            case LayoutRecord() as layout:
                self.layout = layout
            case SqlChange() as change:
                self.sql[change.sql.number, change.run] = change
            case Promise() as promise:
                self.promise = promise
            case Tombstone(partition, None):
                self.positions.pop(partition, None)
            case Tombstone(partition, (first, found)):
                self.gaps.pop((partition, first, found), None)
            case (int(), Owner() as owner):
                self.owner = owner
            case (tuple() as partition, OrderRecord() as order):
                self.orders[partition] = order
            case (tuple() as partition, Position() as position):
                self.positions[partition] = position


def start_place(
    topic: str, partition: int, source_id: uuid.UUID | None, starts: Mapping[str, StartOffsets]
) -> SourcePlace | None:
    """The beginning of a partition that existed when the link was made to start later (invariant K).

    None: at its first record.
    """
    start = starts.get(topic)
    if start is None or start.source_id != source_id or partition >= len(start.places):
        return None
    place = start.places[partition]
    return place if place.offset >= 0 else None
