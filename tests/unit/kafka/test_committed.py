import pytest

from appliance.errors import BatchCorrupt
from appliance.kafka.batch import split
from appliance.kafka.committed import Aborted, committed
from tests.support.batches import control, made, patched

ONE = [(1_700_000_000_000, None, b"v", [])]
ABORT, COMMIT = 0, 1


def transactional(offset: int, producer: int) -> bytes:
    return made(ONE, offset, attributes=0x10, producer_id=producer, producer_epoch=0)


def seen(*batches: bytes, aborted: list[Aborted] | None = None) -> list[int]:
    return [b.header.base_offset for b in committed(split(b"".join(batches)), aborted or [])]


def test_markers_are_left_out() -> None:
    assert seen(transactional(0, 1), control(1, 1, COMMIT), made(ONE, 2)) == [0, 2]


def test_an_aborted_transaction_is_left_out_up_to_its_marker() -> None:
    log = [transactional(0, 1), transactional(1, 1), control(2, 1, ABORT), transactional(3, 1), control(4, 1, COMMIT)]
    assert seen(*log, aborted=[Aborted(1, 0)]) == [3]


def test_interleaved_transactions_are_told_apart_by_producer() -> None:
    log = [
        transactional(0, 1),
        transactional(1, 2),
        made(ONE, 2),
        transactional(3, 1),
        control(4, 1, ABORT),
        transactional(5, 2),
        control(6, 2, COMMIT),
    ]
    assert seen(*log, aborted=[Aborted(1, 0)]) == [1, 2, 5]


def test_a_producer_that_aborts_twice_is_dropped_twice() -> None:
    log = [
        transactional(0, 1),
        control(1, 1, ABORT),
        transactional(2, 1),
        control(3, 1, COMMIT),
        transactional(4, 1),
        control(5, 1, ABORT),
    ]
    assert seen(*log, aborted=[Aborted(1, 4), Aborted(1, 0)]) == [2]


def test_a_fetch_that_starts_within_an_aborted_transaction_drops_its_rest() -> None:
    assert seen(transactional(5, 1), control(6, 1, ABORT), transactional(7, 1), aborted=[Aborted(1, 2)]) == [7]


def test_what_was_not_written_in_a_transaction_is_never_dropped() -> None:
    assert seen(made(ONE, 0, producer_id=1, producer_epoch=0), aborted=[Aborted(1, 0)]) == [0]


def test_a_control_batch_that_compaction_emptied_is_left_out() -> None:
    empty = patched(control(0, 1, ABORT)[:61], length=49, records=0)
    assert seen(empty, made(ONE, 1)) == [1]


def test_a_control_batch_cut_short_is_corrupt() -> None:
    with pytest.raises(BatchCorrupt):
        seen(patched(control(0, 1, ABORT)[:64], length=52))
