import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.model.checkpoint import OPERATOR, Gap, LaneCheckpoint, LinkRecord, Owner, StartOffsets
from appliance.link.model.checkpoint_records import newest
from appliance.link.model.copy_states import CopyState, StateRecord
from appliance.link.model.lane_moves import (
    Segments,
    announcement,
    layout_records,
    misplaced_segments,
    moved_segments,
    next_number,
    segments_in,
)
from appliance.link.model.layout import Layout, LayoutRecord
from appliance.link.model.link_check import PositionsTopic, layout_fault, unfit_for_a_change
from appliance.link.model.link_sql import LinkSql, SqlChange, history, newest_change
from appliance.link.model.naming import Naming
from appliance.link.model.offset_records import segment_key
from appliance.link.model.position import Position, SourcePlace
from appliance.settings.parse import parse
from appliance.settings.role import Role
from tests.support.settings import REQUIRED

SOURCE, COPY = uuid.UUID(int=1), uuid.UUID(int=2)
OWNER = Owner(OPERATOR, "change", "host", 5, 3)
PARTITIONS = [Partition(f"topic-{number % 7}", number) for number in range(60)]
SEEDS = range(200)


def layout_of(chance: random.Random, number: int) -> Layout:
    lanes = chance.choice((1, 2, 3, 5, 8, 13))
    some = chance.sample(PARTITIONS, chance.choice((0, 0, 5, 20)))
    return Layout(lanes, number, {each: chance.randrange(lanes) for each in some})


def link_of(chance: random.Random, layout: Layout) -> list[LaneCheckpoint]:
    """The checkpoints of a link with positions, gaps and states; some partitions may be above its lanes."""
    checkpoints = [LaneCheckpoint() for _ in range(layout.lanes + chance.choice((0, 0, 4)))]
    for partition in chance.sample(PARTITIONS, 40):
        held = checkpoints[layout.lane_of(*partition)]
        held.positions[partition] = Position(SOURCE, COPY, chance.randrange(10**9), 0, records=chance.randrange(10**6))
        for _ in range(chance.choice((0, 0, 0, 1, 3))):
            held.add(Gap(partition, SOURCE, chance.randrange(100), 100, "retention", chance.randrange(100)))
    states = {name: StateRecord(name, CopyState.PAUSED, 1, "me@host") for name in chance.sample("abcd", 2)}
    for lane, checkpoint in enumerate(checkpoints):
        checkpoint.states.update(states if lane < layout.lanes else {})
        checkpoint.layout = LayoutRecord(layout.number, layout.lanes, 1, "me@host") if layout.number else None
    checkpoints[0].link = LinkRecord("orange", layout.lanes, 0, 1).laid_out(layout, len(checkpoints))
    checkpoints[0].starts["a"] = StartOffsets("a", SOURCE, (SourcePlace(3, 0), SourcePlace(4, 1)))
    return checkpoints


def write(checkpoints: Sequence[LaneCheckpoint], records: Mapping[int, Sequence[Record]]) -> None:
    for lane, own in records.items():
        for _, remembered in newest(own):
            checkpoints[lane].add(remembered)


