import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import ApplianceError, BatchCorrupt
from appliance.kafka.records import batch
from appliance.kafka.records.batch import HEADER_SIZE, NO_END, Batch
from appliance.kafka.records.outgoing import Outgoing, outgoing
from appliance.kafka.records.rebuild import rebuild
from appliance.kafka.records.records import Record, batch_of, body, key_and_value, pack, unpack
from appliance.kafka.records.varint import varint
from tests.support.batches import made, only, patched, stamped, with_holes

NOW = 1_700_000_000_000
EARLY, LATE = -9_000_000_000_000_000_000, 9_000_000_000_000_000_000
FAR_APART = pytest.mark.parametrize(
    "times", [[EARLY, LATE], [LATE, EARLY], [-1, 2**63 - 1], [-(2**63), 2**63 - 1], [LATE, -5, EARLY, 1_000]]
)
CODECS = [0, 1, 2, 3, 4]


def plain(count: int, text: str = "v") -> list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]]:
    return [(NOW + n, b"k%d" % n, f"{text} {n}".encode(), [("h", b"1"), ("h", b"")]) for n in range(count)]


def written(*batches: bytes, position: int = 0, end: int = NO_END) -> list[Outgoing]:
    return list(outgoing(batch.split(b"".join(batches)), position, end=end))


def records(out: Outgoing) -> list[Record]:
    """The records that a consumer would see after a broker has taken the batch."""
    sent = stamped(out.data)
    batch.verify(sent)
    assert sent.header.records == sent.header.last_offset_delta + 1 == out.records
    assert sent.header.max_timestamp == max(record.timestamp for record in unpack(sent, 0))
    return unpack(sent, 0)


def contents(outs: list[Outgoing]) -> list[tuple[int, bytes]]:
    return [(record.timestamp, record.body) for out in outs for record in records(out)]


@pytest.mark.parametrize("codec", CODECS)
def test_a_large_batch_goes_raw_in_every_codec(codec: int) -> None:
    data = made(plain(100), 40, codec)
    (out,) = written(data, position=40)
    assert out.raw
    assert (out.first_offset, out.next_offset, out.records) == (40, 140, 100)
    assert bytes(out.data) == data


@pytest.mark.parametrize("codec", CODECS)
def test_a_start_in_mid_batch_takes_the_rest_of_it(codec: int) -> None:
    data = made(plain(100), 40, codec)
    (out,) = written(data, position=90)
    assert not out.raw
    assert (out.first_offset, out.next_offset, out.records) == (90, 140, 50)
    assert contents([out]) == [(r.timestamp, r.body) for r in unpack(only(data), 0)][50:]
    assert out.data[22] & 7 == codec


def test_a_batch_wholly_before_the_position_is_not_written() -> None:
    assert written(made(plain(10), 0), position=10) == []


def test_a_batch_with_holes_is_rebuilt_without_them() -> None:
    data = with_holes(plain(3, "x"), [0, 5, 9], 100)
    (out,) = written(data)
    assert not out.raw
    assert (out.first_offset, out.next_offset, out.records) == (100, 110, 3)
    assert contents([out]) == [(r.timestamp, r.body) for r in unpack(only(data), 0)]


def test_a_batch_whose_last_records_were_compacted_away_moves_the_position_past_them() -> None:
    (out,) = written(with_holes(plain(2, "x"), [0, 1], 100, last_offset_delta=40))
    assert out.next_offset == 141


def test_log_append_time_becomes_each_records_own_time() -> None:
    data = made(plain(50), attributes=0x08, max_timestamp=NOW + 999)
    (out,) = written(data)
    assert {timestamp for timestamp, _ in contents([out])} == {NOW + 999}
    assert out.data[22] & 0x08 == 0


def test_tiny_batches_of_one_codec_become_one() -> None:
    batches = [made(plain(2, f"b{n}"), 2 * n, codec=3) for n in range(20)]
    (out,) = written(*batches)
    assert not out.raw
    assert (out.first_offset, out.next_offset, out.records) == (0, 40, 40)
    assert contents([out]) == [(r.timestamp, r.body) for data in batches for r in unpack(only(data), 0)]


