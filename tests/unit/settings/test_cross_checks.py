from pathlib import Path

import pytest

from appliance.errors import SettingsError
from appliance.settings.parse import parse
from appliance.settings.role import EVERY_ROLE, Role
from tests.support.settings import REQUIRED, SECRET, faults, parsed

CLUSTER = {"SPARK_MASTER": "spark://10.0.0.9:7077", "TASKS": "4", "SPARK_AUTHENTICATE_SECRET": SECRET}


def test_the_two_clusters_need_different_names() -> None:
    assert faults(DESTINATION_CLUSTER_ID="orange") == (
        "DESTINATION_CLUSTER_ID=orange: expected another name than SOURCE_CLUSTER_ID has",
    )


def test_two_missing_names_are_not_taken_for_the_same_one() -> None:
    assert len(faults(SOURCE_CLUSTER_ID="", DESTINATION_CLUSTER_ID="")) == 2


def test_by_prefix_a_clusters_name_must_not_hold_the_separator_that_ends_it() -> None:
    prefix = {"REPLICA_TOPICS_NAMING": "prefix", "SOURCE_CLUSTER_ID": "eu.orange", "DESTINATION_CLUSTER_ID": "us.grape"}
    first, second = faults(**prefix)
    assert first.startswith("SOURCE_CLUSTER_ID=eu.orange: expected a name without '.'")
    assert second.startswith("DESTINATION_CLUSTER_ID=us.grape: expected a name without '.'")
    parsed(**prefix | {"REPLICA_TOPICS_SEPARATOR": "-"})
    parsed(SOURCE_CLUSTER_ID="eu.orange")
    (fault,) = faults(MM2_FORMATS="yes", SOURCE_CLUSTER_ID="eu.orange")
    assert fault.endswith("(MM2_FORMATS=yes)")


def test_a_suffix_is_needed_unless_copies_have_a_prefix() -> None:
    (fault,) = faults(REPLICA_TOPICS_DEST_SUFFIX="")
    assert fault.startswith("REPLICA_TOPICS_DEST_SUFFIX: missing: ")
    parsed(REPLICA_TOPICS_NAMING="prefix", REPLICA_TOPICS_DEST_SUFFIX="")


def test_an_exact_copy_has_a_name_and_one_source_topic() -> None:
    exact = {"REPLICA_TOPICS_NAMING": "exact", "REPLICA_TOPICS_SOURCE_REGEX": "orders"}
    (missing,) = faults(**exact)
    assert missing.startswith("REPLICA_TOPICS_DEST_NAME: missing: ")
    (regex,) = faults(**exact | {"REPLICA_TOPICS_DEST_NAME": "any", "REPLICA_TOPICS_SOURCE_REGEX": "orders.*"})
    assert regex.startswith("REPLICA_TOPICS_SOURCE_REGEX=orders.*: expected a topic's name: ")
    internal, *_ = faults(**exact | {"REPLICA_TOPICS_DEST_NAME": "__consumer_offsets"})
    assert internal.startswith("REPLICA_TOPICS_DEST_NAME=__consumer_offsets: expected a topic's name: ")


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ("", "REPLICA_TOPICS_NAMES: missing: the topics and their copies, because of REPLICA_TOPICS_NAMING=map"),
        ("a=b,c", "REPLICA_TOPICS_NAMES=a=b,c: expected topic=copy, got 'c' in the list"),
        ("a=b,a=c", "REPLICA_TOPICS_NAMES=a=b,a=c: expected each topic and each copy once, got a twice"),
        ("a=b,c=b", "REPLICA_TOPICS_NAMES=a=b,c=b: expected each topic and each copy once, got b twice"),
        ("a=b c", "REPLICA_TOPICS_NAMES=a=b c: expected a topic's name: "),
    ],
)
def test_a_map_has_each_topic_and_each_copy_once(names: str, fault: str) -> None:
    found, *_ = faults(REPLICA_TOPICS_NAMING="map", REPLICA_TOPICS_NAMES=names)
    assert found.startswith(fault)


def test_a_map_needs_no_regex_and_no_suffix_and_is_not_taken_beside_another_naming() -> None:
    without = dict.fromkeys(("REPLICA_TOPICS_SOURCE_REGEX", "REPLICA_TOPICS_DEST_SUFFIX"), "")
    names = {"REPLICA_TOPICS_NAMES": "a=b, c=d"}
    mapped = parsed(**without, **names, REPLICA_TOPICS_NAMING="map")
    assert mapped.topics.pairs == (("a", "b"), ("c", "d"))
    assert faults(**names) == ("REPLICA_TOPICS_NAMES: expected REPLICA_TOPICS_NAMING=map with it, not suffix",)


