import re
import uuid

import pytest

from appliance.kafka.client.configs import Setting
from appliance.kafka.protocol.metadata import Topic
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Suffix
from appliance.link.model.topic_configs import config_change, copied_configs, log_fields, missed, new_copies, unknown

ANY = str(2**63 - 1)
NEW = {"message.timestamp.before.max.ms": ANY, "message.timestamp.after.max.ms": ANY}
OLD = {"message.timestamp.difference.max.ms": ANY}
TYPE = {"message.timestamp.type": "CreateTime"}
KEEPING = {"retention.ms": "-1", "retention.bytes": "-1"}
KNOWN = frozenset({"cleanup.policy", "retention.ms", "max.message.bytes", *TYPE, *NEW})


def test_a_copy_gets_its_sources_configuration_but_not_what_belongs_to_the_cluster() -> None:
    at_source = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}
    assert copied_configs(at_source, KNOWN) == {"cleanup.policy": "compact", **TYPE, **NEW}


@pytest.mark.parametrize(
    ("known", "times"),
    [
        (KNOWN, TYPE | NEW),
        ({*TYPE, *OLD, *NEW}, TYPE | NEW),
        ({*TYPE, *OLD}, TYPE | OLD),
        (TYPE.keys(), TYPE),
        (None, TYPE | OLD | NEW),
    ],
    ids=["4.0", "3.6", "2.8", "redpanda", "not-told"],
)
def test_record_times_are_kept_in_the_words_that_the_destination_knows(
    known: set[str] | None, times: dict[str, str]
) -> None:
    assert copied_configs({}, known) == times


def test_settings_that_the_destination_does_not_know_are_left_out() -> None:
    at_source = {"retention.ms": "1", "confluent.tier.enable": "true", **NEW}
    assert copied_configs(at_source, KNOWN) == {"retention.ms": "1", **TYPE, **NEW}
    assert unknown(at_source, KNOWN) == {"confluent.tier.enable": "not known there"}


def test_words_for_record_times_are_not_missed_when_the_others_are_kept() -> None:
    assert missed(dict.fromkeys(OLD, "unknown"), {*TYPE, *NEW}) == {}
    assert missed(dict.fromkeys(NEW, "unknown"), {*TYPE, *OLD}) == {}
    assert missed({"segment.bytes": "too small", **OLD}, NEW) == {"segment.bytes": "too small"}
    assert set(missed(dict.fromkeys(NEW, "no"), TYPE)) == set(NEW)


def on_copy(own: dict[str, str], default: dict[str, str], read_only: dict[str, str]) -> dict[str, Setting]:
    return (
        {key: Setting(value, True, False) for key, value in own.items()}
        | {key: Setting(value, False, False) for key, value in default.items()}
        | {key: Setting(value, False, True) for key, value in read_only.items()}
    )


def test_one_line_tells_which_settings_on_which_topic_and_why() -> None:
    whys = {"confluent.tier": "not known there", "segment.bytes": "50 MiB at least"}
    assert log_fields({"orders.copy": whys}) == {
        "topic": "orders.copy",
        "settings": ["confluent.tier", "segment.bytes"],
        "cause": "confluent.tier: not known there; segment.bytes: 50 MiB at least",
    }
    assert log_fields({"orders.copy": whys, "payments.copy": whys})["topics"] == 2


BROKERS = {"retention.ms": "9", "segment.bytes": "100", "max.message.bytes": "15", "cleanup.policy": "delete"}
"""The defaults of the copy's broker; it does not know record times."""


def changes(
    at_source: dict[str, str], held: dict[str, str], ours: dict[str, str], *waiting: str
) -> tuple[dict[str, str | None], dict[str, str], set[str]]:
    """The settings to change, those that are the link's then, and those that follow later than the records."""
    on_copy = {key: Setting(value, False, False) for key, value in {**BROKERS, "segment.ms": "7"}.items()}
    on_copy |= {key: Setting(value, True, False) for key, value in held.items()}
    change = config_change(at_source, on_copy, frozenset(ours.items()), waiting)
    assert set(change.left_out) == set(waiting)
    return dict(change.settings), dict(change.own), set(change.early)


