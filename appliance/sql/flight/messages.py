"""The messages between the lane's process, the two ends of a job, and the driver, over a connection each.

A message is a JSON object and bytes beside it::

    length of the object u32 | length of the bytes u32 | object | bytes

The bytes of a batch are followed by its runs, two numbers of eight bytes each: a copy that leaves out every second
record has as many runs as records.

    source -> lane   {"role": "source", "attempt"}       asks for ranges, and waits for them
    lane -> source   {"ranges": [...], "weight"} + batches   see ``encode_ranges``; each record counts as so many rows
    source -> lane   {"damaged": range, "offset", "reason"}  its bytes cannot be read from there on
    sink -> lane     {"role": "sink", "attempt"}         the other end of the same attempt of a Spark task
    lane -> sink     {"ranges": [...], "stops", "weight"}    the same ranges, without batches
    sink -> lane     {"done": range, "failed": offsets, "grown", "batches"} + batches    its mark has arrived
    sink -> lane     {}                                  some rows have arrived
    driver -> lane   {"role": "driver"}
    driver -> lane   {"ended": reason, "of_record"}      a job has ended, well if the reason is empty
    lane -> driver   {}                                  taken in
    lane -> driver   {"ranges": [...]} + batches         a record that the SQL fails on, alone
    driver -> lane   {"reason", "offset"}                why it does
"""

import json
import struct
from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from appliance.engine.model.ranges import Range
from appliance.errors import PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import Outgoing, codec_of
from appliance.kafka.records.rebuild import Runs

LEAD = struct.Struct(">II")
_RUN_BYTES = 16

Fields = dict[str, Any]


def encode(fields: Mapping[str, Any], data: bytes = b"") -> bytes:
    """The message."""
    head = json.dumps(fields, separators=(",", ":")).encode()
    return b"".join((LEAD.pack(len(head), len(data)), head, data))


def decode(head: bytes) -> Fields:
    """A message's object."""
    try:
        fields = json.loads(head)
    except ValueError as error:
        raise PeerError(f"not a message: {error}") from error
    if not isinstance(fields, dict):
        raise PeerError("not a message")
    return fields


def encode_ranges(ranges: Sequence[Range], weight: int = 1) -> bytes:
    """The ranges with their batches, for the source."""
    runs = [[_run_bytes(batch.runs) for batch in each.batches] for each in ranges]
    described = [
        _described(each) | {"batches": _described_batches(each.batches, own)}
        for each, own in zip(ranges, runs, strict=True)
    ]
    parts = (_bytes(each.batches, own) for each, own in zip(ranges, runs, strict=True))
    return encode({"ranges": described, "weight": weight}, b"".join(parts))


def encode_bounds(ranges: Sequence[Range], *, stops: bool, weight: int) -> bytes:
    """The ranges without their batches, for the sink."""
    described = [_described(each) | {"codec": _codec(each), "limit": each.limit} for each in ranges]
    return encode({"ranges": described, "stops": stops, "weight": weight})


def decode_ranges(fields: Fields, data: memoryview) -> list[Range]:
    """The ranges with their batches."""
    ranges, at = [], 0
    for each in fields["ranges"]:
        batches, at = decode_batches(each["batches"], data, at)
        ranges.append(Range(Partition(each["topic"], each["partition"]), each["start"], each["end"], batches, 0))
    return ranges


def encode_done(
    number: int, batches: Sequence[Outgoing], runs: Sequence[bytes], failed: Sequence[int], grown: bool
) -> bytes:
    """The outcome of a range; ``runs`` are those of the batches, as in a message."""
    described = {"done": number, "failed": failed, "grown": grown, "batches": _described_batches(batches, runs)}
    return encode(described, _bytes(batches, runs))


def decode_batches(
    described: Sequence[Sequence[Any]], data: memoryview, at: int = 0
) -> tuple[tuple[Outgoing, ...], int]:
    """Batches, and where their bytes end."""
    batches = []
    for size, records, first, following, newest, raw, append_time, runs in described:
        end = at + size
        numbers = data[end : end + runs * _RUN_BYTES].cast("q").tolist()
        pairs = tuple(zip(numbers[::2], numbers[1::2], strict=True))
        counts = records, first, following, newest
        batches.append(Outgoing(data[at:end], *counts, raw=raw, runs=pairs, append_time=append_time))
        at = end + runs * _RUN_BYTES
    return tuple(batches), at


def _run_bytes(runs: Runs) -> bytes:
    return array("q", chain.from_iterable(runs)).tobytes()


def _bytes(batches: Sequence[Outgoing], runs: Sequence[bytes]) -> bytes:
    """The bytes of the batches, each followed by those of its runs."""
    return b"".join(chain.from_iterable(zip((batch.data for batch in batches), runs, strict=True)))


def _described(each: Range) -> Fields:
    topic, partition = each.partition
    return {"topic": topic, "partition": partition, "start": each.start, "end": each.end}


def _codec(each: Range) -> int:
    return next(filter(None, (codec_of(batch.data) for batch in each.batches if each.keeps_codec)), 0)


def _described_batches(batches: Sequence[Outgoing], runs: Sequence[bytes]) -> list[list[Any]]:
    return [
        [
            *(len(batch.data), batch.records, batch.first_offset, batch.next_offset, batch.max_timestamp),
            *(batch.raw, batch.append_time, len(own) // _RUN_BYTES),
        ]
        for batch, own in zip(batches, runs, strict=True)
    ]
