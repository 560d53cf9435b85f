"""Random records through rows and back, cut anywhere: the arrays make of them what plain lists do, record by record."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.engine.model.ranges import Range
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.arrays import encoding
from appliance.kafka.records.batch import HEADER_SIZE
from appliance.kafka.records.outgoing import Outgoing
from appliance.kafka.records.records import Record, body_of
from appliance.sql.flight import row_writer
from appliance.sql.flight.messages import LEAD, decode, decode_batches, encode_done
from appliance.sql.flight.row_reader import Confirmed, RowReader
from appliance.sql.flight.row_writer import RowWriter
from appliance.sql.model.statement import END, GROWN, LEFT_OUT, OPAQUE, OUTCOME, PASSES, RANGE, TEXTS
from tests.support.record_batches import outgoing_of, records_of

_LIMIT = HEADER_SIZE + 200
_MANY_HEADERS = 40

_BYTES = st.none() | st.binary(max_size=60) | st.just(b"\xff\0")
_HEADERS = st.lists(st.tuples(st.binary(max_size=3), _BYTES), max_size=2)
_ROWS = [RANGE, "offset", "timestamp", *TEXTS.values()]


class Given(NamedTuple):
    """A record of a history, behind a hole of so many offsets, and what the SQL makes of it."""

    hole: int
    timestamp: int
    body: bytes
    outcome: int | None


class Part(NamedTuple):
    """Records in batches of so ``many``, and their range, without some of them ``before`` and ``after`` it."""

    records: list[Given]
    many: int
    before: int
    after: int


class Sizes(NamedTuple):
    """The bytes and rows at once, small, so that every border is met."""

    gathered: int
    laid_out: int
    rows: int
    returned: int
    weight: int


_GIVEN = st.builds(
    Given,
    st.sampled_from([0, 0, 1, 2**33]),
    st.integers(-1, 2**61),
    st.builds(body_of, _BYTES, _BYTES, _HEADERS | st.just([(b"h", b"1")] * _MANY_HEADERS)),
    st.sampled_from([PASSES, PASSES, PASSES, LEFT_OUT, None, GROWN]),
)
_PART = st.builds(Part, st.lists(_GIVEN, max_size=12), st.integers(1, 5), st.integers(0, 2), st.integers(0, 2))
_SIZES = st.builds(
    Sizes,
    st.sampled_from([1, 200, 10**6]),
    st.integers(1, 20),
    st.integers(1, 10),
    st.integers(1, 30),
    st.integers(1, 3),
)


def range_of(part: Part) -> tuple[Range, list[tuple[Record, int | None]]]:
    """The range, and its records with their outcomes."""
    records: list[Record] = []
    for each in part.records:
        offset = (records[-1].offset + 1 if records else 0) + each.hole
        records.append(Record(offset, each.timestamp, each.body))
    ends = [record.offset for record in records] + [records[-1].offset + 1 if records else 5]
    first, last = min(part.before, len(records)), max(len(records) - part.after, min(part.before, len(records)))
    batches = [
        batch
        for at in range(0, len(records), part.many)
        for batch in outgoing_of(records[at : at + part.many], ends[min(at + part.many, len(records))])
    ]
    outcomes = [each.outcome for each in part.records]
    whole = Range(Partition("orders", 0), ends[first] if records else 0, ends[last], tuple(batches), _LIMIT)
    return whole, [*zip(records, outcomes, strict=True)][first:last]


def rows_of(ranges: Sequence[Range], headers: str, weight: int) -> pa.Table:
    writer = RowWriter([*_ROWS, headers, END], "", weight)
    rows: list[pa.RecordBatch] = []
    for number, each in enumerate(ranges):
        for batch in each.batches:
            rows += writer.add(number, each, batch)
        rows += writer.mark(number, each)
    return pa.Table.from_batches([*rows, *writer.rest()])


def returned(rows: pa.Table, outcomes: Sequence[int | None], size: int) -> list[pa.RecordBatch]:
    """The rows as the SQL returns them, in batches of this size."""
    records = iter(outcomes)
    made = [next(records) if end is None else end for end in rows.column(END).to_pylist()]
    kept = pa.array([number for number, outcome in enumerate(made) if outcome != LEFT_OUT], pa.int64())
    table = rows.drop_columns([END]).append_column(OUTCOME, pa.array(made, pa.int64())).take(kept)
    batches: list[pa.RecordBatch] = table.combine_chunks().to_batches(max_chunksize=size)
    return batches


def expected(records: Sequence[tuple[Record, int | None]], *, stops: bool) -> tuple[bool, list[int], list[Record]]:
    """True if a record has grown, the offsets of those that fail, and those that are written."""
    failed, kept = [], []
    for record, outcome in records:
        if outcome is None and not (stops and failed):
            failed.append(record.offset)
        elif outcome == PASSES and not (stops and failed):
            kept.append(record)
    return (True, [], []) if any(outcome == GROWN for _, outcome in records) else (False, failed, kept)


def written(confirmed: Confirmed) -> tuple[Outgoing, ...]:
    """Its batches, as the process of the lanes gets them in a message."""
    message = memoryview(encode_done(*confirmed))
    head, _ = LEAD.unpack_from(message)
    begin, data = LEAD.size, LEAD.size + head
    batches, _ = decode_batches(decode(bytes(message[begin:data]))["batches"], message[data:])
    return batches


def check(batches: Sequence[Outgoing], whole: Range) -> None:
    """Check that each batch is no larger than it may be, and follows the one before."""
    following = [*(batch.first_offset for batch in batches[1:]), whole.end]
    assert [batch.next_offset for batch in batches] == following[: len(batches)]
    for batch in batches:
        assert batch.records == 1 or len(batch.data) <= _LIMIT
        assert batch.max_timestamp == max(record.timestamp for record in records_of([batch]))


@settings(max_examples=60, deadline=None)
@given(st.lists(_PART, min_size=1, max_size=3), _SIZES, st.sampled_from([OPAQUE, "headers"]), st.booleans())
def test_records_come_out_as_they_went_in_wherever_rows_and_batches_are_cut(
    parts: list[Part], sizes: Sizes, headers: str, stops: bool
) -> None:
    ranges, records = zip(*map(range_of, parts), strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_writer, "_GATHERED_BYTES", sizes.gathered)
        patch.setattr(row_writer, "_LAID_OUT_ROWS", sizes.laid_out)
        patch.setattr(row_writer, "ROWS_AT_ONCE", sizes.rows)
        patch.setattr(encoding, "BATCH_BYTES", _LIMIT)
        rows = rows_of(ranges, headers, sizes.weight)
        bounds = [{"start": each.start, "end": each.end, "codec": 0, "limit": each.limit} for each in ranges]
        reader = RowReader(bounds, stops=stops, weight=sizes.weight)
        outcomes = [outcome for own in records for _, outcome in own]
        found = [each for batch in returned(rows, outcomes, sizes.returned) for each in reader.read(batch)]
    assert [each.number for each in found] == [*range(len(ranges))]
    for confirmed, whole, own in zip(found, ranges, records, strict=True):
        batches = written(confirmed)
        assert (confirmed.grown, [*confirmed.failed], records_of(batches)) == expected(own, stops=stops)
        check(batches, whole)
