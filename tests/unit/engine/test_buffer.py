"""The buffers of a process: their content, and their bound."""

import re
import struct
import uuid
from collections.abc import Sequence
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from appliance.engine.model.chunk import Chunk
from appliance.engine.read.buffer import Buffer, Limits, ReadyQueue
from appliance.engine.read.buffer_budget import LEAST, BufferBudget
from appliance.errors import PartitionStopped
from appliance.kafka.client.fetch import FetchedPartition
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica
from tests.support.batches import control, made, patched
from tests.unit.kafka.test_legacy import message_set

MEBIBYTE = 1024 * 1024
HELD = Position(uuid.UUID(int=1), uuid.UUID(int=2), 20, 4).stop("orders-0 offset 20 is refused", 1)


def buffer(ready: ReadyQueue, number: int = 0, limits: Limits | None = None) -> Buffer:
    replica = Replica("orders", number, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
    return Buffer(replica, 0, -1, ready, limits or Limits())


@pytest.fixture
def one() -> Buffer:
    """The only buffer of a lane."""
    return buffer(ReadyQueue())


def absorb(one: Buffer, data: bytes, stable_end: int = 0) -> int:
    return one.absorb(FetchedPartition(one.key, ErrorCode.none, memoryview(data), (), stable_end, None))


def fill(one: Buffer, *offsets: int, size: int = 100, after: bytes = b"") -> int:
    """Batches of one record each at these offsets."""
    data = b"".join(made([(0, None, b"x" * size, [])], offset, leader_epoch=4) for offset in offsets)
    return absorb(one, data + after)


def who(chunks: Sequence[Chunk]) -> list[tuple[int, int]]:
    return [(chunk.replica.partition, chunk.next_offset) for chunk in chunks]


def test_a_lane_takes_of_each_partition_in_turn_and_each_ones_in_order() -> None:
    ready = ReadyQueue()
    first, second, _ = (buffer(ready, number) for number in range(3))
    for offset in range(3):
        fill(first, offset)
    fill(second, 0)
    assert who(ready.take(2**30)) == [(0, 1), (1, 1), (0, 2), (0, 3)]
    assert not ready.buffers_with_chunks
    assert ready.take(2**30) == []
    assert (first.bytes, second.bytes) == (0, 0)


def test_case_950_a_few_batches_that_are_large_uncompressed_are_rebuilt_at_once(one: Buffer) -> None:
    # A Fetch of a few KB held up all lanes of the task for minutes.
    large = [made([(0, None, bytes(40 * MEBIBYTE), [])], n, codec=4, attributes=4 | 8) for n in range(6)]
    while one.position < 6:
        absorb(one, b"".join(large[one.position :]))
        assert not one.stopped
    assert who(one.ready.take(2**30)) == [(0, 4), (0, 6)]


def test_batches_over_the_limit_are_left_for_the_next_time() -> None:
    ready = ReadyQueue()
    one, other = buffer(ready), buffer(ready, 1)
    for offset in range(3):
        fill(one, offset)
        fill(other, offset)
    assert who(ready.take(1)) == [(0, 1)]
    assert set(ready.buffers_with_chunks) == {one, other}
    assert who(ready.take(1)) == [(1, 1)]
    assert who(ready.take(2**30)) == [(0, 2), (1, 2), (0, 3), (1, 3)]


def test_one_fetchs_batches_are_taken_one_by_one_where_the_limit_is_small(one: Buffer) -> None:
    data = b"".join(made([(n, None, b"x" * 100, []) for n in range(40)], 40 * k, leader_epoch=4) for k in range(5))
    held = absorb(one, data)
    assert who(one.ready.take(held * 2 // 5)) == [(0, 80)]
    assert who(one.ready.take(1)) == [(0, 120)]
    assert one.bytes == held * 2 // 5
    assert who(one.ready.take(2**30)) == [(0, 200)]
    assert (one.bytes, list(one.ready.buffers_with_chunks)) == (0, [])


def test_a_chunk_ends_where_another_leader_epoch_begins(one: Buffer) -> None:
    data = b"".join(made([(0, None, b"x", [])], offset, leader_epoch=4 + offset // 2) for offset in range(4))
    absorb(one, data)
    assert (one.position, one.epoch) == (2, 4)
    (chunk,) = one.ready.take(2**30)
    assert (chunk.next_offset, chunk.leader_epoch, chunk.records) == (2, 4, 2)


def test_the_lane_is_woken_by_batches_and_by_stops(one: Buffer) -> None:
    assert fill(one, 0) == one.bytes > 100
    assert one.ready.is_set()
    one.ready.clear()
    one.stop(PartitionStopped("deleted"))
    assert one.ready.is_set()


def test_why_a_partition_stops_is_told_once_and_after_what_was_read_before_was_taken(one: Buffer) -> None:
    fill(one, 0)
    one.stop(PartitionStopped("the first reason"))
    one.stop(PartitionStopped("another one"))
    assert one.ready.take_stops() == []
    one.ready.take(2**30)
    ((replica, reason),) = one.ready.take_stops()
    assert (replica, str(reason)) == (one.replica, "the first reason")
    assert one.ready.take_stops() == []


def test_a_forgotten_partition_is_neither_taken_nor_told(one: Buffer) -> None:
    fill(one, 0)
    one.stop(PartitionStopped("deleted"))
    one.ready.forget(one)
    assert (one.ready.take(2**30), one.ready.take_stops()) == ([], [])


def test_reading_goes_on_behind_what_arrived_with_its_leader_epoch(one: Buffer) -> None:
    fill(one, 0, 1, 2)
    assert one.fetch_entry(77)[1:] == (one.replica.source_id, 3, 77, 4, -1)


def test_old_batches_and_a_batch_cut_short_bring_nothing(one: Buffer) -> None:
    fill(one, 0, 1)
    one.ready.take(2**30)
    cut = made([(0, None, b"x" * 100, [])], 2)[:-1]
    assert fill(one, 0, 1, after=cut) == 0
    assert not one.ready.buffers_with_chunks
    assert one.position == 2


def test_markers_alone_move_the_position_and_take_no_room(one: Buffer) -> None:
    assert fill(one, after=control(0, producer_id=9, kind=1)) == 0
    assert who(one.ready.take(2**30)) == [(0, 1)]


def test_a_damaged_batch_stops_the_partition_and_is_never_taken(one: Buffer) -> None:
    data = bytearray(made([(0, None, b"x" * 100, [])] * 40))
    data[-1] ^= 1
    assert fill(one, after=bytes(data)) == 0
    assert one.ready.take(2**30) == []
    ((_, reason),) = one.ready.take_stops()
    assert "orders-0 from offset 0: the CRC" in str(reason)


@pytest.mark.parametrize("refused_at", [0, 1, 2])
def test_a_partition_is_read_up_to_the_record_that_was_refused(refused_at: int) -> None:
    ready = ReadyQueue()
    one = buffer(ready, limits=Limits(cut=(refused_at,), refusal="too large"))
    for _ in range(2):
        fill(one, 0, 1, 2, 3)
    assert one.stopped
    assert one.position == refused_at
    assert who(ready.take(2**30)) == ([(0, refused_at)] if refused_at else [])
    assert [str(reason) for _, reason in ready.take_stops()] == ["too large"]


def test_case_882_the_parts_of_a_refused_batch_are_written_by_themselves_to_find_the_record() -> None:
    # The stop named the end of all that was coalesced, or that the SQL had made: 99 records that nobody refused.
    ready = ReadyQueue()
    one = buffer(ready, limits=Limits(cut=(1, 3, 5, 7)))
    data = b"".join(made([(0, None, b"%d" % n, [])] * 4, 4 * n, leader_epoch=4) for n in range(3))
    for _ in range(5):
        absorb(one, data)
    taken = ready.take(2**30)
    assert [(each.next_offset, each.records) for each in taken] == [(1, 1), (3, 2), (5, 2), (7, 2), (12, 5)]
    assert not one.stopped


@pytest.mark.parametrize(
    ("now", "holds"),
    [
        (HELD, True),
        (replace(HELD, next_offset=22), True),
        (replace(HELD, next_offset=24), False),  # another replicator of the link has passed it
        (replace(HELD, next_offset=80), False),  # resume --from
        (replace(HELD, next_offset=3), False),  # reset
        (HELD.go_on(), False),  # resume
    ],
)
def test_case_884_a_refusal_holds_at_the_position_that_it_stopped_and_at_no_other(now: Position, holds: bool) -> None:
    # Cold, a lane read on from 80 with what was refused at 20: "a position would move back from 80 to 20".
    assert Limits(cut=(20, 23), position=HELD).hold_at(now) == holds


def test_case_884_past_a_refused_record_it_is_read_on() -> None:
    one = buffer(ReadyQueue(), limits=Limits(cut=(20,), refusal="too large"))
    one.position = 80
    fill(one, 80, 81)
    assert (one.position, one.stopped) == (82, False)


def told(one: Buffer) -> str:
    """The reason of its stop."""
    one.ready.take(2**30)
    ((_, reason),) = one.ready.take_stops()
    return str(reason)


@pytest.mark.parametrize(("codec", "intact", "position"), [(0, 81, 5), (1, 0, 3)])
def test_case_885_what_is_before_a_damaged_old_message_is_copied(
    one: Buffer, codec: int, intact: int, position: int
) -> None:
    # Nothing of its Fetch was, though docs/why/exactly-once.md said so.
    good, bad = message_set(1, codec, 0), bytearray(message_set(1, codec, 3))
    bad[-1] ^= 0xFF
    for data in (good + bytes(bad), bytes(bad[intact:])):
        absorb(one, data, 6)
    assert one.position == position
    assert told(one).endswith("what follows begins at offset 6")


def test_case_886_what_is_before_a_batch_of_an_impossible_length_is_copied(one: Buffer) -> None:
    good, bad = made([(0, None, b"x", [])], 0, leader_epoch=4), bytearray(made([(0, None, b"x", [])], 1))
    struct.pack_into(">i", bad, 8, 3)
    for data in (good + bytes(bad), bytes(bad)):
        absorb(one, data)
    assert one.position == 1
    assert told(one).endswith("of magic 2 and length 3 at offset 1; what follows begins at offset 2")


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
    assert ahead.remaining == LEAST


def test_far_away_there_is_room_for_the_next_answer_when_one_has_come() -> None:
    ahead = BufferBudget()
    ahead.make_room(32 * MEBIBYTE)
    ahead.bytes = 32 * MEBIBYTE
    assert ahead.room(holding(buffer(ReadyQueue()), 32 * MEBIBYTE)) >= 32 * MEBIBYTE
    ahead.make_room(8 * MEBIBYTE)
    assert ahead.remaining == 4 * 32 * MEBIBYTE


@pytest.mark.parametrize(
    "wrong", [made([(0, None, b"x", [])], 0), patched(made([(0, None, b"x", [])], 2**62), records=0)]
)
def test_case_1022_offsets_that_cannot_be_stop_their_partition_alone_past_what_was_right(
    one: Buffer, wrong: bytes
) -> None:
    right = made([(n, None, b"x", []) for n in range(40)], 0)
    absorb(one, right + wrong, 40)
    assert (one.position, one.stopped, who(one.ready.take(2**30))) == (40, False, [(0, 40)])
    jump = patched(made([(0, None, b"x", [])], 2**62), records=0)
    absorb(one, jump, 40)
    ((_, reason),) = one.ready.take_stops()
    assert one.position == 40
    assert re.search(r"orders-0 from offset 40: an empty batch .* beyond .*; what follows .* 41$", str(reason))
