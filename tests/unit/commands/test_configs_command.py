"""The output of ``appliance configs``."""

from appliance.commands.configs import as_document, as_lines
from appliance.driver.config_follower import ConfigDiff
from appliance.errors import BrokerBusy

LOOK = ConfigDiff(
    {"a.copy": {"retention.ms": "1", "segment.bytes": None}},
    {"a": {"tier.enable": "not known there"}, "b": {}},
    {"c": BrokerBusy("not told", "REQUEST_TIMED_OUT")},
)
LOOK.unchanged = {"d": "its copy is paused"}
HELD = {"a.copy": {"segment.bytes": "5"}}


def test_each_setting_is_a_line_with_what_it_is_and_what_it_would_be() -> None:
    assert as_lines(LOOK, HELD) == [
        "a.copy: retention.ms by default -> 1",
        "a.copy: segment.bytes 5 -> by default",
        "a: tier.enable does not follow: not known there",
        "d: nothing is changed: its copy is paused",
        "c: not told",
    ]


def test_it_is_said_that_nothing_follows_when_that_is_switched_off() -> None:
    assert as_lines(ConfigDiff(), {}, "CONFIGS_SYNC=no") == ["CONFIGS_SYNC=no: none of this is changed"]


def test_json_has_the_same() -> None:
    assert as_document(LOOK, HELD, follows=True) == {
        "follows": True,
        "changes": {
            "a.copy": {"retention.ms": {"now": None, "then": "1"}, "segment.bytes": {"now": "5", "then": None}}
        },
        "left_out": {"a": {"tier.enable": "not known there"}},
        "failures": {"c": "not told"},
        "unchanged": {"d": "its copy is paused"},
    }
