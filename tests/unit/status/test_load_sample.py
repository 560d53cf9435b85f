"""The load of partitions, as the status sees it."""

from dataclasses import replace

import pytest

from appliance.link.model.copy_states import LINK, CopyState, StateRecord
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.link_load import LoadSample
from appliance.status.model.facts import DestinationFacts, SourceFacts
from appliance.status.model.load_sample import load_sample
from tests.support.facts import (
    COPIED_TO_THE_END,
    DESTINATION,
    NOW,
    SILENT,
    SOURCE,
    positions_topic,
    snapshot,
    with_position,
)

BEHIND = replace(DESTINATION, positions={key: replace(held, next_offset=60) for key, held in COPIED_TO_THE_END.items()})
FIRST, SECOND = ("payments", 0), ("payments", 1)


def state(topic: str, of: CopyState) -> StateRecord:
    return StateRecord(topic, of, NOW, "me@host")


def test_what_is_due_is_counted_by_the_mean_size_of_the_copied_records() -> None:
    sample = load_sample(snapshot(destination=BEHIND))
    assert sample == LoadSample(NOW / 1000, {FIRST: 9000, SECOND: 9000}, {FIRST: 4000.0, SECOND: 4000.0})


def test_of_a_link_that_has_copied_everything_nothing_is_due() -> None:
    sample = load_sample(snapshot())
    assert sample is not None
    assert sample.due == {}


def test_a_paused_topic_has_no_load() -> None:
    states = {"payments": state("payments", CopyState.PAUSED), "other": state("other", CopyState.ACTIVE)}
    taken = snapshot(destination=replace(BEHIND, states=states))
    other = replace(taken.topics[0], name="other", state=CopyState.ACTIVE, partitions=())
    sample = load_sample(replace(taken, topics=(*taken.topics, other)))
    assert sample is not None
    assert sample.due == {}


@pytest.mark.parametrize("of", [each for each in CopyState if each.is_unfinished])
@pytest.mark.parametrize("topic", [LINK, "payments", "gone"])
def test_a_link_in_which_a_command_has_work_left_has_no_sample(of: CopyState, topic: str) -> None:
    assert load_sample(snapshot(destination=replace(BEHIND, states={topic: state(topic, of)}))) is None


def changing() -> DestinationFacts:
    topic = positions_topic()
    topic.checkpoints[0].add(LayoutRecord(1, 3, NOW, "me@host", changing=True))
    return replace(BEHIND, topic=topic)


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        (SILENT, BEHIND),
        (SOURCE, SILENT),
        (SOURCE, changing()),
        (SOURCE, with_position(stopped="too large", stopped_at=NOW)),
        (replace(SOURCE, unanswered={FIRST: "no leader"}), BEHIND),
        (SOURCE, replace(BEHIND, states={LINK: state(LINK, CopyState.PAUSED)})),
        (SOURCE, replace(BEHIND, states={LINK: state(LINK, CopyState.PROMOTED)})),
    ],
)
def test_a_link_that_does_not_plainly_copy_has_no_sample(
    source: SourceFacts | str, destination: DestinationFacts | str
) -> None:
    assert load_sample(snapshot(source, destination)) is None
