"""Events with card numbers, and the transforms of MirrorMaker 2 for them."""

import json

from bench.lib.cards import EVERY, FILTER, FILTER_AND_MASK, card_events, headers, kept
from bench.lib.filling import Load
from bench.lib.latency_figures import Stamp
from bench.lib.transforming import WAYS


def test_card_events_are_json_of_their_size_and_no_two_are_the_same() -> None:
    values = card_events(500, 500)
    assert {len(value) for value in values} == {500}
    assert len({json.loads(value)["card"] for value in values}) == 500
    assert values == card_events(500, 500)


def test_the_value_and_the_header_say_the_same_of_which_are_left_out() -> None:
    values = card_events(10, 500)
    foreign = [json.loads(value)["country"] == "DE" for value in values]
    assert foreign == [bool(headers(value)) for value in values] == [False, True] * 5


def test_as_many_are_kept_as_the_numbers_say() -> None:
    assert [kept(count) for count in (0, 1, 2, 3, 10)] == [0, 1, 1, 2, 5]
    assert all(kept(count) == sum(number % EVERY == 0 for number in range(count)) for count in range(10))


def test_only_a_copy_without_filter_has_all_records() -> None:
    left = {name: way.left(Load(1000)).records for name, way in WAYS.items()}
    assert left.pop("our replicator, no SQL") == 1000
    assert set(left.values()) == {500}


def test_a_stamp_leaves_the_value_json() -> None:
    (value,) = card_events(1, 500)
    stamped = Stamp(7, 123_456_789).value(value)
    assert json.loads(stamped).keys() == json.loads(value).keys()
    assert Stamp.of(stamped) == Stamp(7, 123_456_789)


def test_both_transforms_leave_out_what_has_the_header() -> None:
    assert {name: FILTER_AND_MASK[name] for name in FILTER if name != "transforms"} == {
        name: value for name, value in FILTER.items() if name != "transforms"
    }
    assert FILTER_AND_MASK["transforms"].split(",")[0] == FILTER["transforms"]
    (header,) = [name for value in card_events(2, 500) for name, _ in headers(value)]
    assert FILTER["predicates.foreign.name"] == header
