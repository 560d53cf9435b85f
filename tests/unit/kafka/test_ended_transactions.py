from appliance.kafka.records.batch import TRANSACTIONAL, split
from appliance.kafka.records.ended_transactions import EndedTransaction, EndedTransactions
from tests.support.batches import control, made

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
