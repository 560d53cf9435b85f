"""The rows of the audit table after a lane's log was truncated."""

import base64
import json
import zlib
from dataclasses import replace

import pytest

from appliance.audit.model.rows import AuditRow, Kind
from appliance.audit.model.state import AuditState, LaneProgress, decode_state, encode_state
from appliance.link.model.checkpoint_records import encode_layout, encode_tombstone
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.position import CopyEnd, Position
from tests.unit.audit.logs import (
    AT,
    LOST,
    PARTITION,
    START,
    TOPIC,
    Log,
    copied,
    present,
    rows,
    rows_of_lanes,
    ten_copied,
)

NOTICED = AT + 3_600_000


def truncated(state: AuditState, log: Log) -> list[AuditRow]:
    """The rows of a lane whose log is found truncated."""
    end = log.range().following if log.entries else 0
    return state.after_truncation(log.lane, present(log.entries, end), 5, NOTICED, lambda topic: f"{topic}.copy")


def read(log: Log) -> AuditState:
    """The state after reading a log."""
    state = AuditState(TOPIC)
    rows(state, log.range())
    return state


def test_a_row_counts_nothing_up_to_the_present_position_and_one_up_to_the_next_and_then_all_is_counted() -> None:
    # A producer that was not started again goes on from a position that the log has lost.
    log = ten_copied()
    state = read(log)
    del log.entries[7:]
    log.start()
    held = log.position(copied(copied(replace(copied(START, 25), rebuilt=0), 3), 40))
    end = log.range().following
    (row,) = truncated(state, log)
    assert row == AuditRow(
        *(Kind.UNAUDITED, None, 0, "orders", 0, "orders.copy", 150, 168, 60, 71, 0, 0, None, 0, 0, 0, None),
        *(NOTICED, -1, -1, LOST, end - 1),
    )
    assert state.lanes[0] == LaneProgress(end, leader_epoch=5)
    assert truncated(state, log) == [], "once more, before anything new"
    state = decode_state(encode_state(state))
    log.position(copied(log.position(copied(held, 2)), 3))
    assert [(row.kind, row.source_from, row.records, row.transactions) for row in rows(state, log.range(end))] == [
        (Kind.UNAUDITED, 168, 0, None),
        (Kind.COPIED, 170, 3, 1),
    ]


def test_a_position_that_went_back_is_the_end_of_its_row() -> None:
    log = ten_copied()
    state = read(log)
    del log.entries[7:]
    (row,) = truncated(state, log)
    assert (row.kind, row.source_from, row.source_to, row.copy_from, row.records) == (Kind.UNAUDITED, 150, 125, None, 0)


def test_a_partition_whose_position_is_the_same_has_no_row() -> None:
    log = ten_copied()
    state = read(log)
    log.entries.append(log.entries.pop()._replace(producer_epoch=9))
    assert truncated(state, log) == []
    assert truncated(state, log) == []


COPIED_AGAIN = replace(copied(START, 50), copy_end=CopyEnd(120, 0, 7, 0))


@pytest.mark.parametrize("lane", [0, 1])
@pytest.mark.parametrize("next_position", [START, copied(START, 10), COPIED_AGAIN, copied(START, 80)])
def test_a_partition_without_a_position_in_the_log_has_its_row_with_its_next_position_in_any_lane(
    lane: int, next_position: Position
) -> None:
    log = ten_copied()
    state = read(log)
    state.lanes[1] = LaneProgress()
    del log.entries[1:]
    assert truncated(state, log) == []
    log.add(encode_tombstone(PARTITION, AT))
    assert rows(state, log.range(state.lanes[0].read_to)) == []
    state = decode_state(encode_state(state))
    goes_on = log if lane == 0 else Log(1)
    held = goes_on.position(next_position)
    goes_on.position(copied(held, 2))
    first, second = rows(state, goes_on.range(max(0, state.lanes[lane].read_to)), row_ms=60_000, lane=lane)
    assert (first.kind, first.source_from, first.source_to, first.records, first.cause) == (
        *(Kind.UNAUDITED, 150, held.next_offset, 0, LOST),
    )
    assert (second.kind, second.source_from, second.records) == (Kind.COPIED, held.next_offset, 2)


def test_a_partition_that_is_new_in_a_truncated_log_has_a_row_that_counts_nothing() -> None:
    log, state = Log(), AuditState(TOPIC, {0: LaneProgress(read_to=9)})
    held = log.position(copied(log.position(START), 4))
    (row,) = truncated(state, log)
    assert (row.kind, row.source_from, row.source_to, row.records) == (Kind.UNAUDITED, None, 104, 0)
    log.position(copied(log.position(copied(held, 2)), 3))
    assert [row.records for row in rows(state, log.range(state.lanes[0].read_to))] == [0, 3]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_case_545_a_partition_that_goes_to_another_lane_after_the_truncation_is_counted_from_there(
    order: tuple[int, int],
) -> None:
    # Its positions counted as read in the new lane until they were beyond what the old lane had lost.
    old, new = ten_copied(), Log(1)
    state = read(old)
    del old.entries[7:]
    old.start()
    held = old.position(copied(replace(copied(START, 25), rebuilt=0), 40))
    for lane, log in enumerate((old, new)):
        log.add(encode_layout(lane, LayoutRecord(1, 2, AT, "me@host"), AT))
    old.add(encode_tombstone(PARTITION, old.at))
    new.position(copied(new.position(held), 2))
    found = truncated(state, old)
    found += rows_of_lanes(state, (old, new), order)
    assert [(row.kind, row.source_from, row.source_to, row.records) for row in found] == [
        (Kind.UNAUDITED, 150, 165, 0),
        (Kind.COPIED, 165, 167, 2),
    ]


