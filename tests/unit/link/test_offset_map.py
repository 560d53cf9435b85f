import random

import pytest

from appliance.replicator.model import map_growth
from tests.support.copying_lane import CopyingLane, assert_exact

HISTORIES = 150
STEPS = 30


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tails and segments fill up within a history."""
    monkeypatch.setattr(map_growth, "TAIL_BYTES", 6)
    monkeypatch.setattr(map_growth, "SEGMENT_BYTES", 20)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_of_a_copy_that_nothing_befell_every_offset_is_known(seed: int) -> None:
    lane = CopyingLane(random.Random(seed))
    events = (lane.produce, lane.copy_some, lane.copy_some, lane.abort_some, lane.restart, lane.thin)
    for _ in range(STEPS):
        lane.chance.choice(events)()
    assert_exact(lane, complete=lane.held.tail is not None)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_whatever_befalls_a_copy_a_translation_is_exact_or_unknown(seed: int) -> None:
    lane = CopyingLane(random.Random(seed))
    events = (
        *(lane.produce, lane.copy_some, lane.copy_some, lane.copy_some, lane.abort_some, lane.restart, lane.thin),
        *(lambda: lane.copy_some(strangers=True), lane.lose, lane.go_on_elsewhere, lane.forget_the_tail),
    )
    for _ in range(STEPS):
        lane.chance.choice(events)()
        assert_exact(lane)
