import pytest

from appliance.replicator.discovery import config_changes, copied_configs

TIMES = {
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}


def test_a_copy_gets_its_sources_configuration_but_not_what_belongs_to_the_cluster() -> None:
    at_source = {"cleanup.policy": "compact", "min.insync.replicas": "2", "message.timestamp.type": "LogAppendTime"}
    assert copied_configs(at_source) == {"cleanup.policy": "compact", **TIMES}


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
def test_what_changes_at_the_source_is_followed_and_what_the_operator_set_stays(
    wanted: dict[str, str], held: dict[str, str], before: dict[str, str], changes: dict[str, str | None]
) -> None:
    assert config_changes(wanted, held, before) == changes
