"""The choice of the groups whose offsets follow."""

import pytest

from appliance.errors import SettingsError
from appliance.settings.groups import GroupSettings
from appliance.settings.parse import parse
from appliance.settings.role import Role
from tests.support.settings import REQUIRED


def chosen(**variables: str) -> GroupSettings:
    return parse(REQUIRED | variables, Role.REPLICATOR).groups


def test_no_group_follows_unless_asked_for() -> None:
    assert not chosen().wanted
    assert not chosen().takes("billing")


@pytest.mark.parametrize(
    ("regex", "taken", "left"),
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
    regex: str, taken: list[str], left: list[str]
) -> None:
    settings = chosen(REPLICA_GROUPS_REGEX=regex)
    assert settings.wanted
    assert [name for name in [*taken, *left] if settings.takes(name)] == taken


def test_a_group_is_left_out_by_the_second_list() -> None:
    settings = chosen(REPLICA_GROUPS_REGEX="app-.*", REPLICA_GROUPS_EXCLUDE_REGEX="app-test,app-old-.*")
    assert [name for name in ("app-1", "app-test", "app-old-1") if settings.takes(name)] == ["app-1"]


def test_the_second_list_may_be_made_to_leave_out_nothing_that_there_is() -> None:
    assert chosen(REPLICA_GROUPS_REGEX=".*", REPLICA_GROUPS_EXCLUDE_REGEX="none").takes("connect-sink")


def test_an_expression_of_a_list_that_is_none_is_named() -> None:
    with pytest.raises(SettingsError, match=r"REPLICA_GROUPS_REGEX=a,\*b: expected a regular expression"):
        chosen(REPLICA_GROUPS_REGEX="a,*b")
