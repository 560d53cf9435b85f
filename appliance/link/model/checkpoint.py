"""The checkpoint of a lane, as values; ``checkpoint_records`` has them as bytes."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import StateRecord
from appliance.link.model.position import Position

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
        return f"{self.run} on {self.host}"

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
    """The link as it was made; in partition 0, written once.

    ``source_cluster`` is the id of the source cluster, empty when it has none. ``partitions`` is the size of the
    positions topic: that of ``lanes``, unless an operator has adopted a grown topic. ``made`` is in milliseconds.
    ``producers`` is the id, in hexadecimal, of the source's topic of producers, if the link must know who wrote there.
    """

    source_cluster: str
    lanes: int
    partitions: int
    made: int
    producers: str = ""


@dataclass(frozen=True, slots=True)
class StartOffsets:
    """The first offsets of a topic that existed when the link was made with REPLICA_TOPICS_START=latest.

    One offset for each partition of that time; -1: at its first record.
    """

    topic: str
    source_id: uuid.UUID
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A deleted position: a tombstone."""

    partition: Partition


Remembered = (
    tuple[Partition, Position] | Gap | tuple[int, Owner] | Mark | LinkRecord | StartOffsets | StateRecord | Forgotten
)
"""The meaning of one record."""


@dataclass(slots=True)
class LaneCheckpoint:
    """The content of one lane's partition before offset ``read_to``; -1: nothing has been read yet."""

    positions: dict[Partition, Position] = field(default_factory=dict)
    gaps: dict[tuple[Partition, int, int], Gap] = field(default_factory=dict)
    owner: Owner | None = None
    mark: Mark | None = None
    link: LinkRecord | None = None
    starts: dict[str, StartOffsets] = field(default_factory=dict)
    states: dict[str, StateRecord] = field(default_factory=dict)
    read_to: int = -1

    def add(self, remembered: Remembered) -> None:
        """Add one record; the newest of a key holds."""
        match remembered:
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
            case Forgotten(partition):
                self.positions.pop(partition, None)
            case (int(), Owner() as owner):
                self.owner = owner
            case (tuple() as partition, Position() as position):
                self.positions[partition] = position


def start_offset(
    topic: str, partition: int, source_id: uuid.UUID | None, starts: Mapping[str, StartOffsets]
) -> int | None:
    """The first offset of a partition that existed when the link was made to start at latest (invariant K).

    None: at its first record.
    """
    known = starts.get(topic)
    if known is None or known.source_id != source_id or partition >= len(known.offsets):
        return None
    offset = known.offsets[partition]
    return offset if offset >= 0 else None
