"""The settings of MirrorMaker 2 as links. Its sources (Kafka 2.4 to 4.3) say which key counts where."""

import json
import re

import pytest

from appliance.errors import SettingsError
from appliance.link.model.naming import Naming
from appliance.migrate.model.link import ImportedLink
from appliance.migrate.model.mirror_maker import links_of_either
from appliance.migrate.model.properties import read_connector, read_properties
from appliance.migrate.model.verdict import Outcome, Verdict
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.values import TopicNaming
from tests.support.imports import MIRROR_MAKER

ONE = (
    "clusters = A, B\nA->B.enabled = true\nA.bootstrap.servers = a.example:9092\nB.bootstrap.servers = b.example:9092\n"
)
NO_FORMATS = "emit.heartbeats.enabled=false\nemit.checkpoints.enabled=false\n"


def links(text: str) -> tuple[tuple[ImportedLink, ...], dict[str, Outcome]]:
    found, outcomes = links_of_either("f", read_connector("f", text.encode()).values)
    return found, {outcome.key: outcome for outcome in outcomes}


def variables(text: str) -> dict[str, str]:
    """The variables of the link from A to B."""
    return dict(links(ONE + text)[0][0].variables)


def outcome(text: str, key: str) -> Outcome:
    return links(ONE + text)[1][key]


def test_the_example_becomes_a_link_for_each_direction_that_the_appliance_accepts() -> None:
    (there, back), _ = links(MIRROR_MAKER)
    assert [there.folder, back.folder] == [
        "kafka-cloud-replicator-source-target",
        "kafka-cloud-replicator-target-source",
    ]
    assert parse(there.variables, Role.REPLICATOR).topics.replication_factor == 1
    assert parse(back.variables, Role.REPLICATOR).replicator == "replicator-target"
    assert there.variables == {
        "SOURCE_CLUSTER_ID": "source",
        "SOURCE_BROKER_SERVERS": "127.0.31.1:9092",
        "SOURCE_SECURITY_PROTOCOL": "PLAINTEXT",
        "SOURCE_ROUTE": "direct",
        "DESTINATION_CLUSTER_ID": "target",
        "DESTINATION_BROKER_SERVERS": "127.0.32.1:9092",
        "DESTINATION_SECURITY_PROTOCOL": "PLAINTEXT",
        "REPLICA_TOPICS_SOURCE_REGEX": ".*",
        "REPLICA_TOPICS_NAMING": "prefix",
        "REPLICA_TOPICS_EXCLUDE_REGEX": ".*[-.]internal|.*.replica|__consumer_offsets",
        "REPLICA_TOPICS_INTERNAL_REGEX": r"__.*,\..*,.*[-.]internal,heartbeats",
        "REPLICATION_FACTOR": "1",
        "CONFIGS_SYNC": "yes",
        "ACLS_SYNC": "yes",
        "REPLICA_GROUPS_REGEX": ".*",
        "REPLICA_GROUPS_EXCLUDE_REGEX": "console-consumer-.*|connect-.*|__.*",
        "MM2_FORMATS": "yes",
        "TASKS": "1",
        "DISCOVERY_SECONDS": "10",
    }


def test_every_key_of_the_example_has_an_outcome_with_a_variable_or_a_reason() -> None:
    keys = read_properties("f", MIRROR_MAKER.encode()).values
    outcomes = links(MIRROR_MAKER)[1]
    assert keys.keys() <= outcomes.keys()
    assert all(found.variables or found.reason for found in outcomes.values())
    assert {key for key, found in outcomes.items() if found.verdict is Verdict.LEFT} == {
        "offset-syncs.topic.replication.factor",
        "heartbeats.topic.replication.factor",
        "checkpoints.topic.replication.factor",
        "(by default) sync.group.offsets.enabled",
    }


