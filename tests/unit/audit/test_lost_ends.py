"""The rows of the audit table after a lane's log has lost its end."""

import base64
import json
import random
import zlib
from dataclasses import replace

import pytest

from appliance.audit.model.encoding import decode_state, encode_state
from appliance.audit.model.entries import Entry, Stretch
from appliance.audit.model.rows import AuditRow, Kind
from appliance.audit.model.state import AuditState, LaneKnown
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, key_and_value
from appliance.link.model.checkpoint import Mark
from appliance.link.model.checkpoint_records import (
    decode,
    encode_forgotten,
    encode_layout,
    encode_mark,
    encode_position,
)
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.position import Position
from tests.unit.audit.test_rows import AT, PARTITION, START, TOPIC, Log, copied, rows, rows_of_lanes

LOST_END = "the positions topic lost its end: what was copied up to here has no rows, or not all"
PARTITIONS = (("orders", 0), ("orders", 1))


def read_and_cut(log: Log, left: int) -> AuditState:
    """The state after reading a log that then keeps so many entries."""
    state = AuditState(TOPIC)
    rows(state, log.stretch())
    del log.entries[left:]
    state.lane_cut(0)
    return decode_state(encode_state(state))


def ten_copied() -> Log:
    """A log of a mark, a first position, and ten positions with five records each; without records of its producer."""
    log = Log()
    log.start()
    held = log.position(START)
    for _ in range(10):
        held = log.position(copied(held, 5))
    return log


def test_case_493_rows_of_a_start_whose_mark_compaction_has_taken_are_written() -> None:
    # All positions up to the offset that had been read counted as read, until a mark of a later start.
    log = ten_copied()
    state = read_and_cut(log, 7)
    held = replace(copied(START, 25), rebuilt=0)
    log.start()
    held = log.position(copied(held, 3))
    held = log.position(copied(held, 4))
    log.start()  # takes the mark of the start before
    found = rows(state, log.stretch(without=[7]))
    assert [(row.kind, row.source_from, row.source_to, row.records, row.cause) for row in found] == [
        (Kind.GAP, None, 128, 0, LOST_END),
        (Kind.COPIED, 128, 132, 4, None),
    ]
    log.position(copied(held, 2))
    assert [row.records for row in rows(state, log.stretch(state.lanes[0].read_to))] == [2]


def test_case_494_rows_of_a_producer_that_goes_on_in_a_log_that_was_wiped_are_written() -> None:
    # A leader without any record of a producer takes its next one, and all up to the old end counted as read.
    log = ten_copied()
    state = read_and_cut(log, 0)
    held = log.position(copied(replace(copied(START, 50), rebuilt=0), 3))
    held = log.position(copied(held, 4))
    found = rows(state, log.stretch())
    assert [(row.kind, row.source_from, row.source_to, row.records, row.transactions) for row in found] == [
        (Kind.COPIED, 150, 153, 3, None),
        (Kind.COPIED, 153, 157, 4, 1),
    ]
    log.start()
    log.position(copied(held, 2))
    assert [row.records for row in rows(state, log.stretch(state.lanes[0].read_to))] == [2]


def test_case_495_a_row_says_so_where_compaction_has_taken_the_position_that_a_later_start_went_on_from() -> None:
    # Its records were counted once more, or those that were copied again were not counted.
    for more in (1, 40):
        log = ten_copied()
        state = read_and_cut(log, 7)
        log.start()
        held = log.position(copied(replace(copied(START, 25), rebuilt=0), more))
        found = rows(state, log.stretch(without=range(1, 7)))
        assert [(row.kind, row.source_from, row.source_to, row.records, row.cause) for row in found] == [
            (Kind.GAP, None, 125 + more, 0, LOST_END)
        ]
        log.position(copied(held, 2))
        (row,) = rows(state, log.stretch(state.lanes[0].read_to))
        assert (row.kind, row.source_from, row.records, row.cause) == (Kind.COPIED, 125 + more, 2, None)


