"""The buffers of a process: their content, and their bound."""

import uuid
from collections.abc import Sequence

import pytest
from kio.schema.errors import ErrorCode

from appliance.errors import PartitionStopped
from appliance.kafka.client.fetch import Fetched
from appliance.kafka.records.committed import Aborted
from appliance.link.model.replicas import Replica
from appliance.replicator.model.chunk import Chunk
from appliance.replicator.read.buffer import Buffer, Limits, ReadyQueue
from appliance.replicator.read.buffer_budget import LEAST, BufferBudget
from tests.support.batches import control, made

MEBIBYTE = 1024 * 1024


def buffer(ready: ReadyQueue, number: int = 0, limits: Limits | None = None) -> Buffer:
    replica = Replica("orders", number, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
    return Buffer(replica, 0, -1, ready, limits or Limits())


def fill(one: Buffer, *offsets: int, size: int = 100, aborted: Sequence[Aborted] = (), after: bytes = b"") -> int:
    """Batches of one record each at these offsets."""
    data = b"".join(made([(0, None, b"x" * size, [])], offset, leader_epoch=4) for offset in offsets)
    return one.absorb(Fetched(one.key, ErrorCode.none, memoryview(data + after), tuple(aborted), 0, None))


def who(chunks: Sequence[Chunk]) -> list[tuple[int, int]]:
    return [(chunk.replica.partition, chunk.next_offset) for chunk in chunks]


def test_a_lane_takes_of_each_partition_in_turn_and_each_ones_in_order() -> None:
    ready = ReadyQueue()
    first, second, _ = (buffer(ready, number) for number in range(3))
    for offset in range(3):
        fill(first, offset)
    fill(second, 0)
    assert who(ready.take(2**30)) == [(0, 1), (1, 1), (0, 2), (0, 3)]
    assert not ready.filled
    assert ready.take(2**30) == []
    assert (first.bytes, second.bytes) == (0, 0)


def test_batches_over_the_limit_are_left_for_the_next_time() -> None:
    ready = ReadyQueue()
    one, other = buffer(ready), buffer(ready, 1)
    for offset in range(3):
        fill(one, offset)
        fill(other, offset)
    assert who(ready.take(1)) == [(0, 1)]
    assert set(ready.filled) == {one, other}
    assert who(ready.take(1)) == [(1, 1)]
    assert who(ready.take(2**30)) == [(0, 2), (1, 2), (0, 3), (1, 3)]


def test_one_fetchs_batches_are_taken_one_by_one_where_the_limit_is_small() -> None:
    ready = ReadyQueue()
    one = buffer(ready)
    data = b"".join(made([(n, None, b"x" * 100, []) for n in range(40)], 40 * k, leader_epoch=4) for k in range(5))
    held = one.absorb(Fetched(one.key, ErrorCode.none, memoryview(data), (), 0, None))
    assert who(ready.take(held * 2 // 5)) == [(0, 80)]
    assert who(ready.take(1)) == [(0, 120)]
    assert one.bytes == held * 2 // 5
    assert who(ready.take(2**30)) == [(0, 200)]
    assert (one.bytes, list(ready.filled)) == (0, [])


def test_a_chunk_ends_where_another_leader_epoch_begins() -> None:
    ready = ReadyQueue()
    one = buffer(ready)
    data = b"".join(made([(0, None, b"x", [])], offset, leader_epoch=4 + offset // 2) for offset in range(4))
    one.absorb(Fetched(one.key, ErrorCode.none, memoryview(data), (), 0, None))
    assert (one.position, one.epoch) == (2, 4)
    (chunk,) = ready.take(2**30)
    assert (chunk.next_offset, chunk.leader_epoch, chunk.records) == (2, 4, 2)


def test_the_lane_is_woken_by_batches_and_by_stops() -> None:
    ready = ReadyQueue()
    one = buffer(ready)
    assert fill(one, 0) == one.bytes > 100
    assert ready.is_set()
    ready.clear()
    one.stop(PartitionStopped("deleted"))
    assert ready.is_set()


def test_why_a_partition_stops_is_told_once_and_after_what_was_read_before_was_taken() -> None:
    ready = ReadyQueue()
    one = buffer(ready)
    fill(one, 0)
    one.stop(PartitionStopped("the first reason"))
    one.stop(PartitionStopped("another one"))
    assert ready.stopped() == []
    ready.take(2**30)
    ((replica, reason),) = ready.stopped()
    assert (replica, str(reason)) == (one.replica, "the first reason")
    assert ready.stopped() == []


def test_a_forgotten_partition_is_neither_taken_nor_told() -> None:
    ready = ReadyQueue()
    one = buffer(ready)
    fill(one, 0)
    one.stop(PartitionStopped("deleted"))
    ready.forget(one)
    assert (ready.take(2**30), ready.stopped()) == ([], [])


def test_reading_goes_on_behind_what_arrived_with_its_leader_epoch() -> None:
    one = buffer(ReadyQueue())
    fill(one, 0, 1, 2)
    assert one.wanted(77)[1:] == (one.replica.source_id, 3, 77, 4, -1)


def test_old_batches_and_a_batch_cut_short_bring_nothing() -> None:
    ready = ReadyQueue()
    one = buffer(ready)
    fill(one, 0, 1)
    ready.take(2**30)
    cut = made([(0, None, b"x" * 100, [])], 2)[:-1]
    assert fill(one, 0, 1, after=cut) == 0
    assert not ready.filled
    assert one.position == 2


def test_markers_alone_move_the_position_and_take_no_room() -> None:
    ready = ReadyQueue()
    one = buffer(ready)
    assert fill(one, after=control(0, producer_id=9, kind=1)) == 0
    assert who(ready.take(2**30)) == [(0, 1)]


def test_a_damaged_batch_stops_the_partition_and_is_never_taken() -> None:
    ready = ReadyQueue()
    one = buffer(ready)
    data = bytearray(made([(0, None, b"x" * 100, [])] * 40))
    data[-1] ^= 1
    assert fill(one, after=bytes(data)) == 0
    assert ready.take(2**30) == []
    ((_, reason),) = ready.stopped()
    assert "orders-0 from offset 0: the CRC" in str(reason)


@pytest.mark.parametrize("refused_at", [0, 2])
def test_a_partition_is_read_up_to_what_was_refused(refused_at: int) -> None:
    ready = ReadyQueue()
    one = buffer(ready, limits=Limits(refused_at=refused_at, refusal="too large"))
    fill(one, 0, 1)
    assert one.stopped == (refused_at == 0)
    fill(one, 2, 3)
    assert one.stopped
    assert {end for _, end in who(ready.take(2**30))} <= {0, 2}
    (reason,) = [str(reason) for _, reason in ready.stopped()]
    assert reason == f"too large; what follows begins at offset {refused_at + 2}"


def holding(one: Buffer, size: int) -> Buffer:
    one.bytes = size
    one.chunks.append(Chunk(one.replica, (), 1, -1))
    return one


def test_a_partition_alone_gets_a_third_of_the_whole_and_many_get_their_shares() -> None:
    ahead = BufferBudget()
    third = ahead.limit // 3
    alone = holding(buffer(ReadyQueue()), 0)
    while room := ahead.room(alone):
        alone.bytes += min(room, MEBIBYTE)
        ahead.bytes = alone.bytes
    assert abs(alone.bytes - third) < MEBIBYTE
    assert ahead.room(buffer(ReadyQueue(), 1)) > third - MEBIBYTE


def test_when_nothing_is_left_an_empty_buffer_may_still_be_filled() -> None:
    ahead = BufferBudget()
    ahead.bytes = 2 * ahead.limit
    assert ahead.room(holding(buffer(ReadyQueue()), 1)) == 0
    assert ahead.room(buffer(ReadyQueue())) == LEAST
    assert ahead.left == LEAST


def test_far_away_there_is_room_for_the_next_answer_when_one_has_come() -> None:
    ahead = BufferBudget()
    ahead.stretch(32 * MEBIBYTE)
    ahead.bytes = 32 * MEBIBYTE
    assert ahead.room(holding(buffer(ReadyQueue()), 32 * MEBIBYTE)) >= 32 * MEBIBYTE
    ahead.stretch(8 * MEBIBYTE)
    assert ahead.left == 4 * 32 * MEBIBYTE
