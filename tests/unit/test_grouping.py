"""Pairs grouped by their keys."""

from appliance.grouping import grouped


def test_partitions_are_grouped_by_topic_in_their_order() -> None:
    assert grouped([("b", 1), ("a", 0), ("b", 0)]) == {"b": [1, 0], "a": [0]}
