"""Many records at once as arrays: what ``records`` reads one by one, and what it would write."""

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import BatchCorrupt
from appliance.kafka.records.arrays import varints
from appliance.kafka.records.arrays.columns import columns_of, placed
from appliance.kafka.records.arrays.decoding import RecordMisfit, binary, fields, uncompressed
from appliance.kafka.records.arrays.encoding import BATCH_BYTES, Columns, batches, cuts
from appliance.kafka.records.arrays.headers import header_bytes, header_lists
from appliance.kafka.records.batch import ATTRIBUTES_AT, HEADER, HEADER_SIZE, LOG_APPEND_TIME, split
from appliance.kafka.records.records import Record, body_of, fields_of, pack, unpack
from appliance.kafka.records.records import placed as records_placed
from appliance.kafka.records.varint import varint
from appliance.sql.rows import headers_array, headers_of
from tests.support.record_batches import Headers, outgoing_of, record

NOT_UTF8 = b"\xff\xfe"
CODECS = pytest.mark.parametrize("codec", range(5), ids=["none", "gzip", "snappy", "lz4", "zstd"])
SIGNED = st.integers(-(2**63), 2**63 - 1)


def made(count: int, seed: int = 1, first_timestamp: int = 0, most_headers: int = 3) -> list[Record]:
    """Records with every kind of key, value and headers."""
    chance = random.Random(seed)

    def some() -> bytes | None:
        return chance.choice([None, b"", chance.randbytes(chance.randint(1, 300)), chance.randbytes(9_000)])

    def headers() -> Headers:
        return [(chance.choice([b"a", b"", NOT_UTF8]), some()) for _ in range(chance.choice([0, 0, 1, most_headers]))]

    times = [first_timestamp + chance.randint(0, 10**12) for _ in range(count)]
    return [Record(at, time, body_of(some(), some(), headers())) for at, time in enumerate(times)]


def read(data: Sequence[bytes]) -> list[Record]:
    """The records of batches as the arrays have them."""
    every = fields([uncompressed(each, 0) for each in data])
    rows = np.arange(len(every.timestamps))
    keys, values = (binary(every.data, places, rows).to_pylist() for places in (every.keys, every.values))
    bodies = map(body_of, keys, values, headers_of(header_lists(every, rows)))
    return [Record(*each) for each in zip(rows.tolist(), every.timestamps.tolist(), bodies, strict=True)]


def columns(records: Sequence[Record]) -> Columns:
    """The records as arrays; their headers by ``header_bytes``."""
    keys, values, headers = zip(*(fields_of(record.body) for record in records), strict=True)
    offsets, timestamps, _ = zip(*records, strict=True)
    fields = (*(pa.array(each, pa.binary()) for each in (keys, values)), header_bytes(headers_array(headers)))
    return Columns(np.array(offsets), np.array(timestamps), *fields)


@given(st.lists(SIGNED | st.integers(-70, 70), min_size=1))
def test_varints_are_those_of_one_by_one(numbers: list[int]) -> None:
    array = np.array(numbers, np.int64)
    assert varints.written(array).to_pylist() == [varint(number) for number in numbers]
    assert varints.sizes(array).tolist() == [len(varint(number)) for number in numbers]
    data = b"".join(map(varint, numbers))
    ends = np.cumsum(varints.sizes(array))
    found, behind = varints.read(np.frombuffer(data + bytes(10), np.uint8), ends - varints.sizes(array))
    assert (found.tolist(), behind.tolist()) == (numbers, ends.tolist())


@CODECS
@pytest.mark.parametrize("first", [0, -(10**13)], ids=["usual times", "negative times"])
def test_batches_are_read_as_one_by_one(codec: int, first: int) -> None:
    records = made(200, first_timestamp=first)
    assert read([pack(records[:150], codec), pack(records[150:], codec)]) == records


@CODECS
def test_batches_are_written_as_one_by_one(codec: int) -> None:
    records = made(200)
    some = batches(columns(records), [0, 1, 120], [codec] * 3)
    parts = [records[:1], records[1:120], records[120:]]
    assert [[(each.timestamp, each.body) for each in unpack(next(split(data)), 0)] for data in some] == [
        [(each.timestamp, each.body) for each in part] for part in parts
    ]
    plain = [batches(columns(part), [0], [0])[0] for part in parts]
    assert plain == [pack(part, 0) for part in parts]


