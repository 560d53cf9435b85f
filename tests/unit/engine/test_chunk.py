"""Chunks: the positions after them, their requests and sums, and the size of the next transaction."""

import uuid

import pytest

from appliance.engine.model.chunk import LEAST_BYTES, Chunk, Ledger, TransactionSize, advanced, by_partition, rounds
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import Outgoing
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica

ZERO = Replica("orders", 0, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
ONE = Replica("orders", 1, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
START = Position(uuid.UUID(int=1), uuid.UUID(int=2), 10, 0)


def batch(first: int, count: int, raw: bool = True) -> Outgoing:
    return Outgoing(bytes(count), count, first, first + count, 1000 + first, raw)


def test_a_position_follows_its_chunks_past_what_is_left_out() -> None:
    chunks = [Chunk(ZERO, (batch(10, 5),), 15, 1), Chunk(ZERO, (), 18, 2)]
    after = advanced(START, chunks)
    assert (after.next_offset, after.leader_epoch, after.records, after.bytes, after.timestamp) == (18, 2, 5, 5, 1010)


def test_a_position_never_moves_back() -> None:  # invariant D
    with pytest.raises(AssertionError, match="from 10 to 9"):
        advanced(START, [Chunk(ZERO, (), 9, 1)])


def test_a_produce_holds_one_batch_a_partition_and_keeps_each_ones_order() -> None:
    chunks = by_partition(
        [
            Chunk(ZERO, (batch(0, 1), batch(1, 1)), 2, 1),
            Chunk(ONE, (batch(0, 2),), 2, 1),
            Chunk(ZERO, (batch(2, 1),), 3, 1),
        ]
    )
    turns = [[(to[1], out.first_offset) for to, out in turn] for turn in rounds(chunks)]
    assert turns == [[(0, 0), (1, 0)], [(0, 1)], [(0, 2)]]


def test_chunks_without_copies_need_no_produce() -> None:
    assert rounds(by_partition([Chunk(ZERO, (), 5, 1)])) == []


def test_a_chunk_is_cut_between_its_batches_and_the_rest_holds_what_was_left_out_behind_them() -> None:
    chunk = Chunk(ZERO, (batch(10, 5), batch(15, 5), batch(22, 5)), 30, 1)
    assert chunk.cut(15) == (chunk, None)
    first, rest = Chunk(ZERO, chunk.batches[:2], 20, 1), Chunk(ZERO, chunk.batches[2:], 30, 1)
    assert chunk.cut(14) == chunk.cut(10) == (first, rest)
    assert rest.cut(1) == (rest, None)
    assert chunk.cut(1)[0].next_offset == 15


def test_copied_records_are_summed_up_since_the_last_time_the_sum_was_taken() -> None:
    ledger = Ledger()
    ledger.add([Chunk(ZERO, (batch(10, 5), batch(15, 2, raw=False)), 20, 1), Chunk(ONE, (), 7, 1)])
    ledger.add([Chunk(ZERO, (batch(20, 1),), 21, 1)])
    assert ledger.take() == Ledger(8, 8, 2, 1, {Partition("orders", 0), Partition("orders", 1)})
    assert ledger.take() == Ledger()


MEBIBYTE = 1024 * 1024
TIMEOUT = 60.0


def test_a_transaction_after_one_that_outlasted_its_timeout_holds_at_most_half_as_much() -> None:
    size = TransactionSize(16 * MEBIBYTE, TIMEOUT)
    problem = size.note_failure(4 * MEBIBYTE, 61.0)
    assert size.bytes == 2 * MEBIBYTE
    assert "TRANSACTION_TIMEOUT_SECONDS=60" in str(problem)
    size.note_failure(3 * MEBIBYTE, 61.0)
    assert size.bytes == MEBIBYTE
    for _ in range(10):
        size.note_failure(MEBIBYTE, 61.0)
    assert size.bytes == LEAST_BYTES


def test_a_transaction_that_failed_sooner_changes_nothing() -> None:
    size = TransactionSize(16 * MEBIBYTE, TIMEOUT)
    assert size.note_failure(16 * MEBIBYTE, 50.0) is None
    assert size.bytes == 16 * MEBIBYTE


def test_the_size_grows_back_by_quick_transactions_that_filled_it() -> None:
    size = TransactionSize(4 * MEBIBYTE, TIMEOUT)
    size.note_failure(4 * MEBIBYTE, 61.0)
    size.note_commit(2 * MEBIBYTE, 30.0)
    size.note_commit(1000, 0.01)
    assert size.bytes == 2 * MEBIBYTE
    size.note_commit(2 * MEBIBYTE, 10.0)
    size.note_commit(4 * MEBIBYTE, 10.0)
    assert size.bytes == 4 * MEBIBYTE


def test_a_bound_below_the_least_size_stays() -> None:
    size = TransactionSize(LEAST_BYTES // 2, TIMEOUT)
    size.note_failure(LEAST_BYTES // 2, 61.0)
    assert size.bytes == LEAST_BYTES // 2
