"""The rows of the audit table, from the records of a lane's log."""

import itertools
import random
import uuid
from dataclasses import replace

import pytest

from appliance.audit.model import taking
from appliance.audit.model.entries import DAY_MS
from appliance.audit.model.rows import AuditRow, Kind
from appliance.audit.model.state import AuditState, decode_state, encode_state
from appliance.audit.model.taking import take
from appliance.errors import PeerError
from appliance.kafka.records.records import Record, body, key_and_value
from appliance.link.model.checkpoint import Gap
from appliance.link.model.checkpoint_records import (
    encode_gap,
    encode_layout,
    encode_position,
    encode_tombstone,
)
from appliance.link.model.layout import LayoutRecord
from tests.unit.audit.logs import AT, PARTITION, SOURCE, START, TOPIC, Log, change_lanes, copied, rows, rows_of_lanes


def test_a_row_is_the_difference_of_two_positions() -> None:
    log = Log()
    log.owner("run-1")
    first = log.position(copied(log.position(START), 5, 8, rebuilt=2))
    log.position(copied(first, 3))
    one, two = rows(AuditState(TOPIC), log.range())
    assert one == AuditRow(
        *(Kind.COPIED, "run-1", 0, "orders", 0, "orders.copy", 100, 108, 0, 6, 5, 50, 2, 0, 0, 0, 1),
        *(AT + 2000, 7, 1, None, 4),
    )
    assert (two.source_from, two.source_to, two.copy_from, two.copy_to, two.records, two.rebuilt) == (
        108, 111, 6, 10, 3, 0,
    )  # fmt: skip


def test_what_the_links_sql_left_out_is_counted_in_the_row_that_passes_it() -> None:
    log = Log()
    held = log.position(copied(log.position(START), 5))
    log.position(replace(copied(held, 3, 9, rebuilt=3), filtered=4, dead_letters=2))
    _, row = rows(AuditState(TOPIC), log.range())
    assert (row.records, row.rebuilt, row.filtered, row.dead_letters) == (3, 3, 4, 2)


def test_positions_of_one_stretch_of_time_and_one_producer_are_one_row() -> None:
    log = Log()
    held = log.position(START)
    for _ in range(10):
        held = log.position(copied(held, 1))
    log.owner("run-2")
    log.position(copied(held, 1))
    found = rows(AuditState(TOPIC), log.range(), row_ms=60_000)
    assert [(row.records, row.transactions, row.producer_epoch, row.run) for row in found] == [
        (10, 10, 0, None),
        (1, 1, 1, "run-2"),
    ]


@pytest.mark.parametrize("seed", range(30))
def test_whatever_compaction_removes_and_wherever_reading_is_cut_the_sums_are_the_same(seed: int) -> None:
    chance = random.Random(seed)
    log = Log()
    held = log.position(START)
    for _ in range(30):
        if chance.random() < 0.2:
            log.owner(f"run-{log.epoch}")
        held = log.position(copied(held, chance.randint(0, 5), chance.randint(5, 9), chance.randint(0, 3)))
    state, found, at = AuditState(TOPIC), list[AuditRow](), 0
    while at < log.range().following:
        newest = len(log.entries) - 1
        removed = [number for number in range(1, newest) if chance.random() < 0.3]
        part = log.range(at, removed).before(at + chance.randint(1, 20))
        found += rows(state, part, row_ms=chance.choice((0, 5000)))
        state, at = decode_state(encode_state(state)), part.following
    assert sum(row.records for row in found) == held.records
    assert sum(row.bytes for row in found) == held.bytes
    assert [row.source_from for row in found] == [100, *(row.source_to for row in found[:-1])]
    assert [row.copy_from for row in found] == [0, *(row.copy_to for row in found[:-1])]
    assert found[-1].source_to == held.next_offset


def test_what_was_copied_before_the_audit_began_is_a_row_that_says_so() -> None:
    log = Log()
    log.position(copied(copied(START, 40), 2))
    (row,) = rows(AuditState(TOPIC), log.range())
    assert (row.kind, row.source_from, row.source_to, row.records) == (Kind.UNAUDITED, None, 142, 42)
    assert row.cause == "copied before the audit began"


def test_where_compaction_was_faster_the_row_does_not_say_how_many_transactions_it_covers() -> None:
    log = Log()
    held = log.position(START)
    for _ in range(3):
        held = log.position(copied(held, 1))
    state = AuditState(TOPIC)
    found = rows(state, log.range(without=[1, 2]))
    assert [(row.records, row.transactions) for row in found] == [(3, None)]


def test_a_gap_is_a_row_with_its_cause() -> None:
    log = Log()
    held = log.position(copied(log.position(START), 5))
    moved = replace(held, next_offset=200)
    gap = Gap(PARTITION, SOURCE, held.next_offset, 200, "retention was faster", AT)
    log.add(encode_position(PARTITION, moved, AT), encode_gap(gap, AT))
    log.position(copied(moved, 1))
    found = rows(AuditState(TOPIC), log.range(), row_ms=60_000)
    assert [(row.kind, row.source_from, row.source_to, row.records, row.cause) for row in found] == [
        (Kind.COPIED, 100, 105, 5, None),
        (Kind.GAP, 105, 200, 0, "retention was faster"),
        (Kind.COPIED, 200, 201, 1, None),
    ]


