"""What waits to be taken, and what the buffers of a process may hold."""

import uuid
from collections.abc import Sequence

import pytest
from kio.schema.errors import ErrorCode

from appliance.errors import PartitionStopped
from appliance.kafka.client.fetch import Fetched
from appliance.kafka.records.committed import Aborted
from appliance.link.model.replicas import Replica
from appliance.replicator.model.chunk import Portion
from appliance.replicator.read.buffer import Arrivals, Buffer, Limits
from appliance.replicator.read.buffer_budget import LEAST, ReadAhead
from tests.support.batches import control, made

MEBIBYTE = 1024 * 1024


def buffer(arrivals: Arrivals, number: int = 0, limits: Limits | None = None) -> Buffer:
    replica = Replica("orders", number, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
    return Buffer(replica, 0, -1, arrivals, limits or Limits())


def fill(one: Buffer, *offsets: int, size: int = 100, aborted: Sequence[Aborted] = (), after: bytes = b"") -> int:
    """Batches of one record each at these offsets."""
    data = b"".join(made([(0, None, b"x" * size, [])], offset, leader_epoch=4) for offset in offsets)
    return one.absorb(Fetched(one.key, ErrorCode.none, memoryview(data + after), tuple(aborted), 0, None))


def who(portions: Sequence[Portion]) -> list[tuple[int, int]]:
    return [(portion.replica.partition, portion.next_offset) for portion in portions]


def test_a_lane_takes_of_each_partition_in_turn_and_each_ones_in_order() -> None:
    arrivals = Arrivals()
    first, second, _ = (buffer(arrivals, number) for number in range(3))
    for offset in range(3):
        fill(first, offset)
    fill(second, 0)
    assert who(arrivals.take(2**30)) == [(0, 1), (1, 1), (0, 2), (0, 3)]
    assert not arrivals.filled
    assert arrivals.take(2**30) == []
    assert (first.bytes, second.bytes) == (0, 0)


def test_what_is_over_the_limit_is_left_for_the_next_time() -> None:
    arrivals = Arrivals()
    one, other = buffer(arrivals), buffer(arrivals, 1)
    for offset in range(3):
        fill(one, offset)
        fill(other, offset)
    assert who(arrivals.take(1)) == [(0, 1), (1, 1)]
    assert set(arrivals.filled) == {one, other}
    assert who(arrivals.take(2**30)) == [(0, 2), (1, 2), (0, 3), (1, 3)]


def test_the_lane_is_woken_by_what_arrives_and_by_what_stops() -> None:
    arrivals = Arrivals()
    one = buffer(arrivals)
    assert fill(one, 0) == one.bytes > 100
    assert arrivals.is_set()
    arrivals.clear()
    one.stop(PartitionStopped("deleted"))
    assert arrivals.is_set()


def test_why_a_partition_stops_is_told_once_and_after_what_was_read_before_was_taken() -> None:
    arrivals = Arrivals()
    one = buffer(arrivals)
    fill(one, 0)
    one.stop(PartitionStopped("the first reason"))
    one.stop(PartitionStopped("another one"))
    assert arrivals.stopped() == []
    arrivals.take(2**30)
    ((replica, reason),) = arrivals.stopped()
    assert (replica, str(reason)) == (one.replica, "the first reason")
    assert arrivals.stopped() == []


def test_what_is_forgotten_is_neither_taken_nor_told() -> None:
    arrivals = Arrivals()
    one = buffer(arrivals)
    fill(one, 0)
    one.stop(PartitionStopped("deleted"))
    arrivals.forget(one)
    assert (arrivals.take(2**30), arrivals.stopped()) == ([], [])


def test_reading_goes_on_behind_what_arrived_with_its_leader_epoch() -> None:
    one = buffer(Arrivals())
    fill(one, 0, 1, 2)
    assert one.wanted(77)[1:] == (one.replica.source_id, 3, 77, 4, -1)


def test_what_was_read_before_and_a_batch_cut_short_bring_nothing() -> None:
    arrivals = Arrivals()
    one = buffer(arrivals)
    fill(one, 0, 1)
    arrivals.take(2**30)
    cut = made([(0, None, b"x" * 100, [])], 2)[:-1]
    assert fill(one, 0, 1, after=cut) == 0
    assert not arrivals.filled
    assert one.position == 2


def test_markers_alone_move_the_position_and_take_no_room() -> None:
    arrivals = Arrivals()
    one = buffer(arrivals)
    assert fill(one, after=control(0, producer_id=9, kind=1)) == 0
    assert who(arrivals.take(2**30)) == [(0, 1)]


def test_a_damaged_batch_stops_the_partition_and_is_never_taken() -> None:
    arrivals = Arrivals()
    one = buffer(arrivals)
    data = bytearray(made([(0, None, b"x" * 100, [])] * 40))
    data[-1] ^= 1
    assert fill(one, after=bytes(data)) == 0
    assert arrivals.take(2**30) == []
    ((_, reason),) = arrivals.stopped()
    assert "orders-0 from offset 0: the CRC" in str(reason)


@pytest.mark.parametrize("refused_at", [0, 2])
def test_a_partition_is_read_up_to_what_was_refused(refused_at: int) -> None:
    arrivals = Arrivals()
    one = buffer(arrivals, limits=Limits(refused_at=refused_at, refusal="too large"))
    fill(one, 0, 1)
    assert one.stopped == (refused_at == 0)
    fill(one, 2, 3)
    assert one.stopped
    assert {end for _, end in who(arrivals.take(2**30))} <= {0, 2}
    assert [str(reason) for _, reason in arrivals.stopped()] == ["too large"]


def holding(one: Buffer, size: int) -> Buffer:
    one.bytes = size
    one.portions.append(Portion(one.replica, (), 1, -1))
    return one


def test_a_partition_alone_gets_a_third_of_the_whole_and_many_get_their_shares() -> None:
    ahead = ReadAhead()
    third = ahead.limit // 3
    alone = holding(buffer(Arrivals()), 0)
    while room := ahead.room(alone):
        alone.bytes += min(room, MEBIBYTE)
        ahead.bytes = alone.bytes
    assert abs(alone.bytes - third) < MEBIBYTE
    assert ahead.room(buffer(Arrivals(), 1)) > third - MEBIBYTE


def test_when_nothing_is_left_an_empty_buffer_may_still_be_filled() -> None:
    ahead = ReadAhead()
    ahead.bytes = 2 * ahead.limit
    assert ahead.room(holding(buffer(Arrivals()), 1)) == 0
    assert ahead.room(buffer(Arrivals())) == LEAST
    assert ahead.left == LEAST


def test_far_away_there_is_room_for_the_next_answer_when_one_has_come() -> None:
    ahead = ReadAhead()
    ahead.stretch(32 * MEBIBYTE)
    ahead.bytes = 32 * MEBIBYTE
    assert ahead.room(holding(buffer(Arrivals()), 32 * MEBIBYTE)) >= 32 * MEBIBYTE
    ahead.stretch(8 * MEBIBYTE)
    assert ahead.left == 4 * 32 * MEBIBYTE
