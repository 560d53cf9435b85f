"""Records as columns, and columns as batches: byte for byte, with any content, codec and size."""

import random

import pytest

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import HEADER_SIZE, split
from appliance.kafka.records.columns import Columns, codec_of, decoded, encoded, placed
from appliance.kafka.records.records import Record, body_of, pack, unpack
from appliance.kafka.records.records import placed as placed_records

NOT_UTF8 = b"\xff\xfe"


def made(count: int, seed: int = 1, names: tuple[bytes, ...] = (b"a", b"b"), first_timestamp: int = 0) -> Columns:
    """Records with every kind of key, value and headers, and holes between their offsets."""
    chance = random.Random(seed)

    def some() -> bytes | None:
        return chance.choice([None, b"", chance.randbytes(chance.randint(1, 60))])

    offsets = [5 * number + chance.randint(0, 4) for number in range(count)]
    headers = [[(chance.choice(names), some()) for _ in range(chance.choice([0, 0, 1, 3]))] for _ in offsets]
    times = [first_timestamp + chance.randint(0, 10**9) for _ in offsets]
    return Columns(offsets, times, [some() for _ in offsets], [some() for _ in offsets], headers)


def records(columns: Columns) -> list[Record]:
    bodies = map(body_of, columns.keys, columns.values, columns.headers)
    return [Record(*fields) for fields in zip(columns.offsets, columns.timestamps, bodies, strict=True)]


@pytest.mark.parametrize("codec", range(5), ids=["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("names", [(b"a", b"b"), (NOT_UTF8, b"a")], ids=["UTF-8", "any bytes"])
@pytest.mark.parametrize("first", [0, -(10**9)], ids=["usual times", "negative times"])
def test_columns_become_batches_and_columns_again(codec: int, names: tuple[bytes, ...], first: int) -> None:
    columns = made(300, names=names, first_timestamp=first)
    again = Columns()
    batches = list(encoded(columns, codec, 8000, columns.offsets[-1] + 7))
    assert len(batches) > 1
    for batch in batches:
        assert len(batch.data) <= 8000
        assert codec_of(batch.data) == codec
        part = decoded(batch.data, batch.first_offset, batch.runs)
        assert (len(part), part.offsets[0], max(part.timestamps)) == (
            batch.records,
            batch.first_offset,
            batch.max_timestamp,
        )
        for held, more in zip(_lists(again), _lists(part), strict=True):
            held.extend(more)
        (whole,) = split(batch.data)
        assert [record.body for record in unpack(whole, 0)] == [record.body for record in records(part)]
    assert records(again) == records(columns)
    assert [batch.next_offset for batch in batches] == [
        *(batch.first_offset for batch in batches[1:]),
        columns.offsets[-1] + 7,
    ]


@pytest.mark.parametrize("names", [(b"a", b"b"), (NOT_UTF8, b"a")], ids=["UTF-8", "any bytes"])
@pytest.mark.parametrize("first", [0, -(10**9)], ids=["usual times", "negative times"])
def test_columns_at_their_own_offsets_are_the_batch_that_their_records_are(
    names: tuple[bytes, ...], first: int
) -> None:
    columns = made(300, names=names, first_timestamp=first)
    whole, same = placed(columns), placed_records(records(columns))
    assert (whole.header, bytes(whole.data)) == (same.header, bytes(same.data))
    assert unpack(whole, 0) == records(columns)


def _lists(columns: Columns) -> tuple[list[object], ...]:
    return columns.offsets, columns.timestamps, columns.keys, columns.values, columns.headers  # type: ignore[return-value]


def test_a_record_that_is_too_large_is_a_batch_of_its_own() -> None:
    columns = Columns([1, 2, 3], [0, 0, 0], [None] * 3, [b"a", b"x" * 5000, b"b"], [()] * 3)
    assert [batch.records for batch in encoded(columns, 0, 1000, 4)] == [1, 1, 1]


def test_records_from_one_offset_up_to_another_are_chosen() -> None:
    columns = made(50)
    inside = columns.within(columns.offsets[10], columns.offsets[20])
    assert records(inside) == records(columns)[10:20]
    assert not len(columns.within(10**6, 10**7))


def test_damaged_records_are_told_from_unusual_ones() -> None:
    data = bytearray(pack(records(made(20)), 0))
    data[HEADER_SIZE] ^= 0x7F
    with pytest.raises(BatchCorrupt):
        decoded(data, 0, ())
