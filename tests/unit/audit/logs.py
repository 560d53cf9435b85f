"""Logs of lanes, and the rows that the audit table has of them."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace

from appliance.audit.model.entries import ANY_DAY, DAY_MS, Entry, LogRange
from appliance.audit.model.rows import AuditRow
from appliance.audit.model.state import AuditState, LaneProgress
from appliance.audit.model.taking import take
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.model.checkpoint import LaneCheckpoint, Mark, Owner
from appliance.link.model.checkpoint_records import (
    decode,
    encode_layout,
    encode_mark,
    encode_owner,
    encode_position,
    encode_tombstone,
)
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.position import CopyEnd, Position

SOURCE, COPY, TOPIC = (uuid.UUID(int=number) for number in (1, 2, 3))
PARTITION = Partition("orders", 0)
PARTITIONS = (Partition("orders", 0), Partition("orders", 1))
START = Position(SOURCE, COPY, 100, 0, copy_end=CopyEnd(0, 0, 7, 0))
AT = 20_000 * DAY_MS
LOST = "the positions topic lost records: what was copied up to here has no rows, or not all"


class Log:
    """A lane's log: positions and other records, each as a committed entry."""

    def __init__(self, lane: int = 0) -> None:
        self.lane = lane
        self.entries: list[Entry] = []
        self.at = AT
        self.epoch = 0

    def add(self, *records: Record) -> None:
        """A transaction with these records, and its marker."""
        base = self.entries[-1].record.offset + 2 if self.entries else 0
        for number, record in enumerate(records):
            self.entries.append(Entry(record._replace(offset=base + number), self.at, 7, self.epoch))
        self.at += 1000

    def position(self, position: Position) -> Position:
        self.add(encode_position(PARTITION, position, self.at))
        return position

    def start(self) -> None:
        """A start of the lane: its mark, by a new epoch."""
        self.epoch += 1
        self.add(encode_mark(Mark(self.lane, 7, self.epoch), self.at))

    def owner(self, run: str) -> None:
        self.epoch += 1
        self.add(encode_owner(self.lane, Owner(run, "worker", "host", self.at), self.at))

    def range(self, first: int = 0, without: Sequence[int] = ()) -> LogRange:
        """The log from an offset on, as it is after compaction has removed these entries."""
        kept = [entry for number, entry in enumerate(self.entries) if number not in without]
        removed = [entry.record.offset for number, entry in enumerate(self.entries) if number in without]
        entries = [entry for entry in kept if entry.record.offset >= first]
        return LogRange(entries, self.entries[-1].record.offset + 2, max(removed, default=-2) + 1)


def rows(state: AuditState, log_range: LogRange, row_ms: int = 0, lane: int = 0) -> list[AuditRow]:
    return take(state, lane, log_range, ANY_DAY, row_ms, lambda topic: f"{topic}.copy")


def rows_of_lanes(state: AuditState, logs: Sequence[Log], order: Sequence[int]) -> list[AuditRow]:
    """The rows of all lanes' logs, each read in this order until all are read."""
    found: list[AuditRow] = []
    for lane in order:
        state.lanes.setdefault(lane, LaneProgress())
    for lane in [*order, *order]:
        read_to = state.lanes[lane].read_to
        found += rows(state, logs[lane].range(max(0, read_to)), lane=lane)
    assert all(state.lanes[lane].read_to == logs[lane].range().following for lane in order)
    return found


def copied(before: Position, records: int, offsets: int = 0, rebuilt: int = 0) -> Position:
    """The position after a transaction with this many records, in so many source offsets."""
    assert before.copy_end is not None
    return replace(
        before,
        next_offset=before.next_offset + (offsets or records),
        records=before.records + records,
        bytes=before.bytes + 10 * records,
        rebuilt=(before.rebuilt or 0) + rebuilt,
        copy_end=replace(before.copy_end, offset=before.copy_end.offset + records + 1),
    )


def change_lanes(old: Log, new: Log, held: Position | None = None) -> None:
    """A change of lanes as the command writes it: announced, then decided, each in one transaction of both lanes."""
    changed, lane_id = LayoutRecord(1, 2, AT, "me@host"), old.epoch
    for log in (old, new):
        log.epoch = 99
        log.add(encode_layout(log.lane, replace(changed, changing=True), AT))
    moved = () if held is None else (encode_position(PARTITION, held, AT),)
    old.add(*(encode_tombstone(PARTITION, AT) for _ in moved), encode_layout(0, changed, AT))
    new.add(*moved, encode_layout(1, changed, AT))
    old.epoch, new.epoch = lane_id, 0


def present(entries: Iterable[Entry], end: int) -> LaneCheckpoint:
    """What a lane's log holds now."""
    checkpoint = LaneCheckpoint(read_to=end)
    for entry in entries:
        checkpoint.add(decode(entry.record))
    return checkpoint


def ten_copied() -> Log:
    """A log of a mark, a first position, and ten positions with five records each; without records of its producer."""
    log = Log()
    log.start()
    held = log.position(START)
    for _ in range(10):
        held = log.position(copied(held, 5))
    return log