@pytest.mark.parametrize(
    ("at_source", "held", "ours", "change"),
    [
        ({"retention.ms": "1"}, {"retention.ms": "1"}, {}, {}),
        ({"retention.ms": "2"}, {"retention.ms": "1"}, {}, {"retention.ms": "2"}),
        ({"retention.ms": "2"}, {}, {}, {"retention.ms": "2"}),
        ({}, {"retention.ms": "1"}, {"retention.ms": "1"}, {"retention.ms": None}),
        ({}, {"retention.ms": "1"}, {"retention.ms": "2"}, {}),
        ({}, {"segment.ms": "1"}, {}, {}),
        ({"max.message.bytes": "10"}, {"max.message.bytes": "20"}, {}, {}),
        ({}, {"max.message.bytes": "20"}, {"max.message.bytes": "10"}, {}),
        ({"max.message.bytes": "20"}, {"max.message.bytes": "10"}, {}, {"max.message.bytes": "20"}),
    ],
    ids=[
        "same",
        "changed",
        "new",
        "unset",
        "changed-by-operator",
        "operators-own",
        "raised-by-operator",
        "raised-by-operator-and-unset",
        "raised-at-source",
    ],
)
def test_changes_at_the_source_are_followed_and_the_operators_settings_stay(
    at_source: dict[str, str], held: dict[str, str], ours: dict[str, str], change: dict[str, str | None]
) -> None:
    assert changes(at_source, held, ours)[0] == change


def test_a_setting_is_the_links_from_before_it_is_set_until_the_copy_does_not_hold_it() -> None:
    assert changes({"retention.ms": "2"}, {"retention.ms": "1"}, {})[1] == {"retention.ms": "2"}
    both = {"retention.ms": "1", "segment.ms": "1"}
    assert changes({}, both, both)[1] == both
    assert changes({}, {"segment.ms": "1"}, both)[1] == {"segment.ms": "1"}


@pytest.mark.parametrize(
    ("at_source", "held", "early"),
    [
        ({"cleanup.policy": "compact"}, {}, {"cleanup.policy"}),
        ({"cleanup.policy": "compact,delete"}, {"cleanup.policy": "delete"}, {"cleanup.policy"}),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact,delete"}, set()),
        ({"cleanup.policy": "delete"}, {"cleanup.policy": "compact"}, set()),
        ({"segment.bytes": "50"}, {}, {"segment.bytes"}),
        ({"segment.bytes": "200"}, {}, set()),
        ({"retention.ms": "1"}, {}, set()),
    ],
)
def test_settings_by_which_a_copy_refuses_earlier_records_are_early(
    at_source: dict[str, str], held: dict[str, str], early: set[str]
) -> None:
    assert changes(at_source, held, {})[2] == early


def test_an_unset_limit_of_batches_waits_where_it_is_the_links() -> None:
    limit = {"max.message.bytes": "20"}
    assert changes({}, limit, limit)[2] == {"max.message.bytes"}
    assert changes({}, limit, limit, "max.message.bytes") == ({}, limit, set())


@pytest.mark.parametrize(
    ("at_source", "held", "change"),
    [
        ({"cleanup.policy": "compact"}, {}, KEEPING | {"cleanup.policy": "delete"}),
        ({"cleanup.policy": "compact", "retention.ms": "1"}, {"cleanup.policy": "delete"}, KEEPING),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "delete", **KEEPING}, {}),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "delete", "retention.ms": "5"}, {"retention.bytes": "-1"}),
        (
            {"cleanup.policy": "compact,delete", "retention.ms": "1"},
            {"cleanup.policy": "delete"},
            {"retention.ms": "1"},
        ),
    ],
    ids=["by-default", "useless-retention", "keeps-already", "operators-retention", "deletes-too"],
)
def test_a_copy_deletes_nothing_in_place_of_a_compaction_that_waits(
    at_source: dict[str, str], held: dict[str, str], change: dict[str, str]
) -> None:
    assert changes(at_source, held, {}, "cleanup.policy")[0] == change


@pytest.mark.parametrize(
    ("policy", "compacts", "made", "required"),
    [
        ("compact", False, KEEPING | {"cleanup.policy": "delete"}, {"cleanup.policy", *KEEPING}),
        ("compact,delete", False, {"cleanup.policy": "delete"}, {"cleanup.policy"}),
        ("compact", True, {"cleanup.policy": "compact"}, {"cleanup.policy"}),
    ],
)
def test_a_copy_is_made_uncompacted_if_that_can_follow_or_others_write_it(
    policy: str, compacts: bool, made: dict[str, str], required: set[str]
) -> None:
    naming = Naming("replicator-x", Suffix(after=".copy"), re.compile(".*"), re.compile(""))
    topic = Topic("a", uuid.uuid4(), internal=False, leaders=(0,))
    (new,) = new_copies([topic], {"a": {"cleanup.policy": policy}}, naming, 1, {"cleanup.policy"}, compacts=compacts)
    assert (new.configs, new.required) == (made, required)
