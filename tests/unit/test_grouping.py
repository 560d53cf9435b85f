"""Pairs grouped by their keys."""

from appliance.grouping import grouped, pieces


def test_partitions_are_grouped_by_topic_in_their_order() -> None:
    assert grouped([("b", 1), ("a", 0), ("b", 0)]) == {"b": [1, 0], "a": [0]}


def test_no_request_asks_for_more_than_the_limit_unless_one_topic_alone_does() -> None:
    wanted = [("a", 4), ("b", 6), ("c", 1), ("d", 30), ("e", 10)]
    assert list(pieces(wanted, limit=10)) == [["a", "b"], ["c"], ["d"], ["e"]]


def test_nothing_is_asked_when_nothing_is_wanted() -> None:
    assert list(pieces([], limit=10)) == []