def test_a_direction_is_enabled_by_its_own_key_alone_though_mirror_maker_runs_for_heartbeats() -> None:
    found, outcomes = links(ONE + "B->A.emit.heartbeats.enabled = true\nB->A.topics = x\n")
    assert [link.folder for link in found] == ["kafka-cloud-replicator-A-B"]
    assert "B->A.enabled is not true" in outcomes["B->A.emit.heartbeats.enabled"].reason
    assert "B->A.enabled is not true" in outcomes["B->A.topics"].reason


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a = b", "f: clusters: missing"),
        ("clusters = A, B\nA->B.enabled = false", "f: no direction is enabled"),
        ("clusters = A, ../B\nA->../B.enabled = true", "the cluster's name '../B': expected at most 100 of"),
    ],
)
def test_a_file_without_a_direction_between_two_names_is_refused(text: str, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        links(text)


def test_the_defaults_of_mirror_maker_are_carried_over() -> None:
    found = variables("")
    assert {name: found[name] for name in found if name.startswith(("REPLI", "ACLS", "MM2", "CONFIGS"))} == {
        "REPLICA_TOPICS_SOURCE_REGEX": ".*",
        "REPLICA_TOPICS_EXCLUDE_REGEX": r"mm2.*\.internal|.*\.replica|__.*",
        "REPLICA_TOPICS_INTERNAL_REGEX": r"__.*,\..*,.*[-.]internal,heartbeats",
        "REPLICA_TOPICS_NAMING": "prefix",
        "REPLICATION_FACTOR": "2",
        "REPLICA_GROUPS_REGEX": ".*",
        "ACLS_SYNC": "yes",
        "MM2_FORMATS": "yes",
    }


@pytest.mark.parametrize(
    "topic", ["__consumer_offsets", "mm2-offset-syncs.B.internal", "connect-internal", "B.checkpoints.internal"]
)
def test_topics_that_mirror_maker_never_copies_are_excluded_even_if_nothing_is(topic: str) -> None:
    found = parse(variables("topics.exclude =\n"), Role.REPLICATOR).topics
    assert re.fullmatch(found.internal_regex, topic)
    assert not re.fullmatch(found.exclude_regex, topic)


def test_a_directions_own_key_precedes_the_key_of_all_and_the_other_is_named() -> None:
    text = "topics = a\nA->B.topics = b,c\n"
    assert variables(text)["REPLICA_TOPICS_SOURCE_REGEX"] == "b|c"
    assert (outcome(text, "topics").verdict, outcome(text, "topics").reason) == (
        Verdict.LEFT,
        "A->B.topics takes precedence",
    )


def test_a_new_name_precedes_an_old_one_whatever_its_place() -> None:
    text = "A->B.topics.blacklist = old\ntopics.exclude = new\n"
    assert variables(text)["REPLICA_TOPICS_EXCLUDE_REGEX"] == "new"
    assert outcome("topics.blacklist = old\n", "topics.blacklist").reason == "Kafka 4 no longer reads this name"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("replication.policy.separator = _", {"REPLICA_TOPICS_SEPARATOR": "_"}),
        ("sync.topic.acls.enabled = false", {"ACLS_SYNC": "no"}),
        ("sync.topic.configs.enabled = false", {"CONFIGS_SYNC": "no"}),
        ("config.properties.blacklist = a, b", {"CONFIGS_EXCLUDE_REGEX": "a|b"}),
        ("A.consumer.auto.offset.reset = latest", {"REPLICA_TOPICS_START": "latest"}),
        ("sync.group.offsets.interval.seconds = 7", {"GROUPS_SYNC_SECONDS": "7"}),
        (
            "A.security.protocol = SSL\nA.ssl.truststore.type = PEM\nA.ssl.truststore.location = /a.pem",
            {"SOURCE_CA_FILE": "/a.pem"},
        ),
        (
            "ssl.truststore.type = PEM\nssl.truststore.location = /a.pem",
            {"SOURCE_CA_FILE": "/a.pem", "DESTINATION_CA_FILE": "/a.pem"},
        ),
        (
            "A.ssl.keystore.type = PEM\nA.ssl.keystore.location = /a.pem\nA.ssl.key.password = p w",
            {
                "SOURCE_SSL_CERTIFICATE_FILE": "/a.pem",
                "SOURCE_SSL_KEY_FILE": "/a.pem",
                "SOURCE_SSL_KEY_PASSWORD": "p w",
            },
        ),
        (
            "A.sasl.mechanism = OAUTHBEARER\nA.sasl.oauthbearer.token.endpoint.url = https://idp.example/token\n"
            "A.sasl.jaas.config = o.a.k.OAuthBearerLoginModule required clientId='id' clientSecret='s' scope='kafka' "
            "extension_logicalCluster='lkc-1';",
            {
                "SOURCE_SASL_MECHANISM": "OAUTHBEARER",
                "SOURCE_OAUTH_TOKEN_URL": "https://idp.example/token",
                "SOURCE_API_KEY": "id",
                "SOURCE_API_SECRET": "s",
                "SOURCE_OAUTH_SCOPE": "kafka",
                "SOURCE_OAUTH_EXTENSIONS": "logicalCluster=lkc-1",
            },
        ),
        (
            "A.sasl.mechanism = AWS_MSK_IAM\n"
            "A.sasl.jaas.config = software.amazon.msk.auth.iam.IAMLoginModule required;",
            {"SOURCE_SASL_MECHANISM": "AWS_MSK_IAM"},
        ),
    ],
)
def test_a_key_sets_its_variable(text: str, expected: dict[str, str]) -> None:
    assert variables(text).items() >= expected.items()


