"""Batches as the SQL gets and gives them, and their records."""

from collections.abc import Sequence

import numpy as np

from appliance.kafka.records.arrays.encoding import cuts
from appliance.kafka.records.batch import split
from appliance.kafka.records.outgoing import Outgoing
from appliance.kafka.records.rebuild import add_runs
from appliance.kafka.records.records import Record, body_of, newest, pack, unpack

Headers = Sequence[tuple[bytes, bytes | None]]

_OVERHEAD = 29


def record(
    offset: int, value: bytes | None, *, key: bytes | None = None, timestamp: int = 1000, headers: Headers = ()
) -> Record:
    """A record with these fields."""
    return Record(offset, timestamp, body_of(key, value, headers))


def outgoing_of(records: Sequence[Record], end: int, codec: int = 0) -> tuple[Outgoing, ...]:
    """The records in batches, up to the source offset ``end``."""
    batches: list[Outgoing] = []
    begins = cuts(np.array([_OVERHEAD + len(each.body) for each in records], np.int64), 2**30)
    for first, last in zip(begins, [*begins[1:], len(records)], strict=False):
        part = records[first:last]
        runs: list[tuple[int, int]] = []
        add_runs(runs, [each.offset for each in part])
        following, holes = records[last].offset if last < len(records) else end, tuple(runs) if len(runs) > 1 else ()
        numbers = len(part), part[0].offset, following, newest(part)
        batches.append(Outgoing(pack(part, codec), *numbers, raw=False, runs=holes))
    return tuple(batches)


def records_of(batches: Sequence[Outgoing]) -> list[Record]:
    """The records in batches, at their source offsets."""
    found: list[Record] = []
    for batch in batches:
        (whole,) = split(batch.data)
        runs = batch.runs or ((batch.first_offset, batch.records),)
        offsets = (offset for first, length in runs for offset in range(first, first + length))
        found += [each._replace(offset=at) for at, each in zip(offsets, unpack(whole, 0), strict=True)]
    return found
