"""A lane's chunks on their way through SQL: where ranges begin and end, and what becomes of failures."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

import pytest

from appliance.engine.model.chunk import Chunk, advanced, by_partition, rounds
from appliance.engine.model.ranges import Failure, Outcome, Range
from appliance.engine.write.dead_letters import HEADERS_BYTES
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.engine.write.transformation import Transformation
from appliance.kafka.client.configs import WriteLimits
from appliance.kafka.records.records import fields_of
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica
from tests.support.record_batches import outgoing_of, record, records_of

ORDERS, BILLS = (Replica(name, 0, f"{name}.copy", uuid.uuid4(), uuid.uuid4()) for name in ("orders", "bills"))


def chunk(replica: Replica, first: int, count: int) -> Chunk:
    made = [
        record(at, b"key %d" % at, key=b"key %d" % at, timestamp=1000 + at, headers=[(b"own", b"%d" % at)])
        for at in range(first, first + count)
    ]
    return Chunk(replica, outgoing_of(made, first + count), first + count, 3)


@dataclass
class Sql:
    """Passes everything, unless an outcome is given for a partition; notes what it was asked for."""

    outcomes: dict[str, Callable[[Range], Outcome]] = field(default_factory=dict)
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    async def transform(self, ranges: Sequence[Range]) -> list[Outcome]:
        self.asked += [(each.partition[0], each.start, each.end) for each in ranges]
        return [self.outcomes.get(each.partition[0], passed)(each) for each in ranges]


def passed(each: Range) -> Outcome:
    return Outcome(each.batches, each.end, 0)


def lane(positions: dict[Replica, int]) -> LanePartitions:
    """The partitions of a lane at these positions."""
    limits = {each.destination_topic: WriteLimits(1000, 1) for each in positions}

    def position(replica: Replica) -> Position:
        return Position(replica.source_id, replica.destination_id, positions[replica], 0)

    return cast("LanePartitions", SimpleNamespace(position=position, limits=limits))


async def test_each_range_begins_where_the_one_before_it_ended_and_the_first_at_the_position() -> None:
    sql, at = Sql(), {ORDERS: 3, BILLS: 0}
    empty = Chunk(BILLS, (), 7, 3)
    chunks = [chunk(ORDERS, 5, 10), empty, chunk(ORDERS, 15, 5), chunk(BILLS, 7, 2)]
    made, stops = await Transformation(sql, lane(at)).of(chunks)
    assert sql.asked == [("orders", 3, 15), ("orders", 15, 20), ("bills", 7, 9)]
    assert made == chunks
    assert stops == {}


async def test_a_record_that_stops_its_partition_holds_back_what_follows_it_there_and_nothing_else() -> None:
    sql = Sql({"orders": lambda _: Outcome((), 9, 4, (), Failure(9, "no number"))})
    chunks = [chunk(ORDERS, 5, 10), chunk(BILLS, 0, 2), chunk(ORDERS, 15, 5)]
    made, stops = await Transformation(sql, lane({ORDERS: 5, BILLS: 0})).of(chunks)
    assert [(each.replica, each.next_offset, each.filtered) for each in made] == [(ORDERS, 9, 4), (BILLS, 2, 0)]
    assert str(stops[ORDERS]) == "orders-0 offset 9 fails in the SQL of REPLICA_TRANSFORM_SQL_FILE: no number"
    assert list(stops) == [ORDERS]


async def test_dead_letters_have_the_record_and_say_why_and_from_where_and_positions_count_them() -> None:
    sql = Sql({"orders": lambda each: Outcome((), each.end, 7, (Failure(6, "no number"), Failure(8, "no date")))})
    made, stops = await Transformation(sql, lane({ORDERS: 5})).of([chunk(ORDERS, 5, 9)])
    assert stops == {}
    ((place, batch),) = [each for one in rounds(by_partition(made)) for each in one]
    assert place == ("orders.copy.dead-letter", 0)
    assert (batch.first_offset, batch.next_offset) == (6, 9)
    records = records_of([batch])
    assert [record.timestamp for record in records] == [1006, 1008]
    key, value, headers = fields_of(records[1].body)
    assert (key, value) == (b"key 8", b"key 8")
    assert headers == [
        (b"own", b"8"),
        (b"transform.error", b"no date"),
        (b"transform.topic", b"orders"),
        (b"transform.partition", b"0"),
        (b"transform.offset", b"8"),
    ]
    after = advanced(Position(ORDERS.source_id, ORDERS.destination_id, 5, 0), made)
    assert (after.next_offset, after.filtered, after.dead_letters) == (14, 7, 2)


async def test_case_768_dead_letters_that_fit_one_by_one_are_not_joined_into_a_batch_that_does_not() -> None:
    # Records of a small source batch get headers of several times their size: together they exceeded the limit.
    reason = "x" * 200
    sql = Sql({"orders": lambda each: Outcome((), each.end, 0, tuple(Failure(at, reason) for at in range(5, 25)))})
    made, _ = await Transformation(sql, lane({ORDERS: 5})).of([chunk(ORDERS, 5, 20)])
    batches = [batch for one in rounds(by_partition(made)) for _, batch in one]
    assert sum(batch.records for batch in batches) == 20
    assert max(len(batch.data) for batch in batches) <= 1000 + HEADERS_BYTES
    assert len(batches) >= 5


async def test_what_was_read_for_another_position_is_not_committed() -> None:
    positions = {ORDERS: 5}

    async def moved(ranges: Sequence[Range]) -> list[Outcome]:
        positions[ORDERS] = 9
        return [passed(each) for each in ranges]

    sql = Sql()
    sql.transform = moved  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="orders-0 has moved from offset 5"):
        await Transformation(sql, lane(positions)).of([replace(chunk(ORDERS, 5, 10))])
