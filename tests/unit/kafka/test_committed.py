import pytest

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import TRANSACTIONAL, split
from appliance.kafka.records.committed import (
    AbortedTransaction,
    EndedTransaction,
    EndedTransactions,
    committed,
    visible,
)
from tests.support.batches import control, made, patched

ONE = [(1_700_000_000_000, None, b"v", [])]
ABORT, COMMIT = 0, 1


def transactional(offset: int, producer: int) -> bytes:
    return made(ONE, offset, attributes=0x10, producer_id=producer, producer_epoch=0)


def seen(*batches: bytes, aborted: list[AbortedTransaction] | None = None) -> list[int]:
    return [b.header.base_offset for b in committed(split(b"".join(batches)), aborted or [])]


def seen_in_a_fetch(
    *batches: bytes, aborted: tuple[AbortedTransaction, ...] = (), position: int = 0
) -> tuple[list[int], int]:
    found, following = visible(memoryview(b"".join(batches)), aborted, position, 100)
    return [b.header.base_offset for b in found], following


T, C = transactional, control


@pytest.mark.parametrize(
    ("log", "aborted", "visible_at"),
    [
        ([T(0, 1), C(1, 1, COMMIT), made(ONE, 2)], [], [0, 2]),
        ([T(0, 1), T(1, 1), C(2, 1, ABORT), T(3, 1), C(4, 1, COMMIT)], [AbortedTransaction(1, 0)], [3]),
        (
            [T(0, 1), T(1, 2), made(ONE, 2), T(3, 1), C(4, 1, ABORT), T(5, 2), C(6, 2, COMMIT)],
            [AbortedTransaction(1, 0)],
            [1, 2, 5],
        ),
        (
            [T(0, 1), C(1, 1, ABORT), T(2, 1), C(3, 1, COMMIT), T(4, 1), C(5, 1, ABORT)],
            [AbortedTransaction(1, 4), AbortedTransaction(1, 0)],
            [2],
        ),
        ([T(5, 1), C(6, 1, ABORT), T(7, 1)], [AbortedTransaction(1, 2)], [7]),
        ([made(ONE, 0, producer_id=1, producer_epoch=0)], [AbortedTransaction(1, 0)], [0]),
        ([patched(C(0, 1, ABORT)[:61], length=49, records=0), made(ONE, 1)], [], [1]),
    ],
    ids=[
        "markers are left out",
        "an aborted transaction is, up to its marker",
        "interleaved ones are told apart by producer",
        "a producer that aborts twice is dropped twice",
        "a fetch that starts within an aborted one drops its rest",
        "records outside transactions are never dropped",
        "a control batch that compaction emptied is left out",
    ],
)
def test_committed_records_alone_are_seen(
    log: list[bytes], aborted: list[AbortedTransaction], visible_at: list[int]
) -> None:
    assert seen(*log, aborted=aborted) == visible_at


def test_a_control_batch_cut_short_is_corrupt() -> None:
    with pytest.raises(BatchCorrupt):
        seen(patched(control(0, 1, ABORT)[:64], length=52))


def test_a_fetch_of_nothing_but_markers_is_gone_on_from_after_the_last_one() -> None:
    assert seen_in_a_fetch(control(1, 1, COMMIT), control(3, 1, COMMIT), control(5, 2, COMMIT)) == ([], 6)


def test_a_fetch_of_nothing_is_asked_again_from_where_it_was() -> None:
    assert seen_in_a_fetch(position=7) == ([], 7)
    assert seen_in_a_fetch(position=7, aborted=(AbortedTransaction(1, 8),)) == ([], 7)


@pytest.mark.parametrize("aborted", [(), (AbortedTransaction(1, 2),)])
def test_the_committed_batches_are_the_same_with_and_without_a_look_at_markers(
    aborted: tuple[AbortedTransaction, ...],
) -> None:
    log = [
        transactional(0, 1),
        control(1, 1, COMMIT),
        transactional(2, 1),
        transactional(3, 2),
        control(4, 1, ABORT if aborted else COMMIT),
        made(ONE, 5),
        control(6, 2, COMMIT),
        transactional(7, 1),
        control(9, 1, COMMIT),
    ]
    assert seen_in_a_fetch(*log, aborted=aborted) == (seen(*log, aborted=list(aborted)), 10)
    assert (2 in seen_in_a_fetch(*log, aborted=aborted)[0]) == (not aborted)


@pytest.mark.parametrize("aborted", [(), (AbortedTransaction(9, 0),)])
@pytest.mark.parametrize("last", [control(2, 1, COMMIT), transactional(2, 1)])
def test_a_last_batch_that_is_cut_short_is_left_for_the_next_fetch(
    last: bytes, aborted: tuple[AbortedTransaction, ...]
) -> None:
    for end in range(len(last)):
        assert seen_in_a_fetch(transactional(0, 1), control(1, 1, COMMIT), last[:end], aborted=aborted) == ([0], 2)


def test_bytes_between_markers_that_are_no_batch_are_corrupt() -> None:
    legacy = control(1, 1, COMMIT)[:16] + b"\1" + bytes(20)
    for wrong in (patched(control(1, 1, COMMIT), length=48), patched(control(1, 1, COMMIT), magic=1), legacy):
        with pytest.raises(BatchCorrupt):
            seen_in_a_fetch(control(0, 1, COMMIT), wrong)


TIME = 1_700_000_000_000


def data(offset: int, producer: int, time: int, count: int = 2, attributes: int = TRANSACTIONAL) -> bytes:
    records = [(TIME + time, None, b"value", [])] * count
    return made(records, offset, attributes=attributes, producer_id=producer, producer_epoch=0)


def found(*batches: bytes) -> list[EndedTransaction]:
    transactions = EndedTransactions()
    for each in batches:
        transactions.take(split(each))
    return transactions.found


def test_a_committed_transaction_is_found_with_its_records_and_times() -> None:
    log = data(0, 1, 5), data(2, 2, 6), data(4, 1, 7), control(6, 1, 1)
    assert found(*log) == [EndedTransaction(1, 0, 0, 5, 6, TIME + 5, TIME)]


def test_one_that_was_aborted_or_is_open_is_not_found_and_none_begins_before_the_last_has_ended() -> None:
    log = data(0, 1, 5), control(2, 1, 0), data(3, 1, 6), control(5, 1, 1), data(6, 1, 7)
    assert [(each.first, each.last) for each in found(*log)] == [(3, 4)]


def test_a_marker_without_records_and_a_batch_without_a_transaction_are_none() -> None:
    assert found(control(0, 1, 1), data(1, 1, 5, attributes=0), control(3, 1, 1)) == []