@pytest.mark.parametrize("first", [0, -(10**13)], ids=["usual times", "negative times"])
def test_columns_at_their_own_offsets_are_the_batch_that_their_records_are(first: int) -> None:
    records = [each._replace(offset=7 + 5 * number) for number, each in enumerate(made(100, first_timestamp=first))]
    batches_of_both = outgoing_of(records, 10_000, codec=3)
    assert len(batches_of_both) > 1
    whole, same = placed(columns_of(batches_of_both).between(12, 400)), records_placed(records[1:79])
    assert (whole.header, bytes(whole.data)) == (same.header, bytes(same.data))


def test_a_damaged_batch_is_named_by_its_first_offset() -> None:
    first, second = (outgoing_of([record(at, b"x", headers=[(b"h", b"1")])], at + 1)[0] for at in (5, 9))
    broken = bytearray(second.data)
    broken[-5] ^= 0x70  # the number of headers
    with pytest.raises(BatchCorrupt, match="offset 9 do not fit"):
        columns_of([first, replace(second, data=bytes(broken))])


def test_many_headers_are_read_as_few() -> None:
    records = made(30, most_headers=70)
    assert read([pack(records, 0)]) == records


def test_the_brokers_time_is_that_of_every_record() -> None:
    data = bytearray(pack(made(3), 0))
    header = HEADER.unpack_from(data)
    data[ATTRIBUTES_AT + 1] |= LOG_APPEND_TIME
    assert [each.timestamp for each in read([pack(made(2), 0), bytes(data)])][2:] == [header[8]] * 3


def test_rows_without_a_record_are_null_and_have_no_headers() -> None:
    every = fields([uncompressed(pack([Record(0, 0, body_of(b"k", b"v", [(b"h", b"1")]))] * 2, 0), 0)])
    rows = np.array([-1, 0, -2, 1])
    assert binary(every.data, every.values, rows).to_pylist() == [None, b"v", None, b"v"]
    assert [*map(len, headers_of(header_lists(every, rows)))] == [0, 1, 0, 1]


@pytest.mark.parametrize("at", range(40))
def test_no_damaged_byte_is_read_beyond_its_record(at: int) -> None:
    """It is refused, or it is within a field, and then the one by one reading agrees."""
    records = [Record(0, 7, body_of(b"key", b"value", [(b"h", b"1"), (b"g", None)]))] * 2
    for byte in (0, 1, 2, 3, 0x7F, 0x80, 0xFF):
        data = bytearray(pack(records, 0))
        data[HEADER_SIZE + at % (len(data) - HEADER_SIZE)] = byte
        try:
            found = read([bytes(data)])
        except (BatchCorrupt, RecordMisfit):
            continue
        one_by_one = unpack(next(split(bytes(data))), -(2**63))
        assert [(each.timestamp, fields_of(each.body)) for each in found] == [
            (each.timestamp, fields_of(each.body)) for each in one_by_one
        ]


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_records_that_end_too_early_are_refused(cut: int) -> None:
    data = pack(made(5), 0)
    header = HEADER.unpack_from(data)
    short = HEADER.pack(header[0], header[1] - cut, *header[2:]) + data[HEADER_SIZE:-cut]
    with pytest.raises(BatchCorrupt, match="offset 77 do not fit"):
        uncompressed(short, 77)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=50), st.integers(100, 900))
def test_batches_are_as_large_as_they_may_be(sizes: list[int], limit: int) -> None:
    begins = cuts(np.array(sizes, np.int64), limit)
    parts = [sizes[first:end] for first, end in zip(begins, [*begins[1:], len(sizes)], strict=True)]
    assert [*itertools.chain.from_iterable(parts)] == sizes
    assert all(len(part) == 1 or sum(part) + HEADER_SIZE <= limit for part in parts)
    assert all(sum(part) + after[0] + HEADER_SIZE > limit for part, after in itertools.pairwise(parts))
    assert cuts(np.array([BATCH_BYTES] * 2), 2**30) == [0, 1]


def test_case_1020_times_that_are_far_apart_are_those_of_one_by_one() -> None:
    records = [Record(n, time, body_of(b"k", b"v", ())) for n, time in enumerate([-(2**63), 2**63 - 1, -1, 2**62])]
    assert read([pack(records, 0)]) == records
    assert bytes(placed(columns(records)).data) == bytes(records_placed(records).data)
    (written,) = batches(columns(records), [0], [0])
    assert unpack(next(split(written)), 0) == records
