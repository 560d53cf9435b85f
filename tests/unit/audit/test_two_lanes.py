"""The rows of the audit table of two lanes whose logs are compacted and truncated, while partitions stay or move."""

import random
import uuid
from dataclasses import replace

import pytest

from appliance.audit.model.entries import Entry, LogRange
from appliance.audit.model.rows import AuditRow, Kind
from appliance.audit.model.state import AuditState, LaneProgress, decode_state, encode_state
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, key_and_value
from appliance.link.model.checkpoint import Mark
from appliance.link.model.checkpoint_records import (
    encode_layout,
    encode_mark,
    encode_position,
    encode_tombstone,
)
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.position import UNKNOWN, CopyEnd, Position
from tests.unit.audit.logs import AT, LOST, PARTITIONS, START, TOPIC, copied, present, rows

OPERATOR_ID = 99
LANES = (0, 1)


class Lane:
    """A lane's log; ``removed`` is the last offset that compaction took, and ``kept`` what no loss may take."""

    def __init__(self, lane: int) -> None:
        self.producer = (7 + lane, 0)
        self.entries: list[Entry] = []
        self.end, self.removed, self.kept = 0, -1, 0

    def compact(self, chance: random.Random, read_to: int) -> None:
        """Remove some records that newer ones replace."""
        newest = {key_and_value(each.record.body)[0]: each for each in self.entries}
        old = [each for each in self.entries if newest[key_and_value(each.record.body)[0]] is not each]
        gone = {each.record.offset for each in old if each.record.offset < read_to and chance.random() < 0.7}
        self.entries = [each for each in self.entries if each.record.offset not in gone]
        self.removed = max([self.removed, *gone])


class History:
    """Two lanes that copy two partitions; the audit has read all that a log loses, and all that compaction takes,
    unless it ``compacts_unread`` records.
    """

    def __init__(self, seed: int, *, compacts_unread: bool = False) -> None:
        self.chance, self.compacts_unread = random.Random(seed), compacts_unread
        self.at, self.layout, self.copied = AT, 0, 0
        self.state, self.found = AuditState(TOPIC, {lane: LaneProgress() for lane in LANES}), list[AuditRow]()
        self.lanes = [Lane(lane) for lane in LANES]
        self.place = {partition: self.chance.choice(LANES) for partition in PARTITIONS}
        self.begin = dict.fromkeys(PARTITIONS, (START,))
        self.held: dict[Partition, Position] = {}
        for partition in PARTITIONS:
            self.copy(partition)
        self.read()

    def run(self, steps: int, weights: dict[str, int]) -> None:
        for kind in self.chance.choices(list(weights), list(weights.values()), k=steps):
            getattr(self, kind)()
        self.read()

    def write(self, lane: int, record: Record, producer: tuple[int, int] | None = None) -> None:
        log = self.lanes[lane]
        log.entries.append(Entry(record._replace(offset=log.end), self.at, *(producer or log.producer)))
        log.end += 2
        self.at += self.chance.randint(0, 3)

    def start(self, lane: int) -> None:
        log = self.lanes[lane]
        log.producer = (log.producer[0], log.producer[1] + 1)
        self.write(lane, encode_mark(Mark(lane, *log.producer), self.at))
        for partition in PARTITIONS:
            if self.place[partition] == lane:
                self.held.pop(partition, None)
        self.held |= present(self.lanes[lane].entries, self.lanes[lane].end).positions

    def restart(self) -> None:
        self.start(self.chance.choice(LANES))

    def copy(self, partition: Partition | None = None) -> None:
        partition, records = partition or self.chance.choice(PARTITIONS), self.chance.randint(1, 5)
        held = self.held.get(partition)
        begin = [
            each for each in self.begin[partition] if held is None or held.next_offset == UNKNOWN != each.next_offset
        ]
        end = CopyEnd(2 * (self.copied + records), 0, 7, 0)  # the copy keeps what the log loses
        held = replace(copied(begin[-1] if begin or held is None else held, records), copy_end=end)
        for position in begin:
            self.write(self.place[partition], encode_position(partition, position, self.at))
            if len(self.begin[partition]) > 1:
                self.start(self.place[partition])
        self.held[partition] = held
        self.write(self.place[partition], encode_position(partition, held, self.at))
        self.copied += records

    def remove(self) -> None:
        """`appliance rm-topic`; it begins anew in a new copy, or in the same one, which an operator has to allow."""
        partition = self.chance.choice(sorted(self.held) or PARTITIONS)
        held, lane = self.held.pop(partition, None), self.place[partition]
        self.start(lane)
        if (held := self.held.pop(partition, held)) is None:
            return
        self.write(lane, encode_tombstone(partition, self.at))
        self.lanes[lane].kept = self.lanes[lane].end
        self.start(lane)
        unknown = replace(START, destination_id=held.destination_id, next_offset=UNKNOWN, copy_end=None)
        same = (unknown, replace(unknown, next_offset=100, copy_end=held.copy_end))
        anew = (
            replace(START, destination_id=uuid.UUID(int=self.chance.getrandbits(99)), copy_end=CopyEnd(0, 0, 7, 0)),
        )
        self.begin[partition] = self.chance.choice((same, anew))

    def change_lanes(self) -> None:
        """`appliance lanes`: announced, then all lanes are fenced, then all positions move in one transaction."""
        self.layout += 1
        operator, changed = (OPERATOR_ID, self.layout), LayoutRecord(self.layout, 2, AT, "me@host")
        for lane in LANES:
            self.write(lane, encode_layout(lane, replace(changed, changing=True), self.at), operator)
        if self.chance.random() < 0.5:
            self.copy()
        for lane in LANES:
            self.start(lane)
        place = {partition: self.chance.choice(LANES) for partition in PARTITIONS}
        moved = [partition for partition in self.held if place[partition] != self.place[partition]]
        for partition in moved:
            self.write(place[partition], encode_position(partition, self.held[partition], self.at), operator)
            self.write(self.place[partition], encode_tombstone(partition, self.at), operator)
        for lane in LANES:
            self.write(lane, encode_layout(lane, changed, self.at), operator)
            self.lanes[lane].kept = self.lanes[lane].end
        self.place = place
        for lane in LANES:
            self.start(lane)

    def read_some(self) -> None:
        lane = self.chance.choice(LANES)
        log, at = self.lanes[lane], max(0, self.state.lanes[lane].read_to)
        if at < log.end:
            to = min(log.end, at + self.chance.randint(1, 20))
            part = [each for each in log.entries if at <= each.record.offset < to]
            read = LogRange(part, to, min(log.removed + 1, to) if log.removed >= at else -1)
            self.found += rows(self.state, read, row_ms=self.chance.choice((0, 5)), lane=lane)
            self.state = decode_state(encode_state(self.state))

    def read(self) -> None:
        while any(max(0, self.state.lanes[lane].read_to) < self.lanes[lane].end for lane in LANES):
            self.read_some()

    def compact(self) -> None:
        lane = self.chance.choice(LANES)
        log = self.lanes[lane]
        log.compact(self.chance, log.end if self.compacts_unread else self.state.lanes[lane].read_to)

    def truncate(self) -> None:
        self.read()
        lane = self.chance.choice(LANES)
        log = self.lanes[lane]
        log.end = self.chance.choice([log.kept, self.chance.randint(log.kept, log.end)]) // 2 * 2
        log.entries = [each for each in log.entries if each.record.offset < log.end]
        self.at += 1
        self.start(lane)
        for _ in range(self.chance.randint(0, 3)):
            self.copy()
        self.found += self.state.after_truncation(lane, present(log.entries, log.end), 5, self.at, str)


