"""The settings that copies get from their source topics, and the groups whose offsets follow."""

import pytest

from appliance.errors import SettingsError
from appliance.settings.role import Role
from tests.support.settings import REQUIRED, faults_of, parsed

AT_SOURCE = {"retention.ms": "1", "min.insync.replicas": "2", "unclean.leader.election.enable": "true"}


def test_copies_follow_but_not_in_what_belongs_to_a_cluster() -> None:
    topics = parsed().topics
    assert topics.follows_configs
    assert topics.configs_to_follow(AT_SOURCE) == {"retention.ms": "1"}


def test_a_list_takes_the_place_of_that_by_default() -> None:
    topics = parsed(CONFIGS_EXCLUDE_REGEX="retention[.].*,flush[.].*", CONFIGS_SYNC="no").topics
    assert not topics.follows_configs
    assert topics.configs_to_follow(AT_SOURCE).keys() == AT_SOURCE.keys() - {"retention.ms"}


def test_a_list_that_matches_nothing_excludes_nothing() -> None:
    assert parsed(CONFIGS_EXCLUDE_REGEX="none").topics.configs_to_follow(AT_SOURCE) == AT_SOURCE


def test_no_group_follows_unless_asked_for() -> None:
    groups = parsed().groups
    assert not groups.wanted
    assert not groups.takes("billing")


@pytest.mark.parametrize(
    ("regex", "taken", "omitted"),
    [
        ("billing", ["billing"], ["billing-2", "a-billing"]),
        ("billing.*, audit", ["billing", "billing-2", "audit"], ["audit-2", " audit"]),
        (r"g[,x]{1,2}|h,(a,b)+", ["g,x", "h", "a,b"], ["g", "a", "b)+"]),
        (r"a\,b,", ["a,b"], ["a", "b", ""]),
        (".*", ["billing", "my-connect-app"], ["console-consumer-42", "connect-sink", "__internal"]),
    ],
    ids=[
        "the whole name",
        "a list, as MirrorMaker 2 has it",
        "commas in brackets",
        "an escaped comma",
        "not by default",
    ],
)
def test_a_group_follows_when_one_of_the_expressions_matches_its_whole_name(
    regex: str, taken: list[str], omitted: list[str]
) -> None:
    groups = parsed(REPLICA_GROUPS_REGEX=regex).groups
    assert groups.wanted
    assert [name for name in [*taken, *omitted] if groups.takes(name)] == taken


def test_a_group_is_left_out_by_the_second_list() -> None:
    groups = parsed(REPLICA_GROUPS_REGEX="app-.*", REPLICA_GROUPS_EXCLUDE_REGEX="app-test,app-old-.*").groups
    assert [name for name in ("app-1", "app-test", "app-old-1") if groups.takes(name)] == ["app-1"]


def test_the_second_list_may_be_made_to_leave_out_nothing_that_there_is() -> None:
    assert parsed(REPLICA_GROUPS_REGEX=".*", REPLICA_GROUPS_EXCLUDE_REGEX="none").groups.takes("connect-sink")


def test_an_expression_of_a_list_that_is_none_is_named() -> None:
    with pytest.raises(SettingsError, match=r"REPLICA_GROUPS_REGEX=a,\*b: expected a regular expression"):
        parsed(REPLICA_GROUPS_REGEX="a,*b")


@pytest.mark.parametrize(
    ("variable", "other"),
    [
        ("REPLICA_TOPICS_NAMES", {"REPLICA_TOPICS_NAMING": "map", "REPLICA_TOPICS_NAMES": "a = b"}),
        ("REPLICA_TOPICS_DEST_NAME", {"REPLICA_TOPICS_NAMING": "exact", "REPLICA_TOPICS_DEST_NAME": "a b"}),
    ],
)
def test_case_1186_a_name_that_is_wrong_is_not_said_to_be_missing(variable: str, other: dict[str, str]) -> None:
    # "REPLICA_TOPICS_NAMES=a = b: expected ..." was followed by "REPLICA_TOPICS_NAMES: missing: ...".
    faults = faults_of(REQUIRED | {"REPLICA_TOPICS_SOURCE_REGEX": "orders"} | other, Role.REPLICATOR)
    assert [fault for fault in faults if fault.startswith(f"{variable}: missing")] == []
