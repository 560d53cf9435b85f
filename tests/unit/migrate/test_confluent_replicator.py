"""The settings of Confluent Replicator as a link."""

import json
import re

import pytest

from appliance.errors import SettingsError
from appliance.migrate.model.confluent_replicator import replicator_link
from appliance.migrate.model.link import ImportedLink
from appliance.migrate.model.properties import read_connector
from appliance.migrate.model.verdict import Outcome, Verdict
from appliance.settings.parse import parse
from appliance.settings.role import EVERY_ROLE
from tests.support.imports import REPLICATOR
from tests.support.settings import REQUIRED

TUNNEL = ("SOURCE_SIDE_TUNNEL_IP", "DESTINATION_SIDE_TUNNEL_IP", "SHARED_SECRET")


def link(text: str, source: str = "", destination: str = "grape") -> tuple[ImportedLink, dict[str, Outcome]]:
    found, outcomes = replicator_link("f", read_connector("f", text.encode()).values, source, destination)
    return found, {outcome.key: outcome for outcome in outcomes}


def changed(**settings: object) -> str:
    """The example with other settings; an underscore stands for a dot."""
    connector = json.loads(REPLICATOR)
    connector["config"] |= {key.replace("_", "."): value for key, value in settings.items()}
    return json.dumps(connector)


def test_the_example_becomes_a_link_that_the_appliance_accepts() -> None:
    found, _ = link(REPLICATOR, "orange")
    assert found.folder == "kafka-cloud-replicator-orange-grape"
    assert found.variables == {
        "SOURCE_CLUSTER_ID": "orange",
        "SOURCE_BROKER_SERVERS": "b0.orange.example:9092,b1.orange.example:9092",
        "SOURCE_API_KEY": "orange-key",
        "SOURCE_API_SECRET": "pa$$ \"quoted\" 'word'",
        "SOURCE_SECURITY_PROTOCOL": "SASL_SSL",
        "SOURCE_SASL_MECHANISM": "PLAIN",
        "DESTINATION_CLUSTER_ID": "grape",
        "DESTINATION_BROKER_SERVERS": "b0.grape.example:9092",
        "DESTINATION_SECURITY_PROTOCOL": "PLAINTEXT",
        "REPLICA_TOPICS_SOURCE_REGEX": r"payments|audit\.log|orders\..{1,20}",
        "REPLICA_TOPICS_DEST_SUFFIX": "copy",
        "REPLICA_TOPICS_NAMING": "suffix",
        "REPLICA_TOPICS_SEPARATOR": ".",
        "REPLICA_TOPICS_EXCLUDE_REGEX": r"orders\.test",
        "REPLICATION_FACTOR": "3",
        "CONFIGS_SYNC": "yes",
        "TASKS": "4",
        "DISCOVERY_SECONDS": "30",
    }
    assert parse({**found.variables, **{name: REQUIRED[name] for name in TUNNEL}}, EVERY_ROLE).topics.suffix == "copy"


def test_every_key_has_an_outcome_and_none_shows_a_value() -> None:
    outcomes = link(REPLICATOR)[1]
    keys = read_connector("f", REPLICATOR.encode()).values.keys()
    assert keys == outcomes.keys()
    assert all(found.variables or found.reason for found in outcomes.values())
    assert not re.search("pa\\$|quoted|eyJ", " ".join(map(str, outcomes.values())))
    assert {key: found.verdict for key, found in outcomes.items() if found.verdict is not Verdict.CARRIED} == {
        "name": Verdict.LEFT,
        "connector.class": Verdict.NEEDLESS,
        "key.converter": Verdict.NEEDLESS,
        "value.converter": Verdict.NEEDLESS,
        "src.consumer.group.id": Verdict.LEFT,
        "src.consumer.max.poll.records": Verdict.LEFT,
        "topic.preserve.partitions": Verdict.NEEDLESS,
        "provenance.header.enable": Verdict.NEEDLESS,
        "provenance.header.filter.overrides": Verdict.LEFT,
        "offset.timestamps.commit": Verdict.LEFT,
        "offset.translator.tasks.max": Verdict.LEFT,
        "confluent.license": Verdict.LEFT,
        "confluent.topic.replication.factor": Verdict.LEFT,
        "some.key": Verdict.LEFT,
    }


def test_provenance_headers_are_told_as_not_needed_with_the_reason() -> None:
    told = link(REPLICATOR)[1]["provenance.header.enable"].reason
    assert told.startswith("not needed: no header is added, and no record travels in circles")


