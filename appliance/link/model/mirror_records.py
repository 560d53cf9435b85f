"""MirrorMaker 2's checkpoints and heartbeats, as its Java client reads them; no IO.

Big-endian; a string is its length as i16, then UTF-8::

    key of a checkpoint    group string, topic at the destination string, partition i32
    value of a checkpoint  version i16 = 0, upstream offset i64, downstream offset i64, metadata string
    key of a heartbeat     source cluster string, destination cluster string
    value of a heartbeat   version i16 = 0, time in milliseconds i64

The client reads uncommitted, from the beginning, and a null value breaks it: no transaction, and no tombstone. It does
not look at headers: a heartbeat of ours has one, ``way_ms``, the milliseconds that the heartbeat before it took.
"""

import struct
from dataclasses import dataclass

from appliance.errors import PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, body, headers, key_and_value
from appliance.link.model.json_records import count

_VERSION = 0
_LENGTH, _PARTITION = struct.Struct(">h"), struct.Struct(">i")
_CHECKPOINT, _HEARTBEAT = struct.Struct(">hqq"), struct.Struct(">hq")
_STRING_MAX = 2**15 - 1
_WAY = "way_ms"


@dataclass(frozen=True, slots=True)
class MirrorCheckpoint:
    """A group's offset in a source partition (``upstream``) and in its copy (``downstream``)."""

    group: str
    copy: Partition
    upstream: int
    downstream: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign that the path from ``source`` to ``destination`` works; ``at`` in milliseconds.

    ``way`` is the duration of the one before, in milliseconds; None if not measured.
    """

    source: str
    destination: str
    at: int
    way: int | None = None


def encode_checkpoint(checkpoint: MirrorCheckpoint, now: int) -> Record:
    """The record of a checkpoint; ``now`` is its timestamp in milliseconds.

    Metadata too long for the format are left out.
    """
    topic, partition = checkpoint.copy
    metadata = checkpoint.metadata if len(checkpoint.metadata.encode()) <= _STRING_MAX else ""
    key = _string(checkpoint.group) + _string(topic) + _PARTITION.pack(partition)
    value = _CHECKPOINT.pack(_VERSION, checkpoint.upstream, checkpoint.downstream) + _string(metadata)
    return Record(0, now, body(key, value))


def decode_checkpoint(record: Record) -> MirrorCheckpoint:
    """Decode a checkpoint.

    Raises:
        PeerError: it is none.
    """
    try:
        key, value = _key_and_value(record)
        group, at = _read_string(key, 0)
        topic, at = _read_string(key, at)
        (partition,) = _PARTITION.unpack_from(key, at)
        version, upstream, downstream = _CHECKPOINT.unpack_from(value)
        metadata, _ = _read_string(value, _CHECKPOINT.size)
        _require_version(version)
    except (ValueError, struct.error) as error:
        raise PeerError(f"no checkpoint of MirrorMaker 2 at offset {record.offset}: {error}") from error
    return MirrorCheckpoint(group, Partition(topic, partition), upstream, downstream, metadata)


def encode_heartbeat(heartbeat: Heartbeat) -> Record:
    """The record of a heartbeat."""
    key = _string(heartbeat.source) + _string(heartbeat.destination)
    way = () if heartbeat.way is None else ((_WAY, str(heartbeat.way).encode()),)
    return Record(0, heartbeat.at, body(key, _HEARTBEAT.pack(_VERSION, heartbeat.at), way))


def decode_heartbeat(record: Record) -> Heartbeat:
    """Decode a heartbeat.

    Raises:
        PeerError: it is none.
    """
    try:
        key, value = _key_and_value(record)
        source, at = _read_string(key, 0)
        destination, _ = _read_string(key, at)
        version, time = _HEARTBEAT.unpack_from(value)
        _require_version(version)
        return Heartbeat(source, destination, time, count(headers(record.body).get(_WAY)))
    except (ValueError, struct.error) as error:
        raise PeerError(f"no heartbeat of MirrorMaker 2 at offset {record.offset}: {error}") from error


def _key_and_value(record: Record) -> tuple[bytes, bytes]:
    key, value = key_and_value(record.body)
    if key is None or value is None:
        raise ValueError("its key or value is null")
    return key, value


def _require_version(version: int) -> None:
    if version != _VERSION:
        raise ValueError(f"version {version}")


def _string(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH.pack(len(encoded)) + encoded


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _LENGTH.unpack_from(data, at)
    end = at + _LENGTH.size + size
    if size < 0 or end > len(data):
        raise ValueError("a string ends too late")
    return data[at + _LENGTH.size : end].decode(), end