def moved(old: Log, new: Log) -> tuple[AuditState, Position]:
    """The state after a partition went to another lane, where 3 records were copied; the position."""
    old.start()
    held = old.position(copied(old.position(START), 2))
    for lane, log in enumerate((old, new)):
        log.add(encode_layout(lane, LayoutRecord(1, 2, AT, "me@host"), AT))
    old.add(encode_tombstone(PARTITION, old.at))
    held = new.position(copied(new.position(held), 3))
    state = AuditState(TOPIC)
    assert [row.records for row in rows_of_lanes(state, (old, new), (0, 1))] == [2, 3]
    return state, held


def test_case_546_a_partition_that_had_left_a_lane_before_its_log_was_truncated_is_counted_once() -> None:
    # Its second new position in the other lane was taken for one that goes on from what the first had lost.
    old, new = Log(), Log(1)
    state, held = moved(old, new)
    del old.entries[-2:]  # its position there holds again
    assert truncated(state, new) == truncated(state, old) == []
    assert state.lanes[0].layout == 1, "no lane waits for the lost record of the change"
    for records in (3, 4, 5):
        held = new.position(copied(held, records))
        assert [row.records for row in rows(state, new.range(state.lanes[1].read_to), lane=1)] == [records]


def test_a_removed_partition_has_a_row_in_a_truncated_log_of_a_later_layout_alone() -> None:
    old, new = Log(), Log(1)
    state, _ = moved(old, new)
    new.add(encode_tombstone(PARTITION, new.at))
    assert rows(state, new.range(state.lanes[1].read_to), lane=1) == []
    del old.entries[-1:]  # its position there holds again, of before it went
    assert truncated(state, old) == []
    old.add(encode_layout(0, LayoutRecord(2, 2, AT, "me@host"), AT))
    old.position(copied(START, 4))
    (row,) = truncated(state, old)
    assert (row.kind, row.lane, row.source_from, row.source_to, row.records) == (Kind.UNAUDITED, 0, 105, 104, 0)


@pytest.mark.parametrize("fields", [5, 6, 7, 8, 9])
def test_the_state_of_an_older_release_without_its_starts_is_read(fields: int) -> None:
    log = ten_copied()
    log.owner("run-1")
    whole = json.loads(zlib.decompress(base64.b64decode(encode_state(read(log)))))
    del whole["again"]
    whole["lanes"] = [lane[:fields] for lane in whole["lanes"]]
    state = decode_state(base64.b64encode(zlib.compress(json.dumps(whole).encode())))
    assert (state.lanes[0].read_to, state.lanes[0].run) == (log.range().following, "run-1" if fields > 5 else None)
    del log.entries[7:]
    (row,) = truncated(state, log)
    assert (row.kind, row.source_from, row.source_to, row.records) == (Kind.UNAUDITED, 150, 125, 0)


def test_what_an_older_release_had_not_settled_after_a_truncation_is_unaudited() -> None:
    log = ten_copied()
    whole = json.loads(zlib.decompress(base64.b64decode(encode_state(read(log)))))
    del log.entries[7:]
    read_to, again = log.range().following, log.range().following + 8
    whole["lanes"] = [[0, read_to, *whole["lanes"][0][2:9]]]
    whole["starts"] = [[0, [[], -1, [-1, -1]], again, [[[7, 1]], AT, [-1, -1]], [7, 1], 4, [0, -1, -1], 0, -1]]
    whole["again"] = [["orders", 0, None, False]]
    state = decode_state(base64.b64encode(zlib.compress(json.dumps(whole).encode())))
    assert state.lanes[0].read_to > again, "no broker has that offset: the lane is found truncated"
    assert state.partitions[PARTITION].is_lost
    held = log.position(copied(replace(copied(START, 25), rebuilt=0), 3))
    (row,) = truncated(decode_state(encode_state(state)), log)
    assert (row.kind, row.source_from, row.source_to, row.records) == (Kind.UNAUDITED, 150, 128, 0)
    log.position(copied(held, 2))
    one, two = rows(state, log.range(read_to), row_ms=60_000)
    assert [(row.kind, row.source_from, row.records) for row in (one, two)] == [
        (Kind.UNAUDITED, 150, 0),
        (Kind.COPIED, 128, 2),
    ]