def union(checkpoints: Sequence[LaneCheckpoint]) -> tuple[list[object], list[object]]:
    """All positions and gaps, doubles included."""
    positions: list[object] = [item for each in checkpoints for item in each.positions.items()]
    return sorted(positions, key=str), sorted((gap for each in checkpoints for gap in each.gaps.values()), key=str)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_position_gap_and_state_is_in_its_lane_afterwards_and_none_is_lost_or_doubled(seed: int) -> None:
    chance = random.Random(seed)
    before = layout_of(chance, chance.choice((0, 3)))
    checkpoints = link_of(chance, before)
    was, starts = union(checkpoints), dict(checkpoints[0].starts)
    after = layout_of(chance, before.number + 1)
    write(
        checkpoints, announcement(len(checkpoints), LayoutRecord(after.number, after.lanes, 2, "me", "", True), OWNER)
    )
    assert not any(each.allows(number) for each in checkpoints for number in (before.number, after.number))
    assert f"`appliance lanes --set {after.lanes}` ends it" in layout_fault(topic(checkpoints))
    checkpoints += [LaneCheckpoint() for _ in range(after.lanes - len(checkpoints))]
    link = checkpoints[0].link
    assert link is not None
    changed = link.laid_out(after, len(checkpoints))
    write(checkpoints, layout_records(checkpoints, changed, LayoutRecord(after.number, after.lanes, 3, "me"), OWNER, 3))
    assert union(checkpoints) == was
    assert list(topic(checkpoints).misplaced_positions(after)) == []
    for lane, checkpoint in enumerate(checkpoints):
        assert {after.lane_of(*gap.partition) for gap in checkpoint.gaps.values()} <= {lane}
    assert all(each.allows(after.number) and not each.allows(before.number) for each in checkpoints)
    assert all(each.states == checkpoints[0].states for each in checkpoints[: after.lanes])
    assert {each.owner for each in checkpoints} == {OWNER}
    assert (checkpoints[0].link, checkpoints[0].starts) == (changed, starts)
    assert topic(checkpoints).layout == after
    assert not unfit_for_a_change(topic(checkpoints), [], NAMING)


NAMING = Naming.of(parse(REQUIRED, Role.REPLICATOR))


def topic(checkpoints: Sequence[LaneCheckpoint]) -> PositionsTopic:
    return PositionsTopic("positions", "compact", checkpoints)


