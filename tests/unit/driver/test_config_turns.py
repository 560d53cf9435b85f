"""The turns of topics whose settings are compared with those of their copies."""

import itertools

import pytest

from appliance.driver.config_follower import Turns


@pytest.mark.parametrize(("topics", "looks", "share"), [(12, 4, 3), (1_000, 20, 50)])
def test_each_topic_has_its_turn_once_in_a_round_of_five_looks_or_of_more_if_there_are_many(
    topics: int, looks: int, share: int
) -> None:
    turns, names = Turns(), [str(number) for number in range(topics)]
    compared = [turns.next(names) for _ in range(looks)]
    assert {len(some) for some in compared} == {share}
    assert list(itertools.chain(*compared)) == names
    assert turns.next(names) == names[:share]


def test_a_topic_that_has_gone_is_left_out_and_one_that_has_come_has_a_turn_in_the_next_round() -> None:
    turns, before, after = Turns(), ["a", "b", "c", "d", "e", "f"], ["a", "b", "d", "e", "g"]
    assert turns.next(before) == ["a", "b"]
    assert [turns.next(after) for _ in range(3)] == [["d"], ["e"], ["a"]]
    assert list(itertools.chain(*(turns.next(after) for _ in range(4)))) == ["b", "d", "e", "g"]
    assert Turns().next([]) == []


def test_a_new_copy_has_its_turn_at_once_and_only_once() -> None:
    turns = Turns()
    assert turns.next(["a", "b", "c"], ["a", "c"]) == ["a", "c"]
    assert turns.next(["a", "b", "c"]) == ["b"]