@pytest.mark.parametrize(
    ("renamed", "cluster", "expected"),
    [
        ("${topic}.copy", "source", {"REPLICA_TOPICS_NAMING": "suffix", "REPLICA_TOPICS_DEST_SUFFIX": "copy"}),
        ("${topic}-dc.1", "source", {"REPLICA_TOPICS_SEPARATOR": "-", "REPLICA_TOPICS_DEST_SUFFIX": "dc.1"}),
        ("${topic}", "source", {"REPLICA_TOPICS_NAMING": "identical"}),
        ("lime.${topic}", "lime", {"REPLICA_TOPICS_NAMING": "prefix", "REPLICA_TOPICS_SEPARATOR": "."}),
        ("us-east_${topic}", "us-east", {"REPLICA_TOPICS_NAMING": "prefix", "REPLICA_TOPICS_SEPARATOR": "_"}),
    ],
)
def test_the_name_of_a_copy_is_kept(renamed: str, cluster: str, expected: dict[str, str]) -> None:
    found, outcomes = link(changed(topic_rename_format=renamed))
    assert found.source == cluster
    assert found.variables.items() >= expected.items()
    assert outcomes["topic.rename.format"].verdict is Verdict.CARRIED


@pytest.mark.parametrize(
    ("renamed", "topics", "names"),
    [
        ("eu.${topic}.copy", "orders, a.b", "orders=eu.orders.copy,a.b=eu.a.b.copy"),
        ("one", "orders", "orders=one"),
        ("one", "orders,a.b", None),
    ],
)
def test_topics_that_are_listed_keep_any_names_of_copies_in_a_map(renamed: str, topics: str, names: str | None) -> None:
    listed = {"topic_regex": "", "topic_blacklist": "", "topic_whitelist": topics, "topic_rename_format": renamed}
    found, _ = link(changed(**listed))
    assert found.variables.get("REPLICA_TOPICS_NAMES") == names
    if names:
        own = parse({**found.variables, **{name: REQUIRED[name] for name in TUNNEL}}, EVERY_ROLE).topics
        assert ",".join(map("=".join, own.pairs)) == names
    assert "REPLICA_TOPICS_NAMES" not in link(changed(**listed, transforms="mask"))[0].variables


@pytest.mark.parametrize(
    ("renamed", "source"), [("one", ""), ("${topic}copy", ""), ("a.${topic}.b", ""), ("lime.${topic}", "orange")]
)
def test_where_another_name_cannot_be_kept_the_user_has_to_choose_one(renamed: str, source: str) -> None:
    found, outcomes = link(changed(topic_rename_format=renamed), source)
    assert outcomes["topic.rename.format"].verdict is Verdict.LEFT
    assert not {"REPLICA_TOPICS_NAMING", "REPLICA_TOPICS_DEST_SUFFIX"} & found.variables.keys()


@pytest.mark.parametrize(
    "settings",
    [
        {"topic_regex": r"\p{Alnum}+"},
        {"topic_regex": "", "topic_whitelist": ""},
        {"value_converter": "io.confluent.connect.avro.AvroConverter"},
        {"transforms": "mask"},
    ],
    ids=lambda settings: " ".join(settings),
)
def test_case_301_where_other_records_would_be_copied_no_topic_is_chosen(settings: dict[str, object]) -> None:
    assert "REPLICA_TOPICS_SOURCE_REGEX" not in link(changed(**settings))[0].variables


def test_a_flat_properties_file_is_the_same_link() -> None:
    flat = "\n".join(
        f"{key}={value}" for key, value in json.loads(REPLICATOR)["config"].items() if "jaas" not in key
    ).replace("\\", "\\\\")
    expected = dict(link(REPLICATOR)[0].variables)
    del expected["SOURCE_API_KEY"], expected["SOURCE_API_SECRET"]
    assert link(flat.replace("=True", "=true").replace("=False", "=false"))[0].variables == expected


def test_a_destination_that_only_connects_producer_knows_is_found() -> None:
    connector = json.loads(REPLICATOR)["config"]
    moved = {key.replace("dest.kafka.", "producer.override."): value for key, value in connector.items()}
    found, _ = link(json.dumps(moved))
    assert found.variables["DESTINATION_BROKER_SERVERS"] == "b0.grape.example:9092"


def test_values_that_a_config_provider_looks_up_are_asked_for() -> None:
    found, outcomes = link(changed(dest_kafka_bootstrap_servers="${file:/data:servers}"))
    assert "DESTINATION_BROKER_SERVERS" not in found.variables
    assert "give the value itself" in outcomes["dest.kafka.bootstrap.servers"].reason


def test_the_settings_of_another_connector_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"^f: src\.kafka\.bootstrap\.servers: missing"):
        link('{"connector.class": "FileStreamSource"}')
