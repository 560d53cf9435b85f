"""The offset map as records.

The tail of a partition's map travels with its position, as the header ``offsets``, so that it commits with the copies;
big-endian::

    version u8 | source from u64 | source to u64 | copy from u64 | copy to u64 | groups of runs

Older parts lie in the topic ``<replicator>.offsets``, which is compacted and has a partition for each lane. Keys and
values are JSON::

    {"topic", "partition", "from"}   a segment, by the source partition and the first offset of the copy
    {"version", "source_id", "destination_id", "source": [from, to], "copy": [from, to], "runs", "fills"}

``runs`` are groups of runs, by zlib and base64 (``offset_runs``); ``to`` is exclusive.
"""

import base64
import json
import struct
import zlib
from collections.abc import Mapping
from uuid import UUID

from appliance.errors import BatchCorrupt
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.decompression import inflate
from appliance.kafka.records.records import Record, body, key_and_value
from appliance.link.model.json_records import fields, partition_of, reading, text, versioned, whole
from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_tail import OffsetTail, unpack_tail

_VERSION = 1
_HEADER = "offsets"
_BOUNDS = struct.Struct(">BQQQQ")
_LEVEL = 1
_TOPIC = "the map of offsets"
_SEGMENT_MAX = 16 * 1024
"""Most bytes of a segment's groups: twice those of a full one."""

SegmentKey = tuple[Partition, int]
"""A source partition, and the offset of its copy at which a segment begins."""


def tail_headers(tail: OffsetTail | None) -> tuple[tuple[str, bytes], ...]:
    """The headers of a position with this tail."""
    if tail is None:
        return ()
    bounds = _BOUNDS.pack(_VERSION, tail.source_from, tail.source_to, tail.copy_from, tail.copy_to)
    return ((_HEADER, bounds + tail.packed),)


def tail_of(headers: Mapping[str, bytes | None]) -> OffsetTail | None:
    """The tail in the headers of a position; None of an older release's position, or of a newer format.

    Also None if the bytes are not a tail: a position holds without its map.
    """
    content = headers.get(_HEADER)
    if not content:
        return None
    try:
        version, source_from, source_to, copy_from, copy_to = _BOUNDS.unpack_from(content)
        if version != _VERSION:
            return None
        return unpack_tail(source_from, copy_from, source_to, copy_to, content[_BOUNDS.size :])
    except (struct.error, IndexError, BatchCorrupt):
        return None


def encode_segment(partition: Partition, segment: Segment, now: int) -> Record:
    """The record that remembers a segment; ``now`` is its timestamp in milliseconds."""
    extent = segment.range
    value = {
        "version": _VERSION,
        "source_id": segment.source_id.hex,
        "destination_id": segment.destination_id.hex,
        "source": [extent.source_from, extent.source_to],
        "copy": [extent.copy_from, extent.copy_to],
        "runs": base64.b64encode(zlib.compress(extent.packed, _LEVEL)).decode(),
    }
    if segment.fills:
        value["fills"] = True
    return Record(0, now, body(_key((partition, extent.copy_from)), json.dumps(value, separators=(",", ":")).encode()))


def encode_dropped(key: SegmentKey, now: int) -> Record:
    """The record that deletes a segment."""
    return Record(0, now, body(_key(key), None))


def decode_segment(record: Record) -> tuple[SegmentKey, Segment | None]:
    """Decode a segment; None for a tombstone.

    Raises:
        PeerError: a foreign writer or a newer appliance has written to the topic.
    """
    of = segment_key(record)
    _, value_bytes = key_and_value(record.body)
    if value_bytes is None:
        return of, None
    with reading(_TOPIC, record):
        value = versioned(value_bytes, _TOPIC, record.offset, [_VERSION])
        (source, source_to), (copy, copy_to) = (map(whole, value[side]) for side in ("source", "copy"))
        runs = inflate(base64.b64decode(text(value["runs"]), validate=True), _SEGMENT_MAX)
        extent = unpack_tail(source, copy, source_to, copy_to, runs)
        ids = UUID(value["source_id"]), UUID(value["destination_id"])
        return of, Segment(*ids, extent, bool(value.get("fills")))


def segment_key(record: Record) -> SegmentKey:
    """The key of a segment, without decoding the segment."""
    with reading(_TOPIC, record):
        key = fields(key_and_value(record.body)[0])
        return partition_of(key), whole(key["from"])


def decode_bounds(record: Record) -> tuple[SegmentKey, int | None]:
    """The key of a segment, and the offset at which its copies end; None for a tombstone."""
    of = segment_key(record)
    _, value_bytes = key_and_value(record.body)
    with reading(_TOPIC, record):
        return of, None if value_bytes is None else whole(fields(value_bytes)["copy"][1])


def _key(key: SegmentKey) -> bytes:
    (topic, partition), begin = key
    return json.dumps({"topic": topic, "partition": partition, "from": begin}, separators=(",", ":")).encode()
