import itertools

from appliance.driver.model.round_robin import RoundRobin


def test_of_few_each_has_its_turn_once_in_so_many_rounds() -> None:
    round_robin = RoundRobin(rounds=5, at_most=50)
    names = [str(number) for number in range(12)]
    asked = [round_robin.next(names) for _ in range(4)]
    assert [len(some) for some in asked] == [3, 3, 3, 3]
    assert list(itertools.chain(*asked)) == names
    assert round_robin.next(names) == names[:3]


def test_of_many_no_more_than_the_most_have_theirs_at_once() -> None:
    round_robin = RoundRobin(rounds=5, at_most=50)
    names = [str(number) for number in range(1_000)]
    asked = [round_robin.next(names) for _ in range(20)]
    assert {len(some) for some in asked} == {50}
    assert list(itertools.chain(*asked)) == names


def test_who_has_gone_is_left_out_and_who_has_come_has_a_turn_the_next_time_around() -> None:
    round_robin = RoundRobin(rounds=2, at_most=50)
    assert round_robin.next(["a", "b", "c", "d"]) == ["a", "b"]
    assert round_robin.next(["a", "b", "d", "e"]) == ["d"]
    assert round_robin.next(["a", "b", "d", "e"]) + round_robin.next(["a", "b", "d", "e"]) == ["a", "b", "d", "e"]


def test_nobody_has_a_turn_where_nobody_is() -> None:
    assert RoundRobin(rounds=5, at_most=50).next([]) == []
