"""The size of a lane's next transaction."""

from appliance.engine.model.transaction_size import LEAST, TransactionSize

MEBIBYTE = 1024 * 1024
TIMEOUT = 60.0


def test_a_transaction_after_one_that_outlasted_its_timeout_holds_at_most_half_as_much() -> None:
    size = TransactionSize(16 * MEBIBYTE, TIMEOUT)
    problem = size.failed(4 * MEBIBYTE, 61.0)
    assert size.bytes == 2 * MEBIBYTE
    assert "TRANSACTION_TIMEOUT_SECONDS=60" in str(problem)
    size.failed(3 * MEBIBYTE, 61.0)
    assert size.bytes == MEBIBYTE
    for _ in range(10):
        size.failed(MEBIBYTE, 61.0)
    assert size.bytes == LEAST


def test_a_transaction_that_failed_sooner_changes_nothing() -> None:
    size = TransactionSize(16 * MEBIBYTE, TIMEOUT)
    assert size.failed(16 * MEBIBYTE, 50.0) is None
    assert size.bytes == 16 * MEBIBYTE


def test_the_size_grows_back_by_quick_transactions_that_filled_it() -> None:
    size = TransactionSize(4 * MEBIBYTE, TIMEOUT)
    size.failed(4 * MEBIBYTE, 61.0)
    size.committed(2 * MEBIBYTE, 30.0)
    size.committed(1000, 0.01)
    assert size.bytes == 2 * MEBIBYTE
    size.committed(2 * MEBIBYTE, 10.0)
    size.committed(4 * MEBIBYTE, 10.0)
    assert size.bytes == 4 * MEBIBYTE


def test_a_bound_below_the_least_size_stays() -> None:
    size = TransactionSize(LEAST // 2, TIMEOUT)
    size.failed(LEAST // 2, 61.0)
    assert size.bytes == LEAST // 2