def test_case_666_acls_do_not_follow_to_shared_copies() -> None:
    # With a fan-in, a reader of one source got Read on the records of all.
    (identical,) = faults(REPLICA_TOPICS_NAMING="identical", ACLS_SYNC="yes")
    assert identical.startswith("ACLS_SYNC=yes: expected no with REPLICA_TOPICS_NAMING=identical")
    (fan_in,) = faults(REPLICA_FAN_IN="yes", ACLS_SYNC="yes")
    assert fan_in.startswith("ACLS_SYNC=yes: expected no with REPLICA_FAN_IN=yes")


@pytest.mark.parametrize("separator", ["a", "/", ".a", "-" * 11])
def test_a_separator_is_none_of_the_characters_that_names_are_made_of(separator: str) -> None:
    assert faults(REPLICA_TOPICS_SEPARATOR=separator) == (
        f"REPLICA_TOPICS_SEPARATOR={separator}: expected at most 10 of the characters . _ -",
    )


def test_the_tunnel_takes_names_alone_and_the_fault_shows_each_address() -> None:
    first, second = faults(SOURCE_BROKER_SERVERS="10.0.0.1:9092,b1.orange.example:9092,10.0.0.2:9092")
    assert first.startswith("SOURCE_BROKER_SERVERS=10.0.0.1:9092: expected a name")
    assert second.startswith("SOURCE_BROKER_SERVERS=10.0.0.2:9092: expected a name")
    parsed(SOURCE_BROKER_SERVERS="10.0.0.1:9092", SOURCE_ROUTE="direct")


@pytest.mark.parametrize("other", ["203.0.113.7", "::ffff:203.0.113.7"])
def test_case_1444_the_two_vms_have_different_addresses(other: str) -> None:
    # The rules that were printed opened the VM to itself, and the doctor failed at the tunnel's port.
    [fault] = faults(DESTINATION_SIDE_TUNNEL_IP=other)
    assert fault.startswith("DESTINATION_SIDE_TUNNEL_IP=203.0.113.7: expected the destination VM's address")
    [fault] = faults(SOURCE_SIDE_TUNNEL_IP="2001:db8::1", DESTINATION_SIDE_TUNNEL_IP="2001:0DB8:0::0:1")
    assert fault.startswith("DESTINATION_SIDE_TUNNEL_IP=2001:db8::1: expected")
    parsed(SOURCE_SIDE_TUNNEL_IP="127.0.0.1", DESTINATION_SIDE_TUNNEL_IP="127.0.0.1")  # both ends on one machine
    parsed(SOURCE_ROUTE="direct", DESTINATION_SIDE_TUNNEL_IP=other)


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ("b0.orange.example:9092", "b1.grape.example:9092,B0.Orange.example.:9092"),
        ("[2001:db8::1]:9092", "[2001:0DB8:0:0::1]:9092"),
        ("[::ffff:10.0.0.1]:9092", "10.0.0.1:9092"),
    ],
)
def test_case_1445_a_broker_is_of_one_side_alone(source: str, destination: str) -> None:
    # The link was made, and copied a cluster into itself.
    of = {"SOURCE_ROUTE": "direct", "SOURCE_BROKER_SERVERS": source, "DESTINATION_BROKER_SERVERS": destination}
    [fault] = faults(**of)
    assert fault.startswith("DESTINATION_BROKER_SERVERS=")
    assert fault.endswith(": expected another cluster's broker: SOURCE_BROKER_SERVERS has it too")
    parsed(**of | {"SOURCE_BROKER_SERVERS": f"{source.rpartition(':')[0]}:9095"})
    exact = {"REPLICA_TOPICS_NAMING": "exact", "REPLICA_TOPICS_SOURCE_REGEX": "a"}
    parsed(**of, **exact, REPLICA_TOPICS_DEST_NAME="b")  # one topic's copy of another name


@pytest.mark.parametrize("role", [Role.DESTINATION | Role.REPLICATOR, Role.SOURCE, EVERY_ROLE])
def test_case_1491_what_is_missing_is_not_called_equal_and_an_unknown_route_demands_no_tunnel(role: Role) -> None:
    # Two missing addresses were "the same address", and SOURCE_ROUTE=dirct demanded a secret and addresses.
    none = dict.fromkeys(("SHARED_SECRET", "SOURCE_SIDE_TUNNEL_IP", "DESTINATION_SIDE_TUNNEL_IP"), "")
    assert not [fault for fault in refused(none, role) if ": missing: " not in fault]
    direct = none | {"SOURCE_ROUTE": "dirct", "SOURCE_BROKER_SERVERS": "10.0.0.1:9092"}
    assert refused(direct, role) == ("SOURCE_ROUTE=dirct: expected one of tunnel, direct",)