def test_a_gap_whose_position_compaction_removed_is_named_by_the_next_row() -> None:
    log = Log()
    held = log.position(START)
    moved = replace(held, next_offset=200)
    gap = Gap(PARTITION, SOURCE, 100, 200, "retention was faster", AT)
    log.add(encode_position(PARTITION, moved, AT), encode_gap(gap, AT))
    log.position(copied(moved, 1))
    (row,) = rows(AuditState(TOPIC), log.range(without=[1]))
    assert (row.source_from, row.source_to, row.records, row.cause) == (100, 201, 1, "retention was faster")


def test_a_gap_that_goes_to_another_lane_with_its_partition_is_no_news() -> None:
    for order in ((0, 1), (1, 0)):
        old, new = Log(0), Log(1)
        held = old.position(copied(old.position(START), 5))
        gap = Gap(PARTITION, SOURCE, held.next_offset, 200, "retention was faster", AT)
        held = replace(held, next_offset=200)
        old.add(encode_position(PARTITION, held, AT), encode_gap(gap, AT))
        held = old.position(copied(held, 1))
        deleted = encode_gap(gap, AT)
        deleted = deleted._replace(body=body(key_and_value(deleted.body)[0], None))
        old.add(encode_tombstone(PARTITION, AT), deleted)
        new.add(encode_position(PARTITION, held, AT), encode_gap(gap, AT))
        new.position(copied(held, 2))
        state = AuditState(TOPIC)
        found = [row for lane in order for row in rows(state, (old, new)[lane].range(), lane=lane)]
        assert sum(row.records for row in found) == 8
        assert found[-1].cause is None
        assert [row.cause for row in found if row.kind is Kind.GAP] == ["retention was faster"] * (order == (0, 1))


def test_a_position_that_was_moved_back_is_a_row_of_its_own() -> None:
    log = Log()
    held = log.position(copied(log.position(START), 5))
    log.owner("operator")
    log.position(replace(held, next_offset=102))
    log.owner("run-2")
    log.position(copied(replace(held, next_offset=102), 3))
    found = rows(AuditState(TOPIC), log.range())
    assert [(row.kind, row.run, row.source_from, row.source_to, row.records) for row in found] == [
        (Kind.COPIED, None, 100, 105, 5),
        (Kind.MOVED, "operator", 105, 102, 0),
        (Kind.COPIED, "run-2", 102, 105, 3),
    ]


def test_a_partition_that_was_removed_and_copied_again_is_counted_twice() -> None:
    log = Log()
    log.position(copied(log.position(START), 5))
    log.add(encode_tombstone(PARTITION, AT))
    log.position(copied(log.position(START), 2))
    found = rows(AuditState(TOPIC), log.range())
    assert [(row.kind, row.source_from, row.records) for row in found] == [(Kind.COPIED, 100, 5), (Kind.COPIED, 100, 2)]


def test_a_partition_that_goes_to_another_lane_is_counted_once_in_either_order_of_reading() -> None:
    for order in ((0, 1), (1, 0)):
        old, new = Log(0), Log(1)
        held = old.position(copied(old.position(START), 5))
        old.add(encode_tombstone(PARTITION, AT))
        new.position(held)
        new.position(copied(held, 2))
        state = AuditState(TOPIC)
        found = [row for lane in order for row in rows(state, (old, new)[lane].range(), lane=lane)]
        assert sum(row.records for row in found) == 7, order


def test_a_partition_that_comes_back_to_its_lane_is_counted_once_in_any_order_of_reading() -> None:
    for order in itertools.permutations((0, 1)):
        old, new = Log(0), Log(1)
        held = old.position(copied(old.position(START), 5))
        old.add(encode_tombstone(PARTITION, AT))
        held = new.position(copied(new.position(held), 2))
        new.add(encode_tombstone(PARTITION, AT))
        old.owner("operator")
        old.position(held)
        old.owner("run-3")
        old.position(copied(held, 3))
        state = AuditState(TOPIC)
        found = [row for lane in order for row in rows(state, (old, new)[lane].range(), lane=lane)]
        assert sum(row.records for row in found) == 10, order
        assert "operator" not in {row.run for row in found}


def test_case_473_a_removed_partition_that_is_copied_again_in_another_lane_is_counted_again() -> None:
    # Before, its rows were left out until it had copied more than before the removal.
    old, new = Log(0), Log(1)
    old.position(copied(old.position(START), 5))
    old.add(encode_tombstone(PARTITION, AT))
    for log in (old, new):
        log.add(encode_layout(log.lane, LayoutRecord(1, 2, AT, "me@host", "", changing=True), AT))
        log.add(encode_layout(log.lane, LayoutRecord(1, 2, AT, "me@host"), AT))
    new.position(copied(new.position(START), 2))
    state = decode_state(encode_state(AuditState(TOPIC)))
    found = rows(state, old.range())
    state = decode_state(encode_state(state))
    found += rows(state, new.range(), lane=1)
    assert [(row.kind, row.lane, row.records) for row in found] == [(Kind.COPIED, 0, 5), (Kind.COPIED, 1, 2)]


