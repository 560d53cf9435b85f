"""The rows of ranges for Spark, and back: no batch of them is large, and none is taken for another's."""

import itertools
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from appliance.engine.model.ranges import WEIGHT_MAX, Range
from appliance.errors import PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, body_of, fields_of
from appliance.spark.configuration import ROWS_AT_ONCE
from appliance.sql.flight.messages import LEAD, decode, decode_batches, encode_done
from appliance.sql.flight.row_reader import Confirmed, RowReader
from appliance.sql.flight.row_writer import RangeDamaged, RowWriter
from appliance.sql.model.statement import END, GROWN, OPAQUE, OUTCOME, RANGE, TEXTS
from tests.support.record_batches import Headers, outgoing_of, record, records_of

_GIVEN = (RANGE, "offset", "timestamp", *TEXTS.values(), OPAQUE, END)
_BOUND = 6 * 2**20
"""The bytes of ``ROWS_AT_ONCE`` rows of 2 kB, and of one batch of records before and after them."""


def range_of(values: Sequence[bytes | None], headers: Headers = (), first: int = 0) -> Range:
    end = first + len(values)
    records = [record(first + at, value, headers=headers) for at, value in enumerate(values)]
    return Range(Partition("orders", 0), first, end, outgoing_of(records, end), 2**20)


def rows_of(ranges: Sequence[Range], weight: int = 1) -> Iterator[pa.RecordBatch]:
    writer = RowWriter(_GIVEN, "", weight)
    for number, each in enumerate(ranges):
        for batch in each.batches:
            yield from writer.add(number, each, batch)
        yield from writer.mark(number, each)
    yield from writer.rest()


def offsets_of(rows: pa.RecordBatch) -> list[int]:
    """The offsets of the records among the rows."""
    offsets: list[int] = rows.filter(rows.column(END).is_null()).column("offset").to_pylist()
    return offsets


