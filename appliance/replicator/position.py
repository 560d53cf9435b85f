"""How far a source partition is copied, as the destination remembers it: one record of the positions topic.

Key and value are JSON, so that any consumer can read them. The topic is compacted; the newest record of a key holds.
"""

import json
import uuid
from dataclasses import dataclass

from appliance.errors import PeerError
from appliance.kafka.offsets import Partition
from appliance.kafka.records import Record, body, key_and_value

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Position:
    """The state of one source partition after the transaction that wrote it.

    ``next_offset`` is the first source offset not yet copied; ``records`` and ``bytes`` count all that was ever
    copied; ``timestamp`` is that of the newest record copied, in milliseconds, -1 before the first one;
    ``leader_epoch`` is that of the last batch read, -1 before the first one.
    """

    source_id: uuid.UUID
    destination_id: uuid.UUID
    next_offset: int
    leader_epoch: int = -1
    records: int = 0
    bytes: int = 0
    timestamp: int = -1


def encode(partition: Partition, position: Position, now: int) -> Record:
    """The record that remembers ``position``; ``now`` is its timestamp in milliseconds."""
    key = json.dumps({"topic": partition[0], "partition": partition[1]}, separators=(",", ":"))
    value = json.dumps(
        {
            "version": _VERSION,
            "source_id": position.source_id.hex,
            "destination_id": position.destination_id.hex,
            "next_offset": position.next_offset,
            "leader_epoch": position.leader_epoch,
            "records": position.records,
            "bytes": position.bytes,
            "timestamp": position.timestamp,
        },
        separators=(",", ":"),
    )
    return Record(0, now, body(key.encode(), value.encode()))


def decode(record: Record) -> tuple[Partition, Position]:
    """What a record remembers.

    Raises:
        PeerError: somebody else has written to the positions topic, or a newer appliance has.
    """
    key_bytes, value_bytes = key_and_value(record.body)
    try:
        key, value = json.loads(key_bytes or b""), json.loads(value_bytes or b"")
        if value["version"] != _VERSION:
            raise PeerError(
                f"the position at offset {record.offset} was written by another version: {value['version']}"
            )
        position = Position(
            source_id=uuid.UUID(value["source_id"]),
            destination_id=uuid.UUID(value["destination_id"]),
            next_offset=int(value["next_offset"]),
            leader_epoch=int(value["leader_epoch"]),
            records=int(value["records"]),
            bytes=int(value["bytes"]),
            timestamp=int(value["timestamp"]),
        )
        return (str(key["topic"]), int(key["partition"])), position
    except (ValueError, KeyError, TypeError) as error:
        raise PeerError(f"the positions topic holds something else at offset {record.offset}: {error!r}") from error