def test_logins_are_those_of_the_consumer_at_the_source_and_of_the_producer_at_the_destination() -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    text = (
        "A.security.protocol = SASL_SSL\nA.sasl.mechanism = SCRAM-SHA-512\n"
        f'A.sasl.jaas.config = {module} username="any" password="p1";\n'
        f'A.consumer.sasl.jaas.config = {module} username="reader" password="p$2";\n'
        f'A.producer.sasl.jaas.config = {module} username="writer" password="p3";\n'
        "B.producer.security.protocol = SASL_PLAINTEXT\nB.producer.sasl.mechanism = PLAIN\n"
        f'B.producer.sasl.jaas.config = {module.replace("scram.Scram", "plain.Plain")} username="w" password="p4";\n'
    )
    found = variables(text)
    assert (found["SOURCE_API_KEY"], found["SOURCE_API_SECRET"]) == ("reader", "p$2")
    assert (found["SOURCE_SECURITY_PROTOCOL"], found["SOURCE_SASL_MECHANISM"]) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (found["DESTINATION_API_KEY"], found["DESTINATION_API_SECRET"]) == ("w", "p4")
    assert found["DESTINATION_SECURITY_PROTOCOL"] == "SASL_PLAINTEXT"
    assert "takes precedence" in outcome(text, "A.sasl.jaas.config").reason
    assert "one login for each cluster" in outcome(text, "A.producer.sasl.jaas.config").reason
    assert not re.search(r"p\$?[1-4]", " ".join(map(str, links(ONE + text)[1].values())))


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("A.ssl.truststore.location = /a.jks", "A.ssl.truststore.location", "convert the authorities to PEM"),
        ("A.ssl.keystore.location = /a.jks", "A.ssl.keystore.location", "convert key and certificate to PEM"),
        ("A.sasl.mechanism = GSSAPI", "A.sasl.mechanism", "expected one of"),
        ("A.sasl.jaas.config = ${file:/f:k}", "A.sasl.jaas.config", "a config provider or a template fills it in"),
        ("refresh.topics.interval.seconds = 86400", "refresh.topics.interval.seconds", "expected seconds from"),
        ("refresh.topics.enabled = false", "refresh.topics.enabled", "found every DISCOVERY_SECONDS"),
        ("emit.heartbeats.interval.seconds = 5", "emit.heartbeats.interval.seconds", "each second"),
        (
            "offset.storage.replication.factor = 3",
            "offset.storage.replication.factor",
            "positions are in the destination",
        ),
        ("A.consumer.fetch.max.bytes = 1", "A.consumer.fetch.max.bytes", "sizes and times"),
        ("A->B.producer.override.linger.ms = 1", "A->B.producer.override.linger.ms", "sizes and times"),
        ("C.bootstrap.servers = c:1", "C.bootstrap.servers", "not known as a key"),
        ("A->C.enabled = true", "A->C.enabled", "no two of the clusters"),
        ("topcis = a", "topcis", "not known as a key of MirrorMaker 2"),
        (NO_FORMATS + "groups = a", "groups", "neither synced nor told"),
    ],
)
def test_a_key_that_is_left_has_its_reason(text: str, key: str, reason: str) -> None:
    found = outcome(text, key)
    assert found.verdict is Verdict.LEFT
    assert reason in found.reason


