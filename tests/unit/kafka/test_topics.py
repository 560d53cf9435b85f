from appliance.kafka.client.topics import pieces


def test_no_request_asks_for_more_than_the_limit_unless_one_topic_alone_does() -> None:
    wanted = [("a", 4), ("b", 6), ("c", 1), ("d", 30), ("e", 10)]
    assert list(pieces(wanted, limit=10)) == [["a", "b"], ["c"], ["d"], ["e"]]


def test_nothing_is_asked_when_nothing_is_wanted() -> None:
    assert list(pieces([])) == []