def test_large_batches_with_holes_in_a_row_become_one_as_well() -> None:
    deltas = [*range(20), *range(30, 50)]
    batches = [with_holes(plain(40, f"b{n}"), deltas, 50 * n) for n in range(3)]
    (out,) = written(*batches)
    assert (out.first_offset, out.next_offset, out.records) == (0, 150, 120)
    assert contents([out]) == [(r.timestamp, r.body) for data in batches for r in unpack(only(data), 0)]


def test_a_change_of_codec_or_a_large_batch_ends_a_run_and_order_stays() -> None:
    batches = [
        made(plain(1, "a"), 0, codec=3),
        made(plain(1, "b"), 1, codec=0),
        made(plain(100, "c"), 2, codec=0),
        made(plain(1, "d"), 102, codec=0),
        made(plain(1, "e"), 103, codec=0),
    ]
    outs = written(*batches)
    assert [(out.first_offset, out.next_offset, out.raw) for out in outs] == [
        (0, 1, True),
        (1, 2, True),
        (2, 102, True),
        (102, 104, False),
    ]
    assert contents(outs) == [(r.timestamp, r.body) for data in batches for r in unpack(only(data), 0)]


def test_an_empty_batch_that_compaction_left_is_not_written() -> None:
    assert written(patched(made(plain(1), 7)[:61], length=49, records=0)) == []


def test_a_wrong_crc_is_never_forwarded() -> None:
    with pytest.raises(BatchCorrupt, match="offset 7"):
        written(made(plain(100), 7, crc=1))


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_garbage_under_a_right_crc_is_corrupt_when_it_must_be_opened(codec: int) -> None:
    data = made(plain(3), 0, codec)
    garbage = patched(data[:61] + bytes(len(data) - 61))
    with pytest.raises(BatchCorrupt):
        written(garbage, position=1)


def test_a_batch_with_fewer_or_more_records_than_it_says_is_corrupt() -> None:
    data = made(plain(3))
    for count in (2, 4):
        with pytest.raises(BatchCorrupt):
            written(patched(data, records=count, last_offset_delta=count - 1), position=1)


def test_null_and_empty_keys_and_values_and_time_minus_1_are_kept() -> None:
    rows = [(-1, None, None, []), (-1, b"", b"", []), (NOW, b"k", None, [("é", b"\xff")])]
    outs = written(made(rows[:2], 0), made(rows[2:], 2))
    assert [key_and_value(body) for _, body in contents(outs)] == [(None, None), (b"", b""), (b"k", None)]
    assert [timestamp for timestamp, _ in contents(outs)] == [-1, -1, NOW]


field = st.none() | st.binary(max_size=80)
row = st.tuples(
    st.integers(-1, 2**45), field, field, st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=3)
)


@given(st.lists(st.tuples(st.lists(row, min_size=1, max_size=40), st.sampled_from(CODECS)), max_size=6), st.data())
def test_whatever_the_batches_no_record_is_lost_doubled_or_changed(
    parts: list[tuple[list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]], int]], data: st.DataObject
) -> None:
    batches, offset = [], 0
    for rows, codec in parts:
        batches.append(made(rows, offset, codec))
        offset += len(rows)
    position = data.draw(st.integers(0, offset))
    expected = [r for b in batches for r in unpack(only(b), position)]
    outs = written(*batches, position=position)
    assert contents(outs) == [(record.timestamp, record.body) for record in expected]
    assert sum(out.records for out in outs) == offset - position
    cut = data.draw(st.integers(position, offset))
    before, after = written(*batches, position=position, end=cut), written(*batches, position=cut)
    assert contents(before) + contents(after) == contents(outs)
    assert not before or before[-1].next_offset <= cut