@pytest.mark.parametrize(
    "text",
    [
        r"topics.exclude = \\p{Alnum}.*",
        "topic.filter.class = com.example.Filter",
        "transforms = mask",
        r"topics = [a-z&&[^b]]",
    ],
)
def test_case_300_where_a_filter_is_left_no_topic_is_chosen_since_more_would_be_copied(text: str) -> None:
    assert "REPLICA_TOPICS_SOURCE_REGEX" not in variables(text)


def test_where_a_policy_of_names_is_left_the_user_has_to_choose_one() -> None:
    found = variables("replication.policy.class = com.example.Policy")
    assert not {"REPLICA_TOPICS_NAMING", "REPLICA_TOPICS_DEST_SUFFIX"} & found.keys()


@pytest.mark.parametrize("package", ["org.apache", "io.strimzi"])
@pytest.mark.parametrize("acls", ["", "sync.topic.acls.enabled = true\n"])
def test_names_stay_identical_and_then_acls_do_not_follow(acls: str, package: str) -> None:
    text = acls + f"replication.policy.class = {package}.kafka.connect.mirror.IdentityReplicationPolicy"
    assert parse(variables(text), Role.REPLICATOR).topics.naming is TopicNaming.IDENTICAL
    key = "sync.topic.acls.enabled" if acls else "(by default) sync.topic.acls.enabled"
    assert outcome(text, key).verdict is Verdict.LEFT


@pytest.mark.parametrize(
    ("text", "key", "source"),
    [
        ("A->B.source.cluster.alias = legacy\n", "A->B.source.cluster.alias", "legacy"),
        ("A.alias = legacy\nsource.cluster.alias = old\n", "A.alias", "legacy"),
        ("source.cluster.alias = old \n", "source.cluster.alias", "old"),
    ],
)
def test_case_860_the_alias_of_a_cluster_names_its_copies_and_is_no_tuning(text: str, key: str, source: str) -> None:
    settings = parse(variables(text), Role.REPLICATOR)
    assert Naming.of(settings).destination("orders") == f"{source}.orders"
    assert outcome(text, key).variables == ("SOURCE_CLUSTER_ID",)
    assert links(ONE + text)[0][0].folder == "kafka-cloud-replicator-A-B"


@pytest.mark.parametrize(
    "text",
    [
        "A->B.source.cluster.alias =\n",
        "A->B.source.cluster.alias = ${env:SOURCE}\n",
        "A->B.target.cluster.alias = a b\n",
        "replication.policy.separator =\n",
        "replication.policy.separator = x\n",
        "replication.policy.separator = ${env:SEPARATOR}\n",
    ],
)
def test_case_861_where_a_part_of_the_copies_names_is_left_the_user_has_to_choose_them(text: str) -> None:
    with pytest.raises(SettingsError, match="REPLICA_TOPICS_DEST_SUFFIX: missing"):
        parse(variables(text), Role.REPLICATOR)
    identity = text + "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    assert parse(variables(identity), Role.REPLICATOR).topics.naming is TopicNaming.IDENTICAL


@pytest.mark.parametrize("value", ["${file:/f:k}", "${env:NAME}", "x${NAME}", "{{ name }}"])
@pytest.mark.parametrize(
    ("key", "variable"),
    [
        ("B.bootstrap.servers", "DESTINATION_BROKER_SERVERS"),
        ("topics", "REPLICA_TOPICS_SOURCE_REGEX"),
        ("topics.exclude", "REPLICA_TOPICS_SOURCE_REGEX"),
        ("B.ssl.key.password", "DESTINATION_SSL_KEY_PASSWORD"),
    ],
)
def test_case_862_what_stands_for_a_value_is_never_carried_over(key: str, variable: str, value: str) -> None:
    text = f"{key} = {value}\n"
    assert variable not in variables(text)
    assert "fills it in; give the value itself" in outcome(text, key).reason


