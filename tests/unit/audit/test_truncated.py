"""The rows of the audit table after a lane's log was truncated."""

import base64
import json
import random
import zlib
from collections.abc import Iterable
from dataclasses import replace

import pytest

from appliance.audit.model.encoding import decode_state, encode_state
from appliance.audit.model.entries import Entry, LogRange
from appliance.audit.model.rows import AuditRow, Kind
from appliance.audit.model.state import AuditState, LaneProgress
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, key_and_value
from appliance.link.model.checkpoint import LaneCheckpoint, Mark
from appliance.link.model.checkpoint_records import (
    decode,
    encode_forgotten,
    encode_layout,
    encode_mark,
    encode_position,
)
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.position import CopyEnd, Position
from tests.unit.audit.test_rows import AT, PARTITION, START, TOPIC, Log, copied, rows, rows_of_lanes

LOST = "the positions topic lost records: what was copied up to here has no rows, or not all"
PARTITIONS = (Partition("orders", 0), Partition("orders", 1))
NOTICED = AT + 3_600_000


def present(entries: Iterable[Entry], end: int) -> LaneCheckpoint:
    """What a lane's log holds now."""
    checkpoint = LaneCheckpoint(read_to=end)
    for entry in entries:
        checkpoint.add(decode(entry.record))
    return checkpoint


def truncated(state: AuditState, log: Log) -> list[AuditRow]:
    """The rows of a lane whose log is found truncated."""
    end = log.range().following if log.entries else 0
    return state.after_truncation(log.lane, present(log.entries, end), 5, NOTICED, lambda topic: f"{topic}.copy")


def ten_copied() -> Log:
    """A log of a mark, a first position, and ten positions with five records each; without records of its producer."""
    log = Log()
    log.start()
    held = log.position(START)
    for _ in range(10):
        held = log.position(copied(held, 5))
    return log


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
    log.add(encode_forgotten(PARTITION, AT))
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
    old.add(encode_forgotten(PARTITION, old.at))
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
    old.add(encode_forgotten(PARTITION, old.at))
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
    new.add(encode_forgotten(PARTITION, new.at))
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


@pytest.mark.parametrize("seed", range(100))
def test_whatever_a_log_loses_the_rows_lie_one_after_the_other_up_to_the_position_and_none_counts_twice(
    seed: int,
) -> None:
    chance = random.Random(seed)
    history = History(chance)
    for _ in range(60):
        history.step()
    history.read()
    counted = sum(row.records for row in history.found)
    unknown = [row for row in history.found if row.kind is Kind.UNAUDITED]
    assert counted <= history.copied
    assert counted == history.copied or unknown
    assert all((row.records, row.cause) == (0, LOST) for row in unknown)
    assert all(row.kind is Kind.COPIED and row.bytes == 10 * row.records for row in history.found if not row.cause)
    for partition in PARTITIONS:
        own = [row for row in history.found if row.partition == partition[1]]
        assert [row.source_from for row in own] == [100, *(row.source_to for row in own[:-1])][: len(own)]
        position = present(history.entries, history.end).positions.get(partition)
        assert position is None or (own[-1].source_to if own else 100) == position.next_offset


class History:
    """A lane's log that is copied to, read, compacted and truncated; the audit has read all that a truncation takes."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.entries: list[Entry] = []
        self.removed, self.end, self.at = -1, 0, AT
        self.epoch = 0
        self.state, self.copied = AuditState(TOPIC), 0
        self.found: list[AuditRow] = []
        self.held: dict[Partition, Position] = {}
        self.start()
        self.read()

    def step(self) -> None:
        kinds = self.copy, self.start, self.read, self.compact, self.truncate
        self.chance.choices(kinds, [10, 2, 4, 2, 1])[0]()

    def write(self, record: Record) -> None:
        self.entries.append(Entry(record._replace(offset=self.end), self.at, 7, self.epoch))
        self.end += 2
        self.at += self.chance.randint(0, 3)

    def copy(self) -> None:
        partition = self.chance.choice(sorted(self.held))
        records = self.chance.randint(1, 5)
        self.copied += records
        end = CopyEnd(2 * self.copied, 0, 7, 0)  # the copy keeps what the log loses
        self.held[partition] = replace(copied(self.held[partition], records), copy_end=end)
        self.write(encode_position(partition, self.held[partition], self.at))

    def start(self) -> None:
        """A new epoch goes on from the positions in the log."""
        self.epoch += 1
        self.write(encode_mark(Mark(0, 7, self.epoch), self.at))
        self.held = present(self.entries, self.end).positions
        for partition in PARTITIONS:
            if partition not in self.held:
                self.held[partition] = START
                self.write(encode_position(partition, START, self.at))

    def read(self) -> None:
        while self.state.lanes.get(0, LaneProgress()).read_to < self.end:
            at = max(0, self.state.lanes.get(0, LaneProgress()).read_to)
            to = min(self.end, at + self.chance.randint(1, 20))
            part = LogRange([e for e in self.entries if at <= e.record.offset < to], to, min(self.removed + 1, to))
            self.found += rows(self.state, part, row_ms=self.chance.choice((0, 5)))
            self.state = decode_state(encode_state(self.state))

    def compact(self) -> None:
        """Remove some records that newer ones replace."""
        newest = {key_and_value(e.record.body)[0]: e for e in self.entries}
        old = [e for e in self.entries if newest[key_and_value(e.record.body)[0]] is not e]
        gone = {e.record.offset for e in old if self.chance.random() < 0.7}
        self.entries = [e for e in self.entries if e.record.offset not in gone]
        self.removed = max([self.removed, *gone])

    def truncate(self) -> None:
        """Lose the end of the log; the producer may have started again, and copied, before the audit notices."""
        self.read()
        self.end = self.chance.choice([0, self.chance.randrange(self.end + 1)]) // 2 * 2
        self.entries = [e for e in self.entries if e.record.offset < self.end]
        self.at += 1
        if self.chance.random() < 0.7:
            self.start()
        for _ in range(self.chance.randint(0, 3)):
            self.copy()
        self.found += self.state.after_truncation(0, present(self.entries, self.end), 5, self.at, str)
        self.state = decode_state(encode_state(self.state))
