"""Bugs of reading the offset maps, each by itself."""

import uuid

import pytest
from kio.schema.errors import ErrorCode

from appliance.commands.model.position_change import moved, retried
from appliance.commands.resumption import Choice, resume, with_ends
from appliance.engine.model import map_growth
from appliance.engine.write.lane import Lane
from appliance.errors import ApplianceError, PeerError
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.layout import Layout
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import LOST, Loss, SourcePlace
from appliance.link.model.translation import TranslationState
from tests.simulation.brokers import NODES
from tests.simulation.log import Log
from tests.simulation.operator_commands import simulated
from tests.simulation.scenario import Link

LANES = 2


@pytest.fixture(autouse=True)
def segments_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_growth, "TAIL_BYTES", -1)


def two_lanes() -> Link:
    """A link that has copied 20 records of topic ``a``, whose partition n is lane n's."""
    link = Link(lanes=LANES)
    link.destination.make(link.naming.offsets_topic, LANES)
    name = next(name for name in "abcdef" if Layout(LANES).lane_of(name, 0) == 0)
    logs = link.source.make(name, LANES).logs
    link.process.start(link.replicas())
    for _ in range(20):
        for log in logs:
            link.write(log)
        link.go_on(1)
    return link


def refuse(link: Link, refused: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a partition's leader refuse whatever it is asked about it."""
    leads = link.destination.leads

    def answer(found: Log | None, node: int, epoch: int = -1) -> ErrorCode:
        return ErrorCode.not_leader_or_follower if found is refused else leads(found, node, epoch)

    monkeypatch.setattr(link.destination, "leads", answer)


@pytest.mark.parametrize("kind", ["offsets", "positions"])
def test_case_100_a_lane_that_cannot_be_read_keeps_the_maps_of_no_other_from_being_known(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One unreadable partition stopped the sync of all groups.
    link = two_lanes()
    (topic,) = link.source.topics
    maps = OffsetMaps(link.at_destination, link.naming)
    name = link.naming.offsets_topic if kind == "offsets" else link.naming.positions_topic
    refuse(link, link.destination.topics[name].logs[1], monkeypatch)
    failures = link.run(maps.refresh())
    assert list(failures) == ["lane 1 of the offset maps"]
    assert maps.translate(Partition(topic, 0), 7).offset is not None
    unknown = maps.translate(Partition(topic, 1), 7)
    assert unknown.state is TranslationState.UNKNOWN
    assert "NOT_LEADER_OR_FOLLOWER" in unknown.reason
    monkeypatch.undo()
    assert link.run(maps.refresh()) == {}
    assert maps.translate(Partition(topic, 1), 7).offset is not None


def test_case_811_a_lane_whose_leader_has_moved_is_read_again_with_new_metadata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The former leader was asked again for five seconds; then the lane was unknown for a round of the groups' sync.
    link = two_lanes()
    log = link.destination.topics[link.naming.offsets_topic].logs[1]
    maps, read_some = OffsetMaps(link.at_destination, link.naming), OffsetMaps._read_some

    async def moving(self: OffsetMaps, metadata: Metadata, partition: Partition, end: int) -> None:
        if partition[1] == log.number and not log.leader_epoch:
            link.destination.lead(log, next(node for node in NODES if node != log.leader))
        await read_some(self, metadata, partition, end)

    monkeypatch.setattr(OffsetMaps, "_read_some", moving)
    began = link.loop.time()
    link.run(maps.read())
    assert log.leader_epoch == 1
    assert link.loop.time() < began + 1
    assert maps.translate(Partition(next(iter(link.source.topics)), log.number), 7).offset is not None


def test_case_101_an_offset_of_a_topic_that_was_made_anew_is_not_translated_by_the_map_of_the_one_before() -> None:
    # A group's offset in the deleted topic was translated by its map, to another record.
    link = two_lanes()
    (topic,) = link.source.topics.values()
    maps = OffsetMaps(link.at_destination, link.naming)
    link.run(maps.refresh())
    assert maps.translate(Partition(topic.name, 0), 7, topic.id).offset is not None
    assert maps.translate(Partition(topic.name, 0), 7).offset is not None
    unknown = maps.translate(Partition(topic.name, 0), 7, uuid.uuid4())
    assert (unknown.state, unknown.offset) == (TranslationState.UNKNOWN, None)
    assert "was made anew at the source" in unknown.reason


def test_case_680_no_offset_is_translated_to_a_topic_that_took_the_place_of_the_copy() -> None:
    # The map of the deleted copy answered "exact", and a group would have gone on past the new topic's end.
    link = two_lanes()
    (topic,) = link.source.topics
    copy, maps = link.naming.destination(topic), OffsetMaps(link.at_destination, link.naming)
    for reason in ("is not known to be there now", "deleted and made anew"):
        link.run(maps.refresh())
        if "not known" in reason:
            link.destination.delete(copy)
        else:
            link.destination.make(copy, LANES)
        link.run(maps.refresh([Partition(topic, 0)]))
        for unknown in (maps.translate(Partition(topic, 0), 7), maps.reverse(Partition(copy, 0), 7)):
            assert (unknown.state, unknown.offset) == (TranslationState.UNKNOWN, None)
            assert f"topic {copy}" in unknown.reason
            assert reason in unknown.reason


def test_case_102_segments_are_read_of_no_partition_but_those_that_are_wanted() -> None:
    # The segments of every partition of a lane were read for each group.
    link = two_lanes()
    (topic,) = link.source.topics
    maps = OffsetMaps(link.at_destination, link.naming)
    link.run(maps.refresh([Partition(topic, 0)]))
    assert [bool(log.segments(Partition(topic, lane))) for lane, log in enumerate(maps._logs)] == [True, False]
    assert maps.translate(Partition(topic, 0), 7).offset is not None
    assert maps.translate(Partition(topic, 1), 7).state is TranslationState.UNKNOWN
    link.run(maps.refresh([Partition(topic, 1)]))
    assert [bool(log.segments(Partition(topic, lane))) for lane, log in enumerate(maps._logs)] == [False, True]
    assert maps.translate(Partition(topic, 1), 7).offset is not None
    link.run(maps.refresh())
    assert all(
        maps.translate(Partition(topic, lane), offset).offset is not None
        for lane in range(LANES)
        for offset in range(20)
    )


def test_case_103_a_damaged_segment_makes_only_its_own_partition_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Its lane could be read no further, and with it that of every other group.
    link = two_lanes()
    (topic,) = link.source.topics
    monkeypatch.setattr("appliance.link.model.segment_log.decode_segment", damaged)
    maps = OffsetMaps(link.at_destination, link.naming)
    assert link.run(maps.refresh([Partition(topic, 0)])) == {}
    unknown = maps.translate(Partition(topic, 0), 7)
    assert (unknown.state, unknown.reason) == (TranslationState.UNKNOWN, "version 2")
    monkeypatch.undo()
    assert link.run(maps.refresh()) == {}
    assert maps.translate(Partition(topic, 1), 7).offset is not None


def damaged(_: object) -> None:
    raise PeerError("version 2")


def test_case_114_segments_whose_copies_retention_has_taken_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    # They stayed for ever, and were read by everybody who translates.
    monkeypatch.setattr(map_growth, "SEGMENT_BYTES", 1)
    monkeypatch.setattr("appliance.engine.write.copy_watch._STARTS_INTERVAL", 30.0)
    monkeypatch.setattr("appliance.engine.write.copy_watch._DROPPED_A_COMMIT", 4)
    link = two_lanes()
    (topic,) = link.source.topics
    copy = link.destination.topics[link.naming.destination(topic)].logs[0]
    maps = OffsetMaps(link.at_destination, link.naming)
    link.run(maps.refresh())
    before = [maps.translate(Partition(topic, 0), offset) for offset in range(21)]
    count, start = len(maps._logs[0].segments(Partition(topic, 0))), before[12].offset
    assert start is not None
    copy.delete_before(start)
    link.go_on(120)
    maps = OffsetMaps(link.at_destination, link.naming)
    link.run(maps.refresh())
    kept = maps._logs[0].segments(Partition(topic, 0))
    assert 0 < len(kept) <= count - 10
    assert all(segment.range.copy_to > start for segment in kept)
    assert [maps.translate(Partition(topic, 0), offset) for offset in range(12, 21)] == before[12:]
    assert maps.translate(Partition(topic, 1), 0).offset is not None


@pytest.mark.parametrize("start", [20, None])
def test_case_358_the_map_of_a_copy_that_loses_more_after_its_stop_ends_where_the_copy_does(start: int | None) -> None:
    # An operator's resume took the copy's new end, and left the map as long as the first loss had left it.
    link = two_lanes()
    maps = OffsetMaps(link.at_destination, link.naming)
    link.run(maps.refresh())
    replica = next(each for each in link.replicas() if each.partition == 0)
    held = maps.position(replica.source)
    assert held is not None
    copy = link.destination.topics[replica.destination_topic].logs[0]
    stopped = held.stop_shortened(f"the copy {LOST}", 0, Loss(12))
    copy.truncate(4)
    change = retried(replica, stopped) if start is None else moved(replica, stopped, SourcePlace(start, 0))
    (done,) = link.run(with_ends(link.at_destination, [change]))
    assert done.after.tail == OffsetTail.begin(20, copy.end)
    assert done.after.copy_end is not None
    assert done.after.copy_end.offset == copy.end


async def unanswered(*_: object) -> tuple[dict[Partition, int], dict[Partition, ApplianceError]]:
    """The answers of brokers without OffsetForLeaderEpoch."""
    return {}, {}


def test_case_490_of_a_copy_with_a_loss_whose_place_no_leader_knows_only_the_new_part_is_mapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Others had filled the hole, and the map went on to lead to what they had written.
    link = two_lanes()
    (topic,) = link.source.topics.values()
    copy = link.destination.topics[link.naming.destination(topic.name)].logs[0]
    old = copy.end
    for module in ("engine.write.copies", "link.client.log_ends"):
        monkeypatch.setattr(f"appliance.{module}.epoch_ends", unanswered)
    copy.truncate(12)
    link.destination.lead(copy, copy.leader)
    link.write(copy, old)
    filled = copy.end
    link.go_on(60)
    assert f"has lost what it had acknowledged, offsets up to {old - 1}" in link.faults()[f"{topic.name}-0"]
    maps = OffsetMaps(link.at_destination, link.naming)
    link.run(maps.refresh())
    assert {maps.translate(Partition(topic.name, 0), offset).offset for offset in range(20)} == {None}
    assert {maps.reverse(Partition(copy.topic, 0), offset).offset for offset in range(filled)} == {None}
    assert maps.translate(Partition(topic.name, 0), 20).offset == filled
    with simulated(link.source, link.destination, link.fates):
        assert link.run(resume(link.settings, Choice(topic.name, 0, "retry"), lambda _: None)) == 1
    for _ in range(3):
        link.write(topic.logs[0])
        link.go_on(20)
    assert link.faults() == {}
    maps = OffsetMaps(link.at_destination, link.naming)
    link.run(maps.refresh())
    assert {maps.translate(Partition(topic.name, 0), offset).offset for offset in range(20)} == {None}
    assert {maps.reverse(Partition(copy.topic, 0), offset).offset for offset in range(filled)} == {None}
    assert [maps.translate(Partition(topic.name, 0), 20 + n).offset for n in range(4)] == [
        filled + 2 * n for n in range(4)
    ]


def test_case_490_a_partition_stops_for_such_a_loss_only_when_its_map_can_be_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link = two_lanes()
    (topic,) = link.source.topics.values()
    copy = link.destination.topics[link.naming.destination(topic.name)].logs[0]
    for module in ("engine.write.copies", "link.client.log_ends"):
        monkeypatch.setattr(f"appliance.{module}.epoch_ends", unanswered)
    maps = OffsetMaps(link.at_destination, link.naming)
    with monkeypatch.context() as patch:
        patch.setattr(Lane, "keeps_offsets", False)
        copy.truncate(12)
        link.destination.lead(copy, copy.leader)
        link.write(copy, 40)
        link.go_on(60)
        assert "has lost what it had acknowledged" in link.faults()[f"{topic.name}-0"]
        link.run(maps.refresh())
        held = maps.position(Partition(topic.name, 0))
        assert held is not None
        assert not held.stopped
    link.go_on(60)
    link.run(maps.refresh())
    held = maps.position(Partition(topic.name, 0))
    assert held is not None
    assert LOST in held.stopped
    assert {maps.translate(Partition(topic.name, 0), offset).offset for offset in range(20)} == {None}