def test_case_496_a_row_says_so_of_a_partition_that_a_later_start_has_removed() -> None:
    log = ten_copied()
    state = read_and_cut(log, 7)
    log.start()
    log.add(encode_forgotten(PARTITION, log.at))
    found = rows(state, log.stretch(without=range(1, 7)))
    assert [(row.kind, row.source_to, row.records, row.cause) for row in found] == [(Kind.GAP, None, 0, LOST_END)]
    log.position(START)
    log.position(copied(START, 2))
    found = rows(state, log.stretch(state.lanes[0].read_to))
    assert [(row.kind, row.source_from, row.records) for row in found] == [(Kind.COPIED, 100, 2)]


def test_case_497_a_partition_that_goes_to_another_lane_after_its_log_lost_its_end_is_counted_from_there() -> None:
    # Its positions counted as read in the new lane until they were beyond what the old lane had lost.
    for order in ((0, 1), (1, 0)):
        old, new = ten_copied(), Log(1)
        state = read_and_cut(old, 7)
        held = replace(copied(START, 25), rebuilt=0)
        old.start()
        old.add(encode_layout(0, LayoutRecord(1, 2, AT, "me@host"), AT))
        old.add(encode_forgotten(PARTITION, old.at))
        new.add(encode_layout(1, LayoutRecord(1, 2, AT, "me@host"), AT))
        held = new.position(held)
        new.position(copied(held, 2))
        found = rows_of_lanes(state, (old, new), order)
        assert [(row.kind, row.records) for row in found] == [(Kind.COPIED, 2)], order


def test_case_545_a_partition_that_goes_to_another_lane_with_more_than_was_counted_is_counted_again() -> None:
    # Only one that counted less was known to have lost some: these rows lacked what was copied again, without a word.
    for order in ((0, 1), (1, 0)):
        old, new = ten_copied(), Log(1)
        state = read_and_cut(old, 7)
        old.start()
        held = old.position(copied(replace(copied(START, 25), rebuilt=0), 40))
        old.add(encode_layout(0, LayoutRecord(1, 2, AT, "me@host"), AT))
        new.add(encode_layout(1, LayoutRecord(1, 2, AT, "me@host"), AT))
        old.add(encode_forgotten(PARTITION, old.at))
        held = new.position(held)
        new.position(copied(held, 2))
        found = rows_of_lanes(state, (old, new), order)
        assert [(row.kind, row.records) for row in found] == [(Kind.COPIED, 40), (Kind.COPIED, 2)], order


def test_case_546_a_partition_that_had_left_a_lane_before_its_log_lost_its_end_is_counted_once() -> None:
    # Its second new position in the other lane was taken for one that goes on from what the first had lost.
    old, new, state = Log(), Log(1), AuditState(TOPIC)
    old.start()
    held = old.position(copied(old.position(START), 2))
    for lane, log in enumerate((old, new)):
        log.add(encode_layout(lane, LayoutRecord(1, 2, AT, "me@host"), AT))
    new.position(held)
    assert [row.records for lane in (0, 1) for row in rows(state, (old, new)[lane].stretch(), lane=lane)] == [2]
    old.add(encode_forgotten(PARTITION, old.at))
    assert rows(state, old.stretch(state.lanes[0].read_to)) == []
    for lane, log in ((1, new), (0, old)):
        state.lane_cut(lane)
        log.start()
    assert rows(state, old.stretch()) == []
    for records in (3, 4, 5):
        held = new.position(copied(held, records))
        read_to = max(0, state.lanes[1].read_to)
        assert [row.records for row in rows(state, new.stretch(read_to), lane=1)] == [records]


@pytest.mark.parametrize("fields", [5, 6, 7, 8, 9])
def test_the_state_of_an_older_release_is_read_and_all_its_producers_are_known(fields: int) -> None:
    log = ten_copied()
    log.owner("run-1")
    log.add(encode_mark(Mark(0, 7, log.epoch), log.at))
    state = AuditState(TOPIC)
    rows(state, log.stretch())
    older = without_starts(encode_state(state), fields)
    state = decode_state(older)
    del log.entries[7:]
    state.lane_cut(0)
    assert rows(state, log.stretch()) == []
    log.start()
    log.position(copied(replace(copied(START, 25), rebuilt=0), 3))
    assert [row.records for row in rows(state, log.stretch(state.lanes[0].read_to))] == [3]


