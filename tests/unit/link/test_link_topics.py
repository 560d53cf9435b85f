import re

import pytest

from appliance.link.model.link_topics import LinkTopics
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Suffix


@pytest.mark.parametrize(
    ("topics", "takes"),
    [
        (LinkTopics(), True),
        (LinkTopics("orders.*"), True),
        (LinkTopics("payments"), False),
        (LinkTopics("orders"), False),
        (LinkTopics("orders.*", (".*-us", ".*-eu")), False),
        (LinkTopics("", ("orders-eu",)), False),
        (LinkTopics("orders.*", ("eu",)), True),
    ],
)
def test_a_link_may_take_the_topics_that_its_regex_matches_whole_and_none_of_those_that_it_excludes(
    topics: LinkTopics, takes: bool
) -> None:
    assert topics.may_take("orders-eu") is takes


@pytest.mark.parametrize("topics", [LinkTopics("("), LinkTopics("orders.*", ("(",))])
def test_a_regex_that_this_release_cannot_read_keeps_no_topic_from_being_taken(topics: LinkTopics) -> None:
    assert topics.may_take("orders-eu")


@pytest.mark.parametrize(
    "regex", ["a{99999999999}", "(" * 5000 + ")" * 5000, "(?!x)" + "(" * 500 + "a*" + ")" * 500, "(a|a)(?#x)*(?=!)!"]
)
def test_case_1031_a_regex_that_no_release_compiles_or_matches_quickly_keeps_no_topic_from_being_taken(
    regex: str,
) -> None:
    assert LinkTopics(regex).may_take("a" * 249)
    assert LinkTopics("", (regex,)).may_take("a" * 249)


@pytest.mark.parametrize("regex", [r"(\w+\.?)+!", "(a|a)*!", "(a|a)" * 60 + "!", "a?" * 60 + "a{60}!", "(?:a*)*b"])
def test_case_1031_the_regex_of_another_link_does_not_hold_up_the_process(regex: str) -> None:
    # Each took Python longer than anybody waits.
    assert not LinkTopics(regex).may_take("a" * 249)


@pytest.mark.parametrize(
    "regex",
    ["orders.*|pay.*|.*-eu|x|y", "(orders|pay)-[a-z]+", "(?!__).*", r"(?i)ORDERS\.(eu|us){1,2}", "(orders-){,2}eu"],
)
@pytest.mark.parametrize("topic", ["orders-eu", "orders.eu", "pay-", "__orders", "billing"])
def test_a_usual_regex_is_matched_as_python_matches_it_or_takes_more(regex: str, topic: str) -> None:
    python = re.fullmatch(regex, topic) is not None
    assert LinkTopics(regex).may_take(topic) is python or "{," in regex


@pytest.mark.parametrize("excluded", ["", ".*-eu"])
@pytest.mark.parametrize("internal", ["(?!)", "connect-.*"])
def test_a_link_tells_the_topics_that_it_copies(excluded: str, internal: str) -> None:
    patterns = map(re.compile, ("orders.*|connect.*", excluded, internal))
    included, without, state = patterns
    naming = Naming("replicator-orange", Suffix(after=".copy"), included, without, internal=state)
    for topic in ("orders", "orders-eu", "payments", "connect-offsets"):
        assert naming.topics.may_take(topic) is naming.copies(topic, internal=False)
