import base64
import json
import random
import uuid
import zlib
from dataclasses import replace

import pytest

from appliance.engine.model import map_growth
from appliance.engine.model.map_growth import MapGrowth
from appliance.errors import BatchCorrupt, PeerError
from appliance.kafka.records.outgoing import Outgoing
from appliance.kafka.records.records import Record, body
from appliance.link.model import offset_tail
from appliance.link.model.offset_map import OffsetMap, Segment, is_copied, overlay
from appliance.link.model.offset_records import decode_bounds, decode_segment, tail_headers, tail_of
from appliance.link.model.offset_runs import Group, pack_group
from appliance.link.model.offset_tail import OffsetTail, unpack_tail
from appliance.link.model.position import CopyEnd, Loss, SourcePlace
from tests.support.copying_lane import REPLICA, START, CopyingLane, assert_exact

HISTORIES = 150
STEPS = 30


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small bounds, so that tails and segments fill up within a history."""
    monkeypatch.setattr(map_growth, "TAIL_BYTES", 6)
    monkeypatch.setattr(map_growth, "SEGMENT_BYTES", 20)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_of_a_copy_that_nothing_befell_every_offset_is_known(seed: int) -> None:
    lane = CopyingLane(random.Random(seed))
    events = (
        *(lane.produce, lane.copy_some, lambda: lane.copy_some(strangers=True)),
        *(lane.abort_some, lane.restart, lane.thin, lane.expire),
    )
    for _ in range(STEPS):
        lane.chance.choice(events)()
    assert_exact(lane, complete=lane.held.tail is not None)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_whatever_befalls_a_copy_a_translation_is_exact_or_unknown(seed: int) -> None:
    lane = CopyingLane(random.Random(seed))
    events = (
        *(lane.produce, lane.copy_some, lane.copy_some, lane.copy_some, lane.abort_some, lane.restart, lane.thin),
        *(lambda: lane.copy_some(strangers=True), lane.lose, lane.go_on_elsewhere, lane.forget_the_tail),
        *(lane.expire, lane.build),
    )
    for _ in range(STEPS):
        lane.chance.choice(events)()
        assert_exact(lane)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_case_720_whatever_befalls_a_mapped_copy_no_group_is_placed_past_a_record_that_it_has_not_read(
    seed: int,
) -> None:
    # After a backward reset, a place moved past older copies of records that the copy did not hold again yet.
    lane = CopyingLane(random.Random(seed))

    def lose() -> None:
        end = lane.chance.randint(lane.start, len(lane.copy))
        if any(of is not None for of in lane.copy[end:]) and lane.held.copy_end:
            lane.copy = lane.copy[:end]
            lane.remember(lane.held.stop_shortened("has lost", 1, Loss(end)))
            lane.restart()
            lane.remember(replace(lane.held.go_on(), copy_end=None))

    def go_on_elsewhere() -> None:
        at = lane.chance.randint(0, len(lane.source))
        lane.remember(lane.held.begin_again(REPLICA.source_id, REPLICA.destination_id, SourcePlace(at, 0)))

    events = (
        *(lane.produce, lane.copy_some, lane.copy_some, lane.copy_some, lane.abort_some, lane.restart, lane.thin),
        *(lambda: lane.copy_some(strangers=True), lane.expire, lose, go_on_elsewhere),
    )
    for _ in range(STEPS):
        lane.chance.choice(events)()
        found = lane.map()
        for offset in range(len(lane.source) + 1):
            unread = [at for at, of in enumerate(lane.copy) if at >= lane.start and of is not None and of >= offset]
            place = found.unread_from(offset, lane.start).offset
            assert place is None or lane.start <= place <= min(unread, default=place), f"{offset}: {place}, {unread}"


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_case_721_of_a_copy_that_nothing_befell_every_group_has_its_exact_place_also_below_the_sources_start(
    seed: int,
) -> None:
    # A group below the source's log start, which the link had never seen, was unknown for ever.
    lane = CopyingLane(random.Random(seed))
    lane.source = [False] * lane.chance.randint(0, 20)  # retention has deleted them before the link began
    lane.held = replace(START, next_offset=len(lane.source), copy_end=None, tail=OffsetTail.begin(len(lane.source), 0))
    events = (lane.produce, lane.copy_some, lambda: lane.copy_some(strangers=True), lane.abort_some, lane.expire)
    for _ in range(STEPS):
        lane.chance.choice(events)()
    for offset in range(len(lane.source) + 1 if lane.held.records else 0):
        place = lane.map().unread_from(offset, lane.start).offset
        assert place is not None, f"{offset} of {lane.held}"
        assert place >= lane.start
        below, above = (
            [of for of in part if of is not None] for part in (lane.copy[lane.start : place], lane.copy[place:])
        )
        assert all(of < offset for of in below)
        assert all(of >= offset for of in above)


def test_case_202_what_a_copy_has_lost_stays_unknown_when_compaction_gives_the_key_of_its_cut_to_a_built_segment() -> (
    None
):
    # A built segment that took the cut's place cut nothing: older segments held again, of copies that were lost.
    lost = [segment(0, 0, 5), segment(5, 5, 5)]
    cut = segment(20, 0, 0)
    built = replace(segment(20, 0, 8), fills=True)
    newest = segment(28, 8, 4)
    for written in ([*lost, cut, newest, built], [*lost, newest, built], [lost[1], newest, built]):
        known: list[Segment] = []
        for each in written:
            overlay(known, each)
        position = replace(START, next_offset=32, tail=OffsetTail.begin(32, 12), copy_end=CopyEnd(12, 0, 1, 0))
        found = OffsetMap(known, position)
        assert [found.translate(offset).offset for offset in (0, 4, 5, 9)] == [None] * 4
        assert [found.translate(offset).offset for offset in (20, 27, 28, 31, 32)] == [0, 7, 8, 11, 12]


def test_case_203_a_hole_that_begins_where_a_copy_was_cut_is_filled() -> None:
    # The cut itself, which says nothing, kept the built segment out: the command built it again and again.
    known: list[Segment] = []
    for each in (segment(20, 0, 0), replace(segment(20, 0, 8), fills=True)):
        overlay(known, each)
    found = OffsetMap(known, replace(START, next_offset=28, tail=OffsetTail.begin(28, 8)))
    assert found.holes() == []
    assert found.translate(23).offset == 3


def test_case_682_the_writer_of_a_batch_in_a_copy_is_known_by_the_map_or_not_at_all() -> None:
    # Producer ids said it, and they are forgotten. A hole of the map is no answer.
    own, further = segment(0, 10, 5), segment(20, 30, 4)
    others = replace(own, range=own.range._replace(copy_to=20))  # of others from 15 on, and its marker
    known = [others, further, segment(24, 40, 0)]
    asked = {span: is_copied(known, *span) for span in ((10, 14), (12, 12), (15, 18), (19, 19), (30, 33), (33, 33))}
    assert list(asked.values()) == [True, True, False, False, True, True]
    assert [is_copied(known, at, at + 1) for at in (0, 20, 28, 34, 40)] == [None] * 5
    assert is_copied([], 0, 0) is None


def segment(source: int, copy: int, length: int) -> Segment:
    """One run of records."""
    tail = OffsetTail.begin(source, copy)
    if length:
        run = Outgoing(b"", length, source, source + length, -1, False)
        tail = tail.copied([run], copy, source + length, copy + length)
    return Segment(REPLICA.source_id, REPLICA.destination_id, tail)


@pytest.mark.parametrize(
    ("bounds", "group"),
    [((0, 0, 9, 20), Group(1, 1, 9)), ((0, 0, 20, 9), Group(1, 1, 9)), ((0, 0, 20, 20), Group(1, 1, 0))],
    ids=["more source offsets than it covers", "more copies than it covers", "a run of nothing"],
)
def test_case_108_a_tail_whose_runs_do_not_fit_its_bounds_is_none(
    bounds: tuple[int, int, int, int], group: Group
) -> None:
    # Before, the next transaction packed gaps below 0, and its task ended.
    with pytest.raises(BatchCorrupt):
        unpack_tail(*bounds, pack_group(group))
    source, copy, source_to, copy_to = bounds
    damaged = OffsetTail(source, copy, source_to, copy_to, pack_group(group))
    assert tail_of(dict(tail_headers(damaged))) is None


def test_case_109_a_damaged_map_begins_anew_and_ends_no_task() -> None:
    damaged = OffsetTail(0, 0, 500, 500, b"\xff" * 300, Group(0, 0, 1), 500, 500)
    before, after = replace(START, tail=None), replace(START, next_offset=500, tail=damaged)
    grown = MapGrowth().grow({REPLICA.source: before}, {REPLICA: after}, True)
    assert list(grown.damaged) == [REPLICA.source]
    assert grown.positions[REPLICA].tail == OffsetTail.begin(500, 500)
    ((_, cut),) = grown.segments
    assert (cut.range.is_empty, cut.range.copy_from) == (True, 0)


def test_case_110_a_segment_that_is_not_full_is_not_unpacked_each_time_it_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Before, each added tail unpacked and packed all groups of the segment.
    tail = unpack_tail(0, 0, 10_000, 10_000, pack_group(Group(1, 2, 3)) * 1_000)

    def never(_: bytes) -> None:
        raise AssertionError("unpacked")

    monkeypatch.setattr(offset_tail, "unpack_groups", never)
    assert list(tail.pieces(8 * 1024)) == [tail]


@pytest.mark.parametrize(("groups", "is_read"), [(8 * 1024, True), (1_000_000, False)])
def test_case_1028_a_segment_of_more_than_its_bytes_is_refused_before_its_groups_are_read(
    groups: int, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ten thousand bytes were eight million groups, and half a minute without an await.
    read: list[int] = []

    def unpacked(source: int, copy: int, source_to: int, copy_to: int, packed: bytes) -> OffsetTail:
        read.append(len(packed))
        return OffsetTail(source, copy, source_to, copy_to)

    monkeypatch.setattr("appliance.link.model.offset_records.unpack_tail", unpacked)
    runs, number = base64.b64encode(zlib.compress(b" " * groups)).decode(), uuid.UUID(int=1).hex
    value = {"version": 1, "source_id": number, "destination_id": number, "source": [0, 2**62], "copy": [0, 2**62]}
    record = Record(3, 1, body(b'{"topic":"p","partition":0,"from":0}', json.dumps({**value, "runs": runs}).encode()))
    if is_read:
        assert decode_segment(record)[1] is not None
    else:
        with pytest.raises(PeerError, match="offset 3"):
            decode_segment(record)
    assert read == [groups] * is_read


@pytest.mark.parametrize("key", [b'{"topic":"p","partition":0,"from":1e400}', b"[" * 100_000])
def test_a_damaged_key_of_a_segment_is_refused(key: bytes) -> None:
    with pytest.raises(PeerError, match="offset 3"):
        decode_bounds(Record(3, 1, body(key, None)))