def returned(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows as a statement that keeps all of them returns them."""
    outcomes = [1 if end is None else end for end in rows.column(END).to_pylist()]
    return rows.drop_columns([END]).append_column(OUTCOME, pa.array(outcomes, pa.int64()))


def with_outcome(rows: pa.RecordBatch, at: int, outcome: int | None) -> pa.RecordBatch:
    """The rows with another outcome at an offset."""
    given = zip(rows.column("offset").to_pylist(), rows.column(OUTCOME).to_pylist(), strict=True)
    outcomes = [outcome if offset == at else before for offset, before in given]
    return rows.set_column(rows.schema.get_field_index(OUTCOME), OUTCOME, pa.array(outcomes, pa.int64()))


def read(ranges: Sequence[Range], batches: Sequence[pa.RecordBatch], weight: int = 1) -> list[Confirmed]:
    bounds = [{"start": each.start, "end": each.end, "codec": 0, "limit": each.limit} for each in ranges]
    reader = RowReader(bounds, stops=True, weight=weight)
    return [confirmed for batch in batches for confirmed in reader.read(batch)]


def records_in(confirmed: Confirmed) -> list[tuple[int, bytes | None, list[tuple[bytes, bytes | None]]]]:
    message = encode_done(*confirmed)
    head, _ = LEAD.unpack_from(message)
    data = memoryview(message)[LEAD.size :]
    batches, _ = decode_batches(decode(bytes(data[:head]))["batches"], data[head:])
    found = [(each.offset, *fields_of(each.body)) for each in records_of(batches)]
    return [(offset, value, headers) for offset, _, value, headers in found]


@pytest.mark.parametrize("size", [0, 500, 2_500, 100_000, 2_000_000])
def test_no_rows_that_spark_gathers_are_larger_than_it_may_hold(size: int) -> None:
    count = min(3 * ROWS_AT_ONCE, 40_000_000 // (size + 1))
    batches = rows_of([range_of([bytes(size)] * count)])
    sizes = [
        len(value or b"") for rows in batches for value in rows.column(TEXTS["value"]).view(pa.binary()).to_pylist()
    ]
    held = (sum(sizes[at : at + ROWS_AT_ONCE]) for at in range(0, len(sizes), 100))
    assert max(held) <= max(_BOUND, size)


def test_ranges_come_back_with_their_large_records_and_headers_that_are_no_text() -> None:
    headers = [(b"h\xff", b"1"), (b"", None)]
    ranges = [
        range_of([b"a", bytes(70_000), b"c", None], headers),
        range_of([], first=9),
        range_of([b"z"] * 5_000, first=20),
    ]
    first, nothing, last = read(ranges, [returned(rows) for rows in rows_of(ranges)])
    assert records_in(first) == [(at, value, headers) for at, value in enumerate([b"a", bytes(70_000), b"c", None])]
    assert (first.number, nothing.number, nothing.batches, last.number) == (0, 1, [], 2)
    assert [offset for offset, _, _ in records_in(last)] == list(range(20, 5_020))


@pytest.mark.parametrize("column", [RANGE, "offset"])
def test_rows_of_another_range_or_in_another_order_are_refused(column: str) -> None:
    ranges = [range_of([b"a", b"b"]), range_of([b"c"], first=2)]
    (rows,) = rows_of(ranges)
    swapped = pa.array(rows.column(column).to_pylist()[::-1], rows.schema.field(column).type)
    rows = rows.set_column(rows.schema.get_field_index(column), column, swapped)
    with pytest.raises(PeerError, match="rows of another range, or in another order"):
        read(ranges, [returned(rows)])


def test_an_end_mark_that_is_changed_is_refused() -> None:
    ranges = [range_of([b"a"])]
    (rows,) = rows_of([Range(Partition("orders", 0), 0, 2, ranges[0].batches, 2**20)])
    with pytest.raises(PeerError, match="changed an end mark"):
        read(ranges, [returned(rows)])


def test_case_501_no_record_after_the_one_that_stops_a_range_is_written() -> None:
    # Where it was among the first rows, later rows were written, and copied once more afterwards.
    whole = range_of([b"x"] * (3 * ROWS_AT_ONCE))
    batches = [returned(rows) for rows in rows_of([whole])]
    batches[0] = with_outcome(batches[0], 100, None)
    (confirmed,) = read([whole], batches)
    assert confirmed.failed == [100]
    assert [offset for offset, _, _ in records_in(confirmed)] == list(range(100))


def test_a_range_with_a_record_that_has_grown_is_told_so_and_the_next_one_is_whole() -> None:
    ranges = [range_of([b"x"] * (2 * ROWS_AT_ONCE)), range_of([b"y"], first=9_000)]
    batches = [returned(rows) for rows in rows_of(ranges)]
    batches[0] = with_outcome(batches[0], 100, GROWN)
    first, second = read(ranges, batches)
    assert (first.grown, first.batches, first.failed) == (True, (), ())
    assert (second.grown, [value for _, value, _ in records_in(second)]) == (False, [b"y"])


def test_a_record_that_has_grown_beyond_the_largest_room_fails() -> None:
    ranges = [range_of([b"x"] * 3)]
    batches = [returned(rows) for rows in rows_of(ranges, WEIGHT_MAX)]
    assert sum(rows.num_rows for rows in batches) == 3 * WEIGHT_MAX + 1
    batches = [with_outcome(rows, 1, GROWN) for rows in batches]
    (confirmed,) = read(ranges, batches, WEIGHT_MAX)
    assert (confirmed.grown, confirmed.failed) == (False, [1])
    assert [offset for offset, _, _ in records_in(confirmed)] == [0]


def test_case_570_records_that_count_as_many_rows_each_are_not_laid_out_all_at_once() -> None:
    ranges = [range_of([b"x"] * 1_000)]
    batches = rows_of(ranges, WEIGHT_MAX)
    before = pa.total_allocated_bytes()
    assert [rows.num_rows for rows in itertools.islice(batches, 3)] == [ROWS_AT_ONCE] * 3
    assert pa.total_allocated_bytes() - before < _BOUND
    assert sum(rows.num_rows for rows in batches) == (1_000 - 3) * WEIGHT_MAX + 1
    found = (offset for rows in rows_of(ranges, WEIGHT_MAX) for offset in offsets_of(rows))
    assert [*found] == [*range(1_000)]


def test_case_571_a_length_of_too_many_bytes_among_many_headers_is_damage_of_its_range() -> None:
    body = body_of(None, b"x", [(b"h", b"1")] * 40)
    damaged = body[:-4] + b"\xff" * 11 + body[-4 + 1 :]
    batches = outgoing_of([Record(5, 1000, damaged)], 6)
    whole = Range(Partition("orders", 0), 0, 6, batches, 2**20)
    with pytest.raises(RangeDamaged, match="offset 5 do not fit"):
        [*rows_of([whole])]