def refused(changed: dict[str, str], role: Role) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as refusal:
        parse(REQUIRED | changed, role)
    return refusal.value.faults


@pytest.mark.parametrize("size", ["1m", "449m", "469M"])
def test_case_1446_a_heap_in_which_spark_does_not_start_is_refused_at_once(size: str) -> None:
    # The replicator started Java, which ended with "System memory ... must be at least 471859200".
    assert faults(SPARK_DRIVER_MEMORY=size) == (
        f"SPARK_DRIVER_MEMORY={size}: expected at least 470m: with less Spark does not start",
    )
    assert [parsed(SPARK_DRIVER_MEMORY=each).engine.spark_driver_memory for each in ("470m", "1G")] == ["470m", "1G"]
    for wrong in ("512", "512mb", "1t", "0.5g"):
        assert faults(SPARK_DRIVER_MEMORY=wrong) == (
            f"SPARK_DRIVER_MEMORY={wrong}: expected a size such as 512m or 2g",
        )


def test_no_broker_is_given_the_shims_own_address() -> None:
    assert faults(TUNNEL_ENDPOINT_NETWORK="127.0.0.0/8") == (
        "TUNNEL_ENDPOINT_NETWORK=127.0.0.0/8: expected a network without the address of DNS_LISTEN=127.0.0.1:53",
    )


def test_a_transaction_outlives_its_commit_interval() -> None:
    assert faults(TRANSACTION_TIMEOUT_SECONDS="2", COMMIT_INTERVAL_MS="2000") == (
        "TRANSACTION_TIMEOUT_SECONDS=2: expected more than COMMIT_INTERVAL_MS=2000",
    )


def test_a_ca_file_has_to_hold_certificates_where_the_listener_has_tls(tmp_path: Path) -> None:
    text = tmp_path / "notes.pem"
    text.write_text("no certificate")
    assert faults(DESTINATION_CA_FILE=str(text)) == (
        f"DESTINATION_CA_FILE={text}: expected a readable PEM file: no certificate in it",
    )
    assert faults(DESTINATION_CA_FILE=str(tmp_path)) == (
        f"DESTINATION_CA_FILE={tmp_path}: expected a readable PEM file: Is a directory",
    )
    parsed(SOURCE_CA_FILE="/absent.pem", SOURCE_SECURITY_PROTOCOL="SASL_PLAINTEXT")


SSH_FILES = {
    "TUNNEL_SSH": "ubuntu@bastion.example:22",
    "TUNNEL_SSH_KEY_FILE": "/absent/own",
    "TUNNEL_SSH_HOST_KEYS_FILE": "/absent/hosts",
}


def test_every_ssh_key_file_is_looked_at_before_it_is_needed() -> None:
    refused = faults(**SSH_FILES)
    assert [fault.partition(": expected")[0] for fault in refused] == [
        "TUNNEL_SSH_KEY_FILE=/absent/own",
        "TUNNEL_SSH_HOST_KEYS_FILE=/absent/hosts",
    ]
    assert all(fault.endswith("No such file or directory") for fault in refused)


def test_ssh_key_files_are_not_read_by_a_role_without_use_for_them() -> None:
    parsed(**SSH_FILES | {"TUNNEL_SSH": ""})
    parsed(Role.REPLICATOR, **SSH_FILES)
    parsed(Role.SOURCE, **SSH_FILES)


def test_a_cluster_of_sparks_own_needs_its_secret_and_a_number_of_tasks() -> None:
    first, second = faults(SPARK_MASTER="spark://10.0.0.9:7077")
    assert first == "TASKS=0: expected how many cores of SPARK_MASTER=spark://10.0.0.9:7077 copy at once"
    assert second.startswith("SPARK_AUTHENTICATE_SECRET: missing: ")
    parsed(**CLUSTER)


def test_sql_in_flight_runs_wherever_spark_runs(tmp_path: Path) -> None:
    file = tmp_path / "replica.sql"
    file.write_text("SELECT * FROM records")
    for master in ("local[*]", "spark://10.0.0.9:7077", "k8s://https://10.0.0.9:6443"):
        parsed(**CLUSTER | {"SPARK_MASTER": master, "REPLICA_TRANSFORM_SQL_FILE": str(file)})
