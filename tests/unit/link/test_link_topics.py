import re

import pytest

from appliance.link.model.link_topics import LinkTopics
from appliance.link.model.naming import Naming


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


@pytest.mark.parametrize("excluded", ["", ".*-eu"])
@pytest.mark.parametrize("internal", ["(?!)", "connect-.*"])
def test_a_link_tells_the_topics_that_it_copies(excluded: str, internal: str) -> None:
    patterns = map(re.compile, ("orders.*|connect.*", excluded, internal))
    included, without, state = patterns
    naming = Naming("replicator-orange", "copy", included, without, internal=state)
    for topic in ("orders", "orders-eu", "payments", "connect-offsets"):
        assert naming.topics.may_take(topic) is naming.copies(topic, internal=False)
