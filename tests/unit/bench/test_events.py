import json

import pytest

from bench.lib.events import events


def test_events_are_json_of_their_size_and_no_two_are_the_same() -> None:
    values = events(500, 500)
    assert {len(value) for value in values} == {500}
    assert len({json.loads(value)["id"] for value in values}) == 500


def test_short_events_are_json_of_their_size_too_and_no_two_are_the_same() -> None:
    values = events(500, 100)
    assert {len(value) for value in values} == {100}
    assert len({json.loads(value)["id"] for value in values}) == 500


def test_the_same_events_are_made_each_time() -> None:
    assert events(3, 500) == events(3, 500)


def test_an_event_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="not 60"):
        events(1, 60)
