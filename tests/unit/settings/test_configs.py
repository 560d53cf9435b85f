"""The choice of the settings that copies get from their source topics."""

from appliance.settings.parse import parse
from appliance.settings.replication import TopicSettings
from appliance.settings.role import Role
from tests.support.settings import REQUIRED

AT_SOURCE = {"retention.ms": "1", "min.insync.replicas": "2", "unclean.leader.election.enable": "true"}


def chosen(**variables: str) -> TopicSettings:
    return parse(REQUIRED | variables, Role.REPLICATOR).topics


def test_copies_follow_but_not_in_what_belongs_to_a_cluster() -> None:
    assert chosen().follows_configs
    assert chosen().configs_to_follow(AT_SOURCE) == {"retention.ms": "1"}


def test_a_list_takes_the_place_of_that_by_default() -> None:
    topics = chosen(CONFIGS_EXCLUDE_REGEX="retention[.].*,flush[.].*", CONFIGS_SYNC="no")
    assert not topics.follows_configs
    assert topics.configs_to_follow(AT_SOURCE).keys() == AT_SOURCE.keys() - {"retention.ms"}


def test_a_list_that_matches_nothing_excludes_nothing() -> None:
    assert chosen(CONFIGS_EXCLUDE_REGEX="none").configs_to_follow(AT_SOURCE) == AT_SOURCE
