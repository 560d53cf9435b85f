"""Bugs of the offset maps, each by itself."""

import pytest
from kio.schema.errors import ErrorCode

from appliance.engine.model import map_growth
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.offset_maps import OffsetMaps
from tests.simulation.scenario import Link, copied


def test_case_80_maps_that_cannot_be_written_keep_no_lane_from_copying(monkeypatch: pytest.MonkeyPatch) -> None:
    # The transaction with the first segment failed, and so did each that took its place.
    monkeypatch.setattr(map_growth, "TAIL_BYTES", -1)
    link = Link()
    maps = link.destination.make(link.naming.offsets_topic, 1).logs[0]
    log = link.source.make("aaa", 1).logs[0]
    leads, refused = link.destination.leads, []

    def refuses(found: object, node: int, epoch: int = -1) -> ErrorCode:
        if found is maps:
            refused.append(node)
            return ErrorCode.topic_authorization_failed
        return leads(found, node, epoch)  # type: ignore[arg-type]

    monkeypatch.setattr(link.destination, "leads", refuses)
    link.process.start(link.replicas())
    for _ in range(20):
        link.write(log)
        link.go_on(3)
    assert copied(link, "aaa.copy") - len(refused) == 20  # each took one record with it, and was aborted
    assert 2 <= len(refused) <= 5
    monkeypatch.undo()
    monkeypatch.setattr(map_growth, "TAIL_BYTES", -1)
    link.go_on(120)
    link.write(log)
    link.go_on(5)
    assert maps.end > 0


def test_case_81_a_segment_is_written_where_the_copies_lie_and_not_where_they_should(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # When somebody had written into the copy, a first segment that was wrong stayed beside the second one.
    monkeypatch.setattr(map_growth, "TAIL_BYTES", -1)
    link = Link()
    link.destination.make(link.naming.offsets_topic, 1)
    log = link.source.make("aaa", 1).logs[0]
    link.process.start(link.replicas())
    link.go_on(2)
    copy = link.destination.topics["aaa.copy"].logs[0]
    link.write(copy, 3)
    link.destination.changed(copy)
    for _ in range(2):
        link.write(log, 40)
    link.go_on(5)
    assert copied(link, "aaa.copy") == 83
    maps = OffsetMaps(link.at_destination, link.naming)
    link.run(maps.refresh())
    for offset in range(80):
        assert maps.translate(Partition("aaa", 0), offset).offset in (None, offset + 3)
