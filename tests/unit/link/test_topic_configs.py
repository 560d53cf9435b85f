import pytest

from appliance.kafka.client.configs import Setting
from appliance.link.model.topic_configs import config_changes, copied_configs, left_out, missed, told, unknown

ANY = str(2**63 - 1)
NEW = {"message.timestamp.before.max.ms": ANY, "message.timestamp.after.max.ms": ANY}
OLD = {"message.timestamp.difference.max.ms": ANY}
TYPE = {"message.timestamp.type": "CreateTime"}
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


@pytest.mark.parametrize(
    ("at_source", "missing"),
    [
        ({}, ()),
        ({"retention.ms": "2", "cleanup.policy": "delete"}, ()),
        ({"retention.ms": "3"}, ("retention.ms",)),
        ({"cleanup.policy": "compact"}, ("cleanup.policy",)),
        ({"redpanda.x": "1", "segment.bytes": "5"}, ("redpanda.x", "segment.bytes")),
        ({"max.message.bytes": "10"}, ()),
        ({"max.message.bytes": "30"}, ("max.message.bytes",)),
        ({"message.timestamp.before.max.ms": "1"}, ()),
    ],
    ids=["nothing", "as-it-should", "other", "refused", "unknown", "raised-by-operator", "smaller", "our-own"],
)
def test_settings_that_a_copy_lacks_are_seen_in_its_brokers_answer(
    at_source: dict[str, str], missing: tuple[str, ...]
) -> None:
    held = on_copy(
        {"retention.ms": "2", "max.message.bytes": "20", **TYPE, **NEW},
        {"cleanup.policy": "delete"},
        {"segment.bytes": "9"},
    )
    assert left_out(at_source, held) == missing


def test_a_copy_whose_record_times_are_not_kept_lacks_that() -> None:
    held = on_copy({}, {**TYPE, "message.timestamp.difference.max.ms": "1000"}, {})
    assert left_out({}, held) == ("message.timestamp.difference.max.ms",)


def test_one_line_tells_which_settings_on_which_topic_and_why() -> None:
    whys = {"confluent.tier": "not known there", "segment.bytes": "50 MiB at least"}
    assert told({"orders.copy": whys}) == {
        "topic": "orders.copy",
        "settings": ["confluent.tier", "segment.bytes"],
        "cause": "confluent.tier: not known there; segment.bytes: 50 MiB at least",
    }
    assert told({"orders.copy": whys, "payments.copy": whys})["topics"] == 2


@pytest.mark.parametrize(
    ("wanted", "held", "before", "changes"),
    [
        ({"retention.ms": "1"}, {"retention.ms": "1"}, {}, {}),
        ({"retention.ms": "2"}, {"retention.ms": "1"}, {}, {"retention.ms": "2"}),
        ({"retention.ms": "2"}, {}, {}, {"retention.ms": "2"}),
        ({}, {"retention.ms": "1"}, {"retention.ms": "1"}, {"retention.ms": None}),
        ({}, {"segment.ms": "1"}, {}, {}),
        ({"max.message.bytes": "10"}, {"max.message.bytes": "20"}, {}, {}),
        ({"max.message.bytes": "20"}, {"max.message.bytes": "10"}, {}, {"max.message.bytes": "20"}),
    ],
    ids=["same", "changed", "new", "unset", "operators-own", "raised-by-operator", "raised-at-source"],
)
def test_changes_at_the_source_are_followed_and_the_operators_settings_stay(
    wanted: dict[str, str], held: dict[str, str], before: dict[str, str], changes: dict[str, str | None]
) -> None:
    assert config_changes(wanted, held, before) == changes
