import random
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import BatchCorrupt
from appliance.kafka.records import decompression
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.outgoing import outgoing
from appliance.kafka.records.records import Record, body, placed, unpack
from appliance.logs.model import comparison
from appliance.logs.model.comparison import Comparison, Difference, Pairing, Run
from appliance.logs.model.stream import Stream
from tests.support.batches import Written, made, only, patched, with_holes
from tests.support.logs import NOW, log, raw_copy, rows

CODECS = [0, 1, 2, 3, 4]
GZIP = 1
Compared = TypeVar("Compared", bound=Comparison)


def compared(
    source: list[Batch],
    copy: list[Batch],
    start: int = 0,
    comparer: type[Compared] = Comparison,  # type: ignore[assignment]
) -> tuple[Compared, Difference | None]:
    """The comparison of both, batch by batch."""
    ours, theirs = Stream(start), Stream(0)
    run = comparer(ours, theirs)
    difference = None
    for turn in range(max(len(source), len(copy))):
        ours.append(source[turn : turn + 1])
        theirs.append(copy[turn : turn + 1])
        difference = difference or run.advance()
    return run, difference


@pytest.mark.parametrize("codec", CODECS)
def test_raw_copies_are_equal_and_no_record_is_decoded(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = log(rows(100), 40, codec=codec)
    monkeypatch.setattr(comparison, "compiled", None)
    monkeypatch.setattr(comparison, "plain", None)
    run, difference = compared(source, raw_copy(source))
    assert difference is None
    assert run.records == 100


@pytest.mark.parametrize("codec", CODECS)
def test_the_same_records_in_other_batches_and_another_codec_are_equal(codec: int) -> None:
    run, difference = compared(log(rows(100), 1, 7, 40, codec=codec), log(rows(100), 33, 5, codec=3, gap=1))
    assert difference is None
    assert run.records == 100


def test_after_rebuilt_batches_whole_ones_are_compared_as_bytes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny, large = log(rows(10), 1), log(rows(100, 10), 100, first=10)
    opened: list[int] = []
    compiled = comparison.compiled
    monkeypatch.setattr(comparison, "compiled", lambda batch: opened.append(batch.header.records) or compiled(batch))
    run, difference = compared(tiny + large, log(rows(10), 10) + raw_copy(large, 11))
    assert difference is None
    assert run.records == 110
    assert 100 not in opened


def test_log_append_time_is_the_time_of_each_record() -> None:
    batch = made(rows(5), attributes=0x08, max_timestamp=NOW + 77)
    copy = [(NOW + 77, key, value, headers) for _, key, value, headers in rows(5)]
    assert compared([only(batch)], log(copy))[1] is None
    difference = compared([only(batch)], log(rows(5)))[1]
    assert difference == Difference(0, 0, f"at destination offset 0 the time is {NOW}, not {NOW + 77}")


def test_equal_bytes_that_mean_another_time_are_not_equal() -> None:
    batch = made(rows(5))
    other = patched(batch, attributes=0x08)
    assert compared([only(batch)], [only(other)])[1] is not None


def test_holes_that_compaction_left_are_no_difference() -> None:
    source = with_holes([(*row[:3], []) for row in rows(3)], [0, 5, 9], 100)
    copy = log([(*row[:3], []) for row in rows(3)])
    assert compared([only(source)], copy)[1] is None


@pytest.mark.parametrize("start", [0, 15])
def test_case_1105_a_batch_with_holes_is_unpacked_once_with_however_many_batches_it_is_paired(
    start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its offsets were read from its bytes again, for each batch of the other side.
    records = [Record(2 * number, NOW + number, body(b"key", b"value")) for number in range(100)]
    taken = [record for record in records if record.offset >= start]
    opened: list[int] = []
    decompress = decompression.decompress
    monkeypatch.setattr(
        decompression, "decompress", lambda codec, *rest: opened.append(codec) or decompress(codec, *rest)
    )
    copy = log([(record.timestamp, b"key", b"value", []) for record in taken], 10)
    pairing, difference = compared([placed(records, GZIP)], copy, start=start, comparer=Pairing)
    assert difference is None
    assert pairing.runs() == [Run(record.offset, number, 1) for number, record in enumerate(taken)]
    assert opened == [GZIP]


def test_a_start_in_mid_batch_leaves_out_what_lies_before() -> None:
    run, difference = compared(log(rows(20), 10), log(rows(17, 3), 10), start=3)
    assert difference is None
    assert run.records == 17


def test_a_header_key_that_is_not_utf_8_is_compared_as_bytes() -> None:
    body = bytes.fromhex("00 00 00 01 02 76 02 04 fffe 02 78".replace(" ", ""))

    def batch(content: bytes, base: int) -> Batch:
        record = bytes([len(content) << 1]) + content
        header = made(rows(1), base)[:61]
        return only(patched(header + record, length=49 + len(record)))

    assert compared([batch(body, 0)], [batch(body, 8)])[1] is None
    changed = body.replace(b"\xff\xfe", b"\xff\xfd")
    assert compared([batch(body, 0)], [batch(changed, 8)])[1] is not None
    mixed = log(rows(3, 1), 3, first=1)
    assert compared([batch(body, 0), *mixed], [batch(body, 0), *log(rows(3, 1), 1, first=5)])[1] is None


@pytest.mark.parametrize(
    ("copy", "expected"),
    [
        (rows(3) + rows(6, 4), Difference(3, 3, "1 record from source offset 3 on is not at the destination")),
        (rows(3) + rows(4, 6), Difference(3, 3, "3 records from source offset 3 on are not at the destination")),
        (rows(5) + rows(7, 3), Difference(5, 5, "the destination has 2 records more, from its offset 5 on")),
        (
            [*rows(2), (NOW + 2, b"key 2", b"other", []), *rows(7, 3)],
            Difference(2, 2, "the destination has another record, at its offset 2"),
        ),
        (
            [*rows(2), (NOW, *rows(1, 2)[0][1:]), *rows(7, 3)],
            Difference(2, 2, f"at destination offset 2 the time is {NOW}, not {NOW + 2}"),
        ),
        (rows(2) + rows(1, 3) + rows(1, 2) + rows(6, 4), Difference(2, 2, "1 record from source offset 2 on is")),
    ],
    ids=["missing", "several missing", "doubled", "another", "another time", "swapped"],
)
def test_the_first_difference_is_found_where_it_is_and_told(copy: list[Written], expected: Difference) -> None:
    for sizes in ([10], [4], [1]):
        difference = compared(log(rows(10), 10), log(copy, *sizes))[1]
        assert difference is not None
        assert (difference.source_offset, difference.destination_offset) == (
            expected.source_offset,
            expected.destination_offset,
        )
        if sizes == [10]:  # otherwise no record further ahead was read
            assert difference.what.startswith(expected.what)


@pytest.mark.parametrize(
    "changed",
    [
        (NOW, None, b"v", []),
        (NOW, b"", b"", []),
        (NOW, b"", None, []),
        (NOW, b"", b"v", [("a", b"")]),
        (NOW, b"", b"v", [("a", None)]),
        (NOW + 1, b"", b"v", []),
    ],
)
def test_null_and_empty_headers_and_times_are_told_apart(changed: Written) -> None:
    assert compared(log([(NOW, b"", b"v", [])]), log([changed]))[1] is not None


def test_records_that_do_not_decompress_are_corrupt_and_not_a_difference() -> None:
    data = made(rows(3), codec=3)
    garbage = patched(data[:61] + bytes(len(data) - 61))
    with pytest.raises(BatchCorrupt):
        compared([only(garbage)], log(rows(3)))


def test_the_digest_depends_on_the_source_alone() -> None:
    source = log(rows(100), 7)
    raw, rebuilt = raw_copy(source), log(rows(100), 50, codec=4)
    assert compared(source, raw)[0].digest == compared(source, rebuilt)[0].digest
    other = log([*rows(99), (NOW + 99, b"key 99", b"value !!", [("h", b"1")])], 7)
    assert compared(source, raw)[0].digest != compared(other, raw_copy(other))[0].digest


field = st.none() | st.binary(max_size=6)
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
row = st.tuples(st.integers(NOW, NOW + 3), field, field, headers)


@given(
    st.lists(row, max_size=25),
    st.lists(row, max_size=25),
    st.integers(0, 25),
    st.lists(st.integers(1, 8), min_size=1, max_size=5),
    st.lists(st.integers(1, 8), min_size=1, max_size=5),
    st.sampled_from(CODECS),
    st.sampled_from(CODECS),
)
def test_with_batches_of_every_kind_as_many_records_are_equal_as_both_begin_with(
    ours: list[Written],
    theirs: list[Written],
    shared: int,
    our_sizes: list[int],
    their_sizes: list[int],
    our_codec: int,
    their_codec: int,
) -> None:
    theirs = ours[:shared] + theirs
    equal = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    source = log(ours, *our_sizes, first=5, codec=our_codec, gap=2)
    copy = log(theirs, *their_sizes, codec=their_codec, gap=1)
    run, difference = compared(source, copy, start=5)
    assert run.records == equal
    assert (difference is not None) == (equal < min(len(ours), len(theirs)))
    pairing, same_difference = compared(source, copy, start=5, comparer=Pairing)
    assert same_difference == difference
    pairs = [(run.source + n, run.copy + n) for run in pairing.runs() for n in range(run.length)]
    offsets = ([record.offset for batch in side for record in unpack(batch, 0)] for side in (source, copy))
    assert pairs == list(zip(*offsets, strict=False))[:equal]


@given(st.integers(), st.sampled_from(CODECS))
def test_the_replicators_batches_are_equal(seed: int, codec: int) -> None:
    chance = random.Random(seed)
    source = log(rows(200), *(chance.choice([1, 2, 50]) for _ in range(20)), codec=codec, gap=chance.randrange(2))
    position = chance.randrange(source[-1].header.base_offset)
    copy = [out.data for out in outgoing(source, position)]
    run, difference = compared(source, raw_copy([only(bytes(data)) for data in copy]), start=position)
    assert difference is None
    assert run.records == sum(only(bytes(data)).header.records for data in copy)