def test_a_change_whose_markers_are_not_all_seen_is_named_and_no_fault_for_the_command_that_ends_it() -> None:
    chance = random.Random(1)
    before, after = Layout(2), Layout(5, 1)
    checkpoints = [*link_of(chance, before), *(LaneCheckpoint() for _ in range(3))][:5]
    link = checkpoints[0].link
    assert link is not None
    record = LayoutRecord(1, 5, 3, "me")
    records = layout_records(checkpoints, link.laid_out(after, 5), record, OWNER, 3)
    for seen in range(1, 5):
        write(checkpoints, {lane: records[lane] for lane in range(seen)})
        assert f"positions-{seen} is of the link's layout 0, not 1" in layout_fault(topic(checkpoints))
        assert not unfit_for_a_change(topic(checkpoints), [], NAMING)
    write(checkpoints, records)
    assert not layout_fault(topic(checkpoints))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_lane_knows_the_links_sql_afterwards_and_the_sql_of_each_partition_is_as_it_was(seed: int) -> None:
    chance = random.Random(seed)
    raw, sql = LinkSql(), LinkSql(1, "SELECT 1")
    layout = layout_of(chance, 0)
    checkpoints = link_of(chance, layout)
    wanted: dict[Partition, list[tuple[int, LinkSql]]] = {}
    for checkpoint in checkpoints[: layout.lanes]:
        agreed, offsets = chance.random() < 0.6, {}
        for partition, held in checkpoint.positions.items():
            wanted[partition] = [(0, raw), (held.next_offset, sql)]
            if agreed and chance.random() < 0.5:
                offsets[partition] = held.next_offset // 2
                wanted[partition] = [(0, raw), (held.next_offset // 2, sql)]
            elif agreed:  # it had no position when its lane agreed
                wanted[partition] = [(0, sql)]
        if agreed:
            run = chance.choice("ab")  # two runs with the same SQL, one after the other
            checkpoint.add(SqlChange(sql, run, ord(run), 0, offsets))
    known = any(checkpoint.sql for checkpoint in checkpoints)
    for number in (1, 2, 3):
        after = layout_of(chance, number)
        checkpoints += [LaneCheckpoint() for _ in range(after.lanes - len(checkpoints))]
        link = checkpoints[0].link
        assert link is not None
        record = LayoutRecord(number, after.lanes, 3, "me")
        write(checkpoints, layout_records(checkpoints, link.laid_out(after, len(checkpoints)), record, OWNER, 3))
        changes = [change for checkpoint in checkpoints for change in checkpoint.sql.values()]
        for checkpoint in checkpoints[: after.lanes] if known else ():
            newest = newest_change(checkpoint.sql.values())
            assert newest is not None
            assert newest.sql == sql
        assert {partition: history(changes, partition) for partition in wanted if known} == (wanted if known else {})


@pytest.mark.parametrize("seed", SEEDS)
def test_every_segment_is_in_its_lane_afterwards_in_its_order_and_nothing_older_holds_again(seed: int) -> None:
    chance = random.Random(seed)
    before, after = layout_of(chance, 0), layout_of(chance, 1)
    lanes: list[dict[tuple[tuple[str, int], int], Record]] = [{} for _ in range(max(before.lanes, after.lanes))]
    for number in range(200):  # some lie elsewhere: what a killed change has left
        partition = chance.choice(PARTITIONS)
        lane = before.lane_of(*partition) if chance.random() < 0.8 else chance.randrange(len(lanes))
        lanes[lane][partition, chance.randrange(5)] = Record(number, number, b"%d" % number)
    wanted = {partition: _of(lanes, before, partition) for partition in PARTITIONS}
    segments: list[Segments] = [dict(each) for each in lanes]
    _drop(lanes, misplaced_segments(segments, before, 1))
    for lane, records in moved_segments(segments_in(segments, before), after).items():
        known = {record: key for each in segments for key, record in each.items()}
        for record in records:
            lanes[lane].pop(known[record], None)
            lanes[lane][known[record]] = record
    _drop(lanes, misplaced_segments([dict(each) for each in lanes], after, 1))
    assert {partition: _of(lanes, after, partition) for partition in PARTITIONS} == wanted
    assert all(after.lane_of(*key[0]) == lane for lane, each in enumerate(lanes) for key in each)


def _of(lanes: Sequence[Segments], layout: Layout, partition: tuple[str, int]) -> list[Record]:
    return [record for (of, _), record in lanes[layout.lane_of(*partition)].items() if of == partition]


def _drop(lanes: Sequence[dict[tuple[tuple[str, int], int], Record]], records: Mapping[int, Sequence[Record]]) -> None:
    for lane, dropped in records.items():
        for record in dropped:
            del lanes[lane][segment_key(record)]


def test_case_481_a_layout_gets_a_number_that_none_has_had_though_the_link_record_was_lost_with_it() -> None:
    # Before, a replicator of the layout that only the other lanes tell of was allowed to write in the next one.
    checkpoints = link_of(random.Random(3), Layout(4))[:4]
    link = checkpoints[0].link
    assert link is not None
    assert next_number(checkpoints, link) == 1
    write(checkpoints, announcement(4, LayoutRecord(1, 6, 2, "me", "", changing=True), OWNER))
    assert next_number(checkpoints, link) == 1  # the same change again
    lost = {
        lane: own
        for lane, own in layout_records(checkpoints, link, LayoutRecord(1, 4, 3, "me"), OWNER, 3).items()
        if lane
    }
    write(checkpoints, lost)
    checkpoints[0].layout = None
    assert next_number(checkpoints, link) == 2


def test_an_older_layouts_lane_may_not_write_where_no_lane_is_any_more() -> None:
    checkpoints = link_of(random.Random(2), Layout(8))[:8]
    link = checkpoints[0].link
    assert link is not None
    after = Layout(2, 1)
    write(checkpoints, layout_records(checkpoints, link.laid_out(after, 8), LayoutRecord(1, 2, 3, "me"), OWNER, 3))
    assert not any(each.allows(0) for each in checkpoints)
    assert not any(each.positions or each.gaps for each in checkpoints[2:])
    assert not replace(checkpoints[0], layout=None).allows(1)  # nor a newer one's before it is there
