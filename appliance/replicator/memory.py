"""What the destination remembers of a lane: the records of its partition of the positions topic, as values.

The topic is compacted: of each key the newest record holds. Keys and values are JSON, so that any consumer can read
them. Three kinds of key::

    {"topic", "partition"}          how far a source partition is copied
    {"topic", "partition", "gap"}   records that were not copied, and why: one entry of the gap ledger, kept for ever
    {"lane"}                        who took the lane last
"""

import dataclasses
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from appliance.errors import PeerError
from appliance.kafka.offsets import Partition
from appliance.kafka.records import Record, body, key_and_value, pack
from appliance.replicator.position import Position

OPERATOR = "operator"
"""The run of an owner that is no replicator: a command that changed a position."""

_VERSION = 1
_RECORDS_A_BATCH = 500
_LZ4 = 3


@dataclass(frozen=True, slots=True)
class Gap:
    """Source offsets that will never be copied: from ``first`` up to but without ``next``; ``found`` in milliseconds.

    ``next`` is -1 where nobody can know it: the log that held them is gone.
    """

    partition: Partition
    source_id: uuid.UUID
    first: int
    next: int
    cause: str
    found: int


@dataclass(frozen=True, slots=True)
class Owner:
    """Who took a lane: a run of the replicator and one of its workers, or the operator; ``since`` in milliseconds.

    ``generation`` counts the link's runs: one is greater than that of every run which had left its name before.
    """

    run: str
    worker: str
    host: str
    since: int
    generation: int = 1

    def __str__(self) -> str:
        return f"{self.run} on {self.host}"

    def is_newer_than(self, other: "Owner") -> bool:
        """Which of two runs stays: of the same generation are those that started at once, and any order will do."""
        return (self.generation, self.run) > (other.generation, other.run)


Remembered = tuple[Partition, Position] | Gap | tuple[int, Owner]
"""What one record says."""


@dataclass(slots=True)
class Memory:
    """All that one lane's partition holds before offset ``read_to``; -1: nothing has been read yet."""

    positions: dict[Partition, Position] = field(default_factory=dict)
    gaps: dict[tuple[Partition, int, int], Gap] = field(default_factory=dict)
    owner: Owner | None = None
    read_to: int = -1

    def add(self, remembered: Remembered) -> None:
        """Take in one record; the newest of a key holds."""
        match remembered:
            case Gap() as gap:
                self.gaps[gap.partition, gap.first, gap.found] = gap
            case (int(), Owner() as owner):
                self.owner = owner
            case (tuple() as partition, Position() as position):
                self.positions[partition] = position


def encode_position(partition: Partition, position: Position, now: int) -> Record:
    """The record that remembers a position; ``now`` is its timestamp in milliseconds."""
    # Thousands are written in a second, and the encoder of whatever there is would take six times as long.
    value = (
        f'{{"version":{_VERSION},"source_id":"{position.source_id.hex}","destination_id":"{position.destination_id.hex}"'
        f',"next_offset":{position.next_offset},"leader_epoch":{position.leader_epoch},"records":{position.records}'
        f',"bytes":{position.bytes},"timestamp":{position.timestamp},"stopped":{json.dumps(position.stopped)}'
        f',"stopped_at":{position.stopped_at}}}'
    )
    key = f'{{"topic":{json.dumps(partition[0])},"partition":{partition[1]}}}'
    return Record(0, now, body(key.encode(), value.encode()))


def encode_gap(gap: Gap, now: int) -> Record:
    """The record that remembers a gap."""
    value = dataclasses.asdict(gap)
    del value["partition"]
    return _record({**_partition_key(gap.partition), "gap": [gap.first, gap.found]}, value, now)


def encode_owner(lane: int, owner: Owner, now: int) -> Record:
    """The record that remembers who has a lane."""
    return _record({"lane": lane}, dataclasses.asdict(owner), now)


def packed(records: Sequence[Record]) -> Iterator[tuple[bytes, int]]:
    """The records as batches, each with its number of records: none is larger than any broker takes.

    Several in one batch are compressed: what they say differs little.
    """
    for first in range(0, len(records), _RECORDS_A_BATCH):
        piece = records[first : first + _RECORDS_A_BATCH]
        yield pack(piece, _LZ4 if len(piece) > 1 else 0), len(piece)


def decode(record: Record) -> Remembered:
    """What a record remembers.

    Raises:
        PeerError: somebody else has written to the positions topic, or a newer appliance has.
    """
    key_bytes, value_bytes = key_and_value(record.body)
    try:
        key, value = json.loads(key_bytes or b""), json.loads(value_bytes or b"")
        version = value.pop("version")
        if version != _VERSION:
            raise PeerError(
                f"the positions topic holds version {version} at offset {record.offset}: a newer appliance's"
            )
        return _remembered(key, value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PeerError(f"the positions topic holds something else at offset {record.offset}: {error!r}") from error


def newest(records: Iterable[Record]) -> Iterator[Remembered]:
    """What the newest record of each key remembers; none of the others is decoded.

    Raises:
        PeerError: as ``decode``.
    """
    last = {key_and_value(record.body)[0]: record for record in records}
    return map(decode, last.values())


def _remembered(key: Mapping[str, Any], value: dict[str, Any]) -> Remembered:
    if "lane" in key:
        return int(key["lane"]), Owner(**value)
    partition = (str(key["topic"]), int(key["partition"]))
    value["source_id"] = uuid.UUID(value["source_id"])
    if "gap" in key:
        return Gap(partition=partition, **value)
    value["destination_id"] = uuid.UUID(value["destination_id"])
    return partition, Position(**value)


def _partition_key(partition: Partition) -> dict[str, Any]:
    return {"topic": partition[0], "partition": partition[1]}


def _record(key: Mapping[str, Any], value: Mapping[str, Any], now: int) -> Record:
    whole = {"version": _VERSION, **value}
    return Record(0, now, body(_json(key), _json(whole)))


def _json(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), default=lambda unique: unique.hex).encode()