@pytest.mark.parametrize("seed", range(200))
def test_whatever_a_log_loses_each_record_is_in_one_row_or_a_row_says_so(seed: int) -> None:
    chance = random.Random(seed)
    history = History(chance)
    for _ in range(60):
        history.step()
    history.read()
    counted = sum(row.records for row in history.found)
    told = sum(row.cause == LOST_END for row in history.found)
    assert counted <= history.copied
    assert counted == history.copied or told
    assert all(row.kind in (Kind.COPIED, Kind.MOVED) or row.cause == LOST_END for row in history.found)
    assert all(row.records >= 0 and row.bytes == 10 * row.records for row in history.found)


def without_starts(state: bytes, fields: int) -> bytes:
    """A state as an older release has written it, with so many fields of a lane."""
    whole = json.loads(zlib.decompress(base64.b64decode(state)))
    del whole["starts"], whole["again"]
    whole["lanes"] = [lane[:fields] for lane in whole["lanes"]]
    return base64.b64encode(zlib.compress(json.dumps(whole).encode()))


class History:
    """A lane's log that is copied to, read, compacted and cut; the audit has read all that a cut takes."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.entries: list[Entry] = []
        self.removed, self.end, self.at = -1, 0, AT
        self.producers = [(7, 0)]
        self.state, self.copied = AuditState(TOPIC), 0
        self.found: list[AuditRow] = []
        self.held: dict[Partition, Position] = {}
        self.start()
        self.read()

    def step(self) -> None:
        kinds = self.copy, self.start, self.read, self.compact, self.cut
        self.chance.choices(kinds, [10, 2, 4, 2, 1])[0]()

    def write(self, record: Record) -> None:
        self.entries.append(Entry(record._replace(offset=self.end), self.at, *self.producers[-1]))
        self.end += 2
        self.at += self.chance.randint(0, 3)

    def copy(self) -> None:
        partition = self.chance.choice(sorted(self.held))
        records = self.chance.randint(1, 5)
        self.held[partition] = copied(self.held[partition], records)
        self.copied += records
        self.write(encode_position(partition, self.held[partition], self.at))

    def start(self) -> None:
        """A new epoch, or another producer id, goes on from the positions in the log."""
        id_, epoch = self.producers[-1]
        new = (self.chance.choice([3, 9, id_ + 1]), 0) if self.chance.random() < 0.2 else (id_, epoch + 1)
        self.producers.append((id_, epoch + 1) if new in self.producers else new)
        self.write(encode_mark(Mark(0, *self.producers[-1]), self.at))
        remembered = [decode(entry.record) for entry in self.entries]
        self.held = {each[0]: each[1] for each in remembered if isinstance(each, tuple) and each[0] in PARTITIONS}
        for partition in PARTITIONS:
            if partition not in self.held:
                self.held[partition] = START
                self.write(encode_position(partition, START, self.at))

    def read(self) -> None:
        while self.state.lanes.get(0, LaneKnown()).read_to < self.end:
            at = max(0, self.state.lanes.get(0, LaneKnown()).read_to)
            to = min(self.end, at + self.chance.randint(1, 20))
            part = Stretch([e for e in self.entries if at <= e.record.offset < to], to, min(self.removed + 1, to))
            self.found += rows(self.state, part, row_ms=self.chance.choice((0, 5)))
            self.state = decode_state(encode_state(self.state))

    def compact(self) -> None:
        """Remove some records that newer ones replace."""
        newest = {key_and_value(e.record.body)[0]: e for e in self.entries}
        old = [e for e in self.entries if newest[key_and_value(e.record.body)[0]] is not e]
        gone = {e.record.offset for e in old if self.chance.random() < 0.7}
        self.entries = [e for e in self.entries if e.record.offset not in gone]
        self.removed = max([self.removed, *gone])

    def cut(self) -> None:
        """Lose the end of the log; a producer of which nothing is left may go on."""
        self.read()
        self.end = self.chance.choice([0, self.chance.randrange(self.end + 1)]) // 2 * 2
        self.entries = [e for e in self.entries if e.record.offset < self.end]
        self.at += 1
        self.state.lane_cut(0)
        is_left = any((e.producer_id, e.producer_epoch) == self.producers[-1] for e in self.entries)
        if is_left or self.chance.random() < 0.3:
            self.start()