@pytest.mark.parametrize(("number", "refused"), [(0, (10, 11)), (2, (14, 15)), (None, (10, 16)), (4, (10, 16))])
def test_a_refused_batch_names_the_record_of_a_number_or_itself(number: int | None, refused: tuple[int, int]) -> None:
    (out,) = written(with_holes(plain(3), [0, 1, 4], 10), made(plain(1), 15))
    assert out.records == 4
    assert out.refused(number) == range(*refused)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_no_bytes_make_anything_but_our_own_errors(noise: bytes, tail: bytes) -> None:
    good = made(plain(3))
    for data in (noise, good[:17] + noise, patched(good[:61] + tail, length=49 + len(tail))):
        with contextlib.suppress(ApplianceError):
            written(data, position=1)


@pytest.mark.parametrize("codec", [1, 2, 4])
def test_case_951_tiny_batches_that_are_large_uncompressed_go_raw(codec: int) -> None:
    # Five batches of a few KB were decompressed together, to be joined as one.
    large = [made([(NOW, None, bytes(5 * 2**20), [])], n, codec) for n in range(5)]
    small = [made(plain(2), 5 + 2 * n, codec) for n in range(3)]
    outs = written(*large, *small)
    assert [bytes(out.data) for out in outs if out.raw] == [*large, *small]
    assert sum(out.records for out in outs) == 11


def test_case_952_a_batch_that_must_be_rebuilt_and_is_too_large_is_named() -> None:
    data = made([(NOW, None, bytes(2**20), []) for _ in range(70)], 0, 4)
    with pytest.raises(BatchCorrupt, match="the batch at offset 0 does not decompress: it takes more than"):
        written(data, position=1)
    assert written(data)[0].raw


@FAR_APART
def test_case_1020_tiny_batches_that_are_joined_keep_times_that_are_far_apart(times: list[int]) -> None:
    # The differences took 65 bits, of which Java reads 64: both times were others at the destination.
    source = [stamped(pack([Record(0, time, body(b"k", b"v"))], 0)).data for time in times]
    (sent,) = written(*(patched(bytes(data), base_offset=number) for number, data in enumerate(source)))
    assert times_in_java(stamped(sent.data)) == times


@FAR_APART
def test_case_1020_a_batch_whose_times_are_far_apart_is_read_as_by_java(times: list[int]) -> None:
    deltas = [varint((time - times[0] + 2**63) % 2**64 - 2**63) for time in times]
    parts = [b"\0" + delta + varint(number) + body(b"k", b"v") for number, delta in enumerate(deltas)]
    payload = b"".join(varint(len(each)) + each for each in parts)
    batch = stamped(batch_of(memoryview(payload), 0, len(times), times[0], max(times)))
    assert times_in_java(batch) == times
    assert [record.timestamp for record in unpack(batch, 0)] == times
    rebuilt = rebuild([batch], range(NO_END))
    assert rebuilt is not None
    assert times_in_java(stamped(rebuilt.data)) == times


def java_long(data: memoryview, at: int) -> tuple[int, int]:
    """As Kafka's ByteUtils.readVarlong: what is above 64 bits is lost."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            value &= 2**64 - 1
            return (value >> 1) ^ -(value & 1), at


def java_sum(one: int, other: int) -> int:
    return (one + other + 2**63) % 2**64 - 2**63


def times_in_java(batch: Batch) -> list[int]:
    """The times of a batch's records, as Kafka's DefaultRecord reads them."""
    found, at = [], HEADER_SIZE
    for _ in range(batch.header.records):
        size, begin = java_long(batch.data, at)
        found.append(java_sum(batch.header.base_timestamp, java_long(batch.data, begin + 1)[0]))
        at = begin + size
    return found


def test_case_1023_a_refused_batch_takes_no_memory_by_the_number_of_records_that_it_claims() -> None:
    claims = Outgoing(b"", 2**31 - 1, 7, 2**31 + 6, 0, raw=True)
    assert claims.refused(None) == claims.refused(2**31 - 1) == range(7, 2**31 + 6)
    assert claims.refused(2**30) == range(2**30 + 7, 2**30 + 8)