def test_case_474_a_gap_of_a_position_that_went_back_is_named_once_though_its_partition_changes_its_lane() -> None:
    # Before, the new lane's record of it made a gap of the next offsets that held nothing to copy.
    for order in ((0, 1), (1, 0)):
        old, new = Log(0), Log(1)
        held = old.position(copied(old.position(START), 5))
        state = AuditState(TOPIC)
        back = replace(held, next_offset=102)
        gap = Gap(PARTITION, SOURCE, held.next_offset, -1, "the operator went on from offset 102", AT)
        old.add(encode_position(PARTITION, back, AT), encode_gap(gap, AT))
        held = old.position(copied(back, 3))
        found = rows(state, old.range())
        old.add(encode_tombstone(PARTITION, AT))
        new.add(encode_position(PARTITION, held, AT), encode_gap(gap, AT))
        new.position(replace(held, next_offset=held.next_offset + 1))
        for lane in order:
            found += rows(state, new.range() if lane else old.range(state.lanes[0].read_to), lane=lane)
        assert [(row.kind, row.lane, row.records, row.cause) for row in found] == [
            (Kind.COPIED, 0, 5, None),
            (Kind.MOVED, 0, 0, gap.cause),
            (Kind.COPIED, 0, 3, None),
            (Kind.COPIED, 1, 0, None),
        ], order


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_case_547_what_was_copied_before_a_change_of_lanes_is_counted_once_though_its_topic_begins_anew(
    order: tuple[int, int],
) -> None:
    # The new lane was read first, where the partition begins anew; then its old position counted as news.
    old, new = Log(), Log(1)
    held = old.position(copied(old.position(START), 2))
    change_lanes(old, new, held)
    new.start()  # `appliance rm-topic`
    new.add(encode_tombstone(PARTITION, AT))
    new.start()  # a topic that is taken again
    new.position(copied(new.position(START), 1))
    found = rows_of_lanes(AuditState(TOPIC), (old, new), order)
    assert [(row.kind, row.records) for row in found] == [(Kind.COPIED, 2), (Kind.COPIED, 1)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_case_560_a_topic_that_is_taken_again_in_another_lane_has_its_rows_though_its_removal_is_read_later(
    order: tuple[int, int],
) -> None:
    # What it copied there up to as many records as before the removal had no rows, and nothing said so.
    old, new = Log(), Log(1)
    old.position(copied(old.position(START), 5))
    old.start()
    old.add(encode_tombstone(PARTITION, AT))
    change_lanes(old, new)
    new.position(copied(new.position(START), 2))
    found = rows_of_lanes(AuditState(TOPIC), (old, new), order)
    assert [(row.lane, row.records) for row in found] == [(0, 5), (1, 2)]


def test_positions_of_older_releases_leave_open_how_many_records_were_rebuilt() -> None:
    log = Log()
    held = log.position(replace(copied(log.position(START), 5), rebuilt=None))
    log.position(copied(held, 3, rebuilt=3))
    log.position(copied(copied(held, 3, rebuilt=3), 1))
    assert [row.rebuilt for row in rows(AuditState(TOPIC), log.range())] == [None, None, 0]


def test_a_file_has_one_day_and_the_next_entry_begins_another() -> None:
    log = Log()
    held = log.position(copied(log.position(START), 5))
    log.at = AT + DAY_MS
    log.position(copied(held, 3))
    state, read = AuditState(TOPIC), log.range()
    (first,) = take(state, 0, read, read.first_day, 0, str)
    rest = log.range(state.lanes[0].read_to)
    (second,) = take(state, 0, rest, rest.first_day, 0, str)
    assert [row.committed // DAY_MS for row in (first, second)] == [20_000, 20_001]


def test_a_position_in_a_new_positions_topic_begins_again() -> None:
    log = Log()
    log.position(copied(log.position(START), 5))
    state = AuditState(TOPIC)
    rows(state, log.range())
    assert not state.of_topic(uuid.UUID(int=9))
    again = Log()
    again.position(copied(START, 4))
    (row,) = rows(state, again.range())
    assert (row.kind, row.records, row.cause) == (Kind.UNAUDITED, 4, "the positions topic was made anew")


def test_a_state_of_a_newer_release_is_refused() -> None:
    with pytest.raises(PeerError, match="damaged"):
        decode_state(encode_state(AuditState(TOPIC))[:-8])


def test_a_long_key_of_the_positions_topic_is_not_kept_and_a_damaged_one_is_an_error() -> None:
    kept = taking._kind_of.cache_info().currsize
    taking._key(Record(1, 1, body(b'{"topic":"p","partition":0,"x":"%s"}' % (b"y" * 2000), b"")))
    assert taking._kind_of.cache_info().currsize == kept
    for key in (b'{"topic":"p","partition":1e400}', b"[" * 100_000):
        with pytest.raises(PeerError, match="offset 1"):
            taking._key(Record(1, 1, body(key, b"")))
