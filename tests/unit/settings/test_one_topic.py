"""kafka-reo's four variables, with ours beside them."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import SettingsError
from appliance.link.model.naming import Naming
from appliance.settings.env_file import load, read_settings, usual_file
from appliance.settings.one_topic import ONE_TOPIC_NAMES, cluster_name, with_one_topic
from appliance.settings.parse import parse
from appliance.settings.parsers import identifier
from appliance.settings.role import EVERY_ROLE, Role
from appliance.settings.target import Target
from appliance.settings.values import Route, SecurityProtocol, Settings, TopicNaming
from tests.support.settings import REQUIRED, faults_of, write_settings

FOUR = {
    "KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS": "source-kafka-cluster:9092",
    "KAFKA_CLUSTERS_SOURCE_TOPIC": "source-topic",
    "KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS": "destination-kafka-cluster:9092",
    "KAFKA_CLUSTERS_DESTINATION_TOPIC": "destination-topic",
}
TOPICS = ("KAFKA_CLUSTERS_SOURCE_TOPIC", "KAFKA_CLUSTERS_DESTINATION_TOPIC")
HOSTS = st.from_regex(r"[a-z0-9_][a-z0-9_.-]{0,80}", fullmatch=True)
NAMES = st.text("abz019AZ._-", min_size=1, max_size=249)


def settings(**more: str) -> Settings:
    return parse(FOUR | more, Role.REPLICATOR)


def test_the_four_variables_are_a_link_of_one_topic_to_one_topic_without_a_tunnel() -> None:
    link = settings()
    assert set(FOUR) == set(ONE_TOPIC_NAMES)
    assert link.source.bootstrap == (Target("source-kafka-cluster", 9092),)
    assert link.destination.bootstrap == (Target("destination-kafka-cluster", 9092),)
    assert (link.source.protocol, link.destination.protocol) == (SecurityProtocol.PLAINTEXT,) * 2
    assert (link.route, link.topics.naming) == (Route.DIRECT, TopicNaming.EXACT)
    naming = Naming.of(link)
    assert naming.destination("source-topic") == "destination-topic"
    assert naming.copies("source-topic", internal=False)
    assert not naming.copies("source-topic2", internal=False)


@pytest.mark.parametrize("topic", ["heartbeats", "my.internal", "a.replica", "sourceXtopic", "source.topic"])
def test_the_topic_is_copied_whatever_its_name_is_and_no_other_for_it(topic: str) -> None:
    naming = Naming.of(settings(KAFKA_CLUSTERS_SOURCE_TOPIC=topic))
    assert naming.copies(topic, internal=False)
    assert naming.copies("sourceXtopic", internal=False) == (topic == "sourceXtopic")


@given(st.lists(st.tuples(HOSTS, NAMES, NAMES), min_size=2, max_size=2, unique=True))
def test_clusters_have_legal_names_and_two_links_never_the_same(links: list[tuple[str, str, str]]) -> None:
    one, other = (cluster_name(f"{host}:9092", topic, copy) for host, topic, copy in links)
    assert one != other
    assert identifier(one) == one
    assert "." not in one


def test_a_link_keeps_its_name_when_brokers_are_added() -> None:
    assert settings().replicator.startswith("replicator-source-kafka-cluster-source-topic-")
    moved = settings(KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS="Source-Kafka-Cluster:9092, b1.elsewhere:9093")
    assert moved.replicator == settings().replicator


@pytest.mark.parametrize(("name", "other"), [(name, text.replace("-", "x")) for name, text in FOUR.items()])
def test_another_link_has_other_positions_here_and_when_it_fails_back(name: str, other: str) -> None:
    one, another = Naming.of(settings()), Naming.of(settings(**{name: other}))
    assert one.failback.positions_topic != another.failback.positions_topic
    if "DESTINATION_BOOT" not in name:
        assert one.positions_topic != another.positions_topic


def test_two_opposite_links_know_each_other_for_a_circle() -> None:
    names = (name.replace("SOURCE", "X").replace("DESTINATION", "SOURCE").replace("X", "DESTINATION") for name in FOUR)
    back = Naming.of(parse(dict(zip(names, FOUR.values(), strict=True)), Role.REPLICATOR))
    assert back.opposite == Naming.of(settings()).replicator
    assert Naming.of(settings()).opposite == back.replicator


@pytest.mark.parametrize("side", ["SOURCE", "DESTINATION"])
@pytest.mark.parametrize(
    ("more", "protocol"),
    [
        ({}, "PLAINTEXT"),
        ({"CA_FILE": "/ca.pem"}, "SSL"),
        ({"API_KEY": "ann", "API_SECRET_FILE": "/secret"}, None),
        ({"API_KEY": "ann", "API_SECRET": "x", "SECURITY_PROTOCOL": "SASL_PLAINTEXT"}, "SASL_PLAINTEXT"),
    ],
)
def test_an_authority_turns_on_tls_and_a_login_leaves_the_usual_default(
    side: str, more: Mapping[str, str], protocol: str | None
) -> None:
    environment, _ = with_one_topic(FOUR | {f"{side}_{name}": text for name, text in more.items()})
    assert environment.get(f"{side}_SECURITY_PROTOCOL") == protocol
    other = "DESTINATION" if side == "SOURCE" else "SOURCE"
    assert environment[f"{other}_SECURITY_PROTOCOL"] == "PLAINTEXT"


def test_variables_of_ours_win_and_keep_their_texts() -> None:
    own = {"SOURCE_CLUSTER_ID": "orange", "DESTINATION_CLUSTER_ID": "grape", "TASKS": "5", "SOURCE_API_SECRET": " x "}
    link = settings(**own, SOURCE_API_KEY="ann")
    assert (link.replicator, link.destination.cluster_id, link.engine.tasks) == ("replicator-orange", "grape", 5)
    assert link.source.api_secret.reveal() == " x "
    assert link.source.protocol is SecurityProtocol.SASL_SSL


def test_ours_may_stand_for_one_of_the_four() -> None:
    three = {name: text for name, text in FOUR.items() if name != "KAFKA_CLUSTERS_SOURCE_TOPIC"}
    assert parse(three | {"REPLICA_TOPICS_SOURCE_REGEX": "source-topic"}, Role.REPLICATOR) == settings()


def test_all_faults_are_found_and_called_by_the_names_that_the_user_set() -> None:
    wrong = {
        "KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS": "b0:9092, b1",
        "KAFKA_CLUSTERS_SOURCE_TOPIC": "orders.*",
        "KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS": " ",
        "LANES": "many",
    }
    assert faults_of(wrong, Role.REPLICATOR) == (
        "KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS=b0:9092, b1: expected host:port, got 'b1' in the list",
        "KAFKA_CLUSTERS_SOURCE_TOPIC=orders.*: expected a topic's name: 1 to 249 of the characters a-z A-Z 0-9 . _ -",
        "KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS: missing: The destination's bootstrap brokers: host:port.",
        "KAFKA_CLUSTERS_DESTINATION_TOPIC: missing: The name of its copy.",
        "LANES=many: expected a whole number from 0 to 1000",
    )


def test_one_of_the_four_and_another_text_of_ours_are_not_both_taken() -> None:
    assert faults_of(FOUR | {"SOURCE_BROKER_SERVERS": "b0.orange:9092"}, Role.REPLICATOR) == (
        "KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS=source-kafka-cluster:9092, SOURCE_BROKER_SERVERS=b0.orange:9092: "
        "expected one of them, not both",
    )
    assert settings(SOURCE_BROKER_SERVERS="source-kafka-cluster:9092") == settings()


def test_a_topic_is_not_copied_onto_itself() -> None:
    same = FOUR | {"KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS": FOUR["KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS"]}
    assert faults_of(same | {"KAFKA_CLUSTERS_DESTINATION_TOPIC": "source-topic"}, Role.REPLICATOR) == (
        "KAFKA_CLUSTERS_DESTINATION_TOPIC=source-topic: expected another topic than KAFKA_CLUSTERS_SOURCE_TOPIC in the "
        "same cluster",
    )
    assert parse(same, Role.REPLICATOR)
    assert settings(**dict.fromkeys(TOPICS, "t"), KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS="source-kafka-cluster:1")


def test_another_naming_is_refused() -> None:
    [fault] = faults_of(FOUR | {"REPLICA_TOPICS_NAMING": "prefix"}, Role.REPLICATOR)
    assert fault.startswith("REPLICA_TOPICS_NAMING=prefix: expected exact, or nothing, with KAFKA_CLUSTERS_DEST")
    assert settings(REPLICA_TOPICS_NAMING="EXACT") == settings()


def test_a_service_of_kubernetes_with_such_a_name_is_no_setting() -> None:
    assert settings(KAFKA_CLUSTERS_SOURCE_SERVICE_HOST="10.0.0.7", SOURCE_API_PORT="tcp://x:1") == settings()


def test_the_environment_alone_is_enough_and_wins_over_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_settings(usual_file(FOUR), Role.REPLICATOR, FOUR) == settings()
    assert read_settings(usual_file(REQUIRED), EVERY_ROLE, REQUIRED) == parse(REQUIRED, EVERY_ROLE)
    written = write_settings(tmp_path / "setenv.sh", FOUR | {"KAFKA_CLUSTERS_SOURCE_TOPIC": "first"})
    assert usual_file(FOUR) == written.relative_to(tmp_path)
    assert load(usual_file(FOUR), {"KAFKA_CLUSTERS_SOURCE_TOPIC": "second", "HOME": "/"}) == FOUR | {
        "KAFKA_CLUSTERS_SOURCE_TOPIC": "second"
    }


def test_a_name_in_a_file_that_is_nearly_one_of_the_four_is_a_fault(tmp_path: Path) -> None:
    path = write_settings(tmp_path / "setenv.sh", {"KAFKA_CLUSTERS_SOURCE_TOPICS": "orders"})
    with pytest.raises(SettingsError, match=r"no such variable: did you mean KAFKA_CLUSTERS_SOURCE_TOPIC\?"):
        load(path, {})


@pytest.mark.parametrize("environment", [{}, {"LOG_LEVEL": "debug", "KAFKA_CLUSTERS_SOURCE_TOPIC": ""}])
def test_without_any_settings_a_replicator_says_which_it_needs(
    environment: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError) as refusal:
        read_settings(usual_file(environment), Role.REPLICATOR, environment)
    nothing, one_topic, more = refusal.value.faults
    assert nothing.startswith("no settings: ")
    assert one_topic.endswith(", ".join(FOUR))
    assert "cp setenv.sh.template setenv.sh && chmod 600 setenv.sh" in more