def test_case_865_latest_is_carried_over_and_said_to_have_been_ignored_by_older_versions() -> None:
    key = "A.consumer.auto.offset.reset"
    assert "before Kafka 3.6.2 ignored latest" in outcome(f"{key} = latest\n", key).reason
    assert outcome(f"{key} = earliest\n", key).reason == ""


CONFIG = """{"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector", "name": "A->B",
  "tasks.max": "4",
  "source.cluster.alias": "A", "target.cluster.alias": "B", "topics": "orders.*", "replication.policy.separator": "_",
  "source.cluster.bootstrap.servers": "a.example:9092", "target.cluster.bootstrap.servers": "b.example:9092",
  "source.consumer.auto.offset.reset": "latest"}"""
NAMED = f'{{"name": "A->B", "config": {CONFIG}}}'
ANSWER = f'{{"name": "A->B", "config": {CONFIG}, "tasks": [{{"connector": "A->B", "task": 0}}], "type": "source"}}'


@pytest.mark.parametrize("text", [CONFIG, NAMED, ANSWER, "\ufeff" + ANSWER])
def test_case_863_a_source_connector_is_a_link_as_connect_takes_it_and_as_connect_answers(text: str) -> None:
    (link,), outcomes = links(text)
    assert link.folder == "kafka-cloud-replicator-A-B"
    assert parse(link.variables, Role.REPLICATOR)
    assert (
        link.variables.items()
        >= {
            "SOURCE_BROKER_SERVERS": "a.example:9092",
            "DESTINATION_BROKER_SERVERS": "b.example:9092",
            "REPLICA_TOPICS_SOURCE_REGEX": "orders.*",
            "REPLICA_TOPICS_NAMING": "prefix",
            "REPLICA_TOPICS_SEPARATOR": "_",
            "REPLICA_TOPICS_START": "latest",
            "TASKS": "4",
        }.items()
    )
    assert "MM2_FORMATS" not in link.variables
    assert {key for key in outcomes if not key.startswith("(")} == json.loads(CONFIG).keys()


def test_a_connector_that_copies_no_records_is_refused() -> None:
    with pytest.raises(SettingsError, match="expected the connector that copies records, MirrorSourceConnector"):
        links(CONFIG.replace("MirrorSource", "MirrorCheckpoint"))


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaMirrorMaker2\nspec:\n  version: 4.3.1\n",
        '{\n  "apiVersion": "kafka.strimzi.io/v1",\n  "kind": "KafkaMirrorMaker2",\n  "spec": {}}',
        '{"kind": "KafkaMirrorMaker2", "spec": {}}',
    ],
)
def test_case_864_a_resource_of_strimzi_is_named_with_what_to_give_instead(text: str) -> None:
    with pytest.raises(SettingsError, match=r"a KafkaMirrorMaker2 of Strimzi, .* GET /connectors/A->B.MirrorSource"):
        links(text)


def test_case_863_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert links("\ufeff" + ONE)[0] == links(ONE)[0]


def test_groups_do_not_follow_where_they_did_not() -> None:
    assert "REPLICA_GROUPS_REGEX" not in variables(NO_FORMATS)
    assert variables(NO_FORMATS + "sync.group.offsets.enabled = true")["REPLICA_GROUPS_REGEX"] == ".*"


def test_brokers_that_are_named_by_addresses_are_reached_directly() -> None:
    assert "SOURCE_ROUTE" not in variables("")
    assert variables("A.bootstrap.servers = 10.0.0.1:9092")["SOURCE_ROUTE"] == "direct"


def test_names_of_clusters_may_hold_each_other_and_dots() -> None:
    text = "clusters = us, us.east\nus.east->us.enabled = true\n"
    text += "us.east.bootstrap.servers = e:1\nus.bootstrap.servers = u:1\n"
    (link,), outcomes = links(text)
    assert (link.variables["SOURCE_BROKER_SERVERS"], link.variables["DESTINATION_BROKER_SERVERS"]) == ("e:1", "u:1")
    assert {found.verdict for key, found in outcomes.items() if not key.startswith("(")} == {Verdict.CARRIED}