STAYING = {"copy": 10, "restart": 2, "read_some": 6, "compact": 2, "truncate": 1}
MOVING = STAYING | {"change_lanes": 2, "remove": 1}


@pytest.mark.parametrize("seed", range(100))
def test_whatever_a_log_loses_the_rows_lie_one_after_the_other_up_to_the_position_and_none_counts_twice(
    seed: int,
) -> None:
    history = History(seed, compacts_unread=True)
    history.run(60, STAYING)
    counted = sum(row.records for row in history.found)
    unknown = [row for row in history.found if row.kind is Kind.UNAUDITED]
    assert counted <= history.copied
    assert counted == history.copied or unknown
    assert all((row.records, row.cause) == (0, LOST) for row in unknown)
    assert all(row.kind is Kind.COPIED and row.bytes == 10 * row.records for row in history.found if not row.cause)
    for partition in PARTITIONS:
        own = [row for row in history.found if row.partition == partition[1]]
        assert [row.source_from for row in own] == [100, *(row.source_to for row in own[:-1])][: len(own)]
        log = history.lanes[history.place[partition]]
        position = present(log.entries, log.end).positions.get(partition)
        assert position is None or (own[-1].source_to if own else 100) == position.next_offset


@pytest.mark.parametrize("seed", range(60))
def test_whatever_two_lanes_lose_and_wherever_partitions_go_each_record_is_in_one_row_or_a_row_says_so(
    seed: int,
) -> None:
    history = History(seed)
    history.run(50, MOVING)
    counted = sum(row.records for row in history.found)
    assert counted <= history.copied
    assert counted == history.copied or LOST in [row.cause for row in history.found]
    assert all(row.records >= 0 and (row.kind is Kind.UNAUDITED) == (row.cause == LOST) for row in history.found)
    assert all(row.records == 0 for row in history.found if row.cause == LOST)
