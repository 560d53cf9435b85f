"""A diagnosis of a real path: first intact, then broken at each step about the brokers."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType

from appliance.doctor import trial_write
from appliance.doctor.diagnosis import Diagnosis
from appliance.doctor.step import Verdict
from appliance.kafka.client.fetch import FetchedPartition, fetch_partition
from appliance.link.client import retry
from appliance.link.model.naming import PRODUCERS, REGISTRY
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import Side
from bench.lib.running import OWN_ADDRESS, free_port
from testbed.cluster import Cluster
from testbed.plan import ApiKey
from tests.support.acls import acls_of, remove_acls
from tests.support.administration import configure, denied, permit, permitted, topics
from tests.support.doctor import assert_breaks_at, diagnosis, finding, with_verdict
from tests.support.groups import commit
from tests.support.link import GRAPE, ORANGE, Link, faults, lines, link
from tests.support.patience import PATIENCE
from tests.support.rows import read_rows, until_rows
from tests.support.scripted_broker import scripted_broker

pytestmark = pytest.mark.asyncio(loop_scope="module")

READER, WRITER = ApiKey("READER", Secret("reader-secret")), ApiKey("WRITER", Secret("writer-secret"))
LIMITED = {
    "SOURCE_API_KEY": READER.key,
    "SOURCE_API_SECRET": READER.secret.reveal(),
    "DESTINATION_API_KEY": WRITER.key,
    "DESTINATION_API_SECRET": WRITER.secret.reveal(),
}
POSITIONS = "replicator-orange.positions"
OFFSETS = "replicator-orange.offsets"
TRIAL = "replicator-orange.doctor.internal"
LINK = "replicator-orange"
BACK = f"{LINK}.failback-grape"
FAILBACK = f"{BACK}.positions, {BACK}.offsets"
DIVERGED = "replicator-orange.orders.diverged"
DOMAIN, OTHER_DOMAIN = "orange.vpc.example", "melon.vpc.example"
NAMES = {
    f"alias.{DOMAIN}": IPv4Address("127.0.4.1"),
    f"b_0.{DOMAIN}": IPv4Address("127.0.4.1"),
    f"down.{DOMAIN}": IPv4Address("127.0.4.9"),
    f"b0.{OTHER_DOMAIN}": IPv4Address("127.0.4.1"),
    f"scripted.{DOMAIN}": IPv4Address("127.0.4.8"),
}
OF_THE_TUNNEL = ("SHARED_SECRET", "SOURCE_SIDE_TUNNEL_IP", "DESTINATION_SIDE_TUNNEL_IP")
NO_KEY = {"SOURCE_API_KEY": "", "SOURCE_API_SECRET": ""}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def path(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Link]:
    """Both clusters with sufficient ACLs, and both ends of the tunnel; the source's allows fewer brokers."""
    plans = replace(ORANGE, limited_keys=(READER,)), replace(GRAPE, limited_keys=(WRITER,))
    async with link(tmp_path_factory.mktemp("doctor"), *plans) as made, contextlib.AsyncExitStack() as stack:
        made.names.update(NAMES)
        source = await stack.enter_async_context(made.running("source"))
        wide = ",".join(f"*.{domain}:{port(made)}" for domain in (DOMAIN, OTHER_DOMAIN))
        destination = await stack.enter_async_context(made.running("destination", SOURCE_BROKER_PATTERN=wide))
        for topic in ("orders", "orders-eu", "payments"):
            made.make_topic(made.orange, topic, 2)
        permit_what_is_needed(made)
        for process in (source, destination):
            await process.wait_for_line("ready", PATIENCE)
        yield made


def permit_what_is_needed(on: Link) -> None:
    op, kind = AclOperation, ResourceType
    permit(on.orange, READER, kind.TOPIC, "orders", op.READ, op.DESCRIBE_CONFIGS)
    copy = (op.CREATE, op.READ, op.WRITE, op.DESCRIBE_CONFIGS, op.ALTER_CONFIGS, op.ALTER)
    permit(on.grape, WRITER, kind.TOPIC, "orders", *copy)
    for own in (POSITIONS, OFFSETS):
        permit(on.grape, WRITER, kind.TOPIC, own, op.CREATE, op.READ, op.WRITE, op.DESCRIBE_CONFIGS)
    permit(on.grape, WRITER, kind.TOPIC, REGISTRY, op.CREATE, op.READ, op.WRITE, op.DESCRIBE_CONFIGS)
    permit(on.grape, WRITER, kind.TOPIC, TRIAL, op.CREATE, op.READ, op.WRITE, op.DESCRIBE_CONFIGS, op.DELETE)
    permit(on.grape, WRITER, kind.GROUP, LINK, op.READ)
    for transactional_id in ("replicator-orange.", REGISTRY):
        permit(on.grape, WRITER, kind.TRANSACTIONAL_ID, transactional_id, op.WRITE, op.DESCRIBE)


def port(on: Link) -> int:
    return on.orange.vpc_targets[0].port


async def examined(on: Link, side: Side = Side.DESTINATION, **changed: str) -> Diagnosis:
    return await diagnosis(on.directory, on.variables() | LIMITED | changed, side)


def named(on: Link, *hosts: str) -> dict[str, str]:
    """Brokers of the settings: the real one, and others on the same port."""
    return {"SOURCE_BROKER_SERVERS": ",".join(f"{host}:{port(on)}" for host in hosts)}


@contextlib.contextmanager
def positions_topic(on: Link, **configs: str) -> Iterator[None]:
    on.make_topic(on.grape, POSITIONS, 2, **configs)
    try:
        yield
    finally:
        admin = AdminClient(on.grape.client_configuration())
        admin.delete_topics([POSITIONS])[POSITIONS].result(PATIENCE)


async def test_a_whole_path_is_whole_and_nothing_is_left_behind(path: Link) -> None:
    report = await examined(path)
    assert report.well
    assert with_verdict(report, Verdict.FAILED, Verdict.NOT_REACHED, Verdict.SKIPPED) == ["source: failback"]
    assert finding(report, "source: DNS").detail == f"b0.{DOMAIN}:{port(path)}: live metadata"
    assert finding(report, "source: read access").detail == "2 topics: orders, orders-eu"
    assert "orders.copy, orders-eu.copy" in finding(report, "destination: create").detail
    assert path.topics(path.grape) == set()


async def test_a_record_is_committed_and_read_back_and_nothing_is_left_behind(path: Link) -> None:
    with positions_topic(path, **{"cleanup.policy": "compact"}):
        report = await examined(path)
        assert report.well
        committed = "a record was committed as replicator-orange.doctor, acknowledged, and read back"
        assert finding(report, "destination: transactions").detail == committed
        assert path.topics(path.grape) == {POSITIONS}
        assert finding(report, "destination: positions topic").detail == f"{POSITIONS} is compacted, 2 partitions"
        assert [read_rows(path.grape, POSITIONS, partition) for partition in (0, 1)] == [[], []]


async def test_case_893_a_topic_that_the_doctor_did_not_make_is_left_alone_and_told(
    path: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It deleted whatever had the name of its topic: of a link named `orange.doctor` the parts of its offset maps.
    others = "replicator-orange.doctor.offsets"
    path.make_topic(path.grape, TRIAL, 2)  # of a doctor that was killed, or runs now
    path.make_topic(path.grape, others, 1)
    try:
        monkeypatch.setattr(retry, "_PATIENCE", 5.0)
        report = await examined(path)
        told = finding(report, "destination: transactions")
        assert (report.well, told.verdict) == (True, Verdict.WARNING)
        assert f"topic {TRIAL} is there" in told.detail
        assert f"kafka-topics.sh --delete --topic {TRIAL}" in told.remedy
        assert path.topics(path.grape) == {TRIAL, others}
        delete_topics(path.grape, {TRIAL})
        assert finding(await examined(path), "destination: transactions").verdict is Verdict.PASSED
        assert path.topics(path.grape) == {others}
    finally:
        delete_topics(path.grape, path.topics(path.grape))


async def test_case_894_a_record_that_is_not_shown_at_once_is_read_later(
    path: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first empty answer of a leader was "stored with None": the path failed, and fan-in was to blame.
    answers = list[FetchedPartition]()

    async def late(*asked: Any) -> FetchedPartition:
        answers.append(await fetch_partition(*asked))
        return answers[-1] if len(answers) > 2 else replace(answers[-1], records=memoryview(b""))

    monkeypatch.setattr(trial_write, "fetch_partition", late)
    assert finding(await examined(path), "destination: transactions").verdict is Verdict.PASSED
    assert len(answers) == 3


async def test_the_command_prints_a_table_or_json_and_its_exit_code_is_0_for_a_whole_path_alone(path: Link) -> None:
    async with (
        path.running("doctor", "destination", "--json") as whole,
        path.running("doctor", "source", TUNNEL_PORT=str(free_port(OWN_ADDRESS))) as broken,
    ):
        assert (await whole.wait(PATIENCE), await broken.wait(PATIENCE)) == (0, 1)
        answer = json.loads("\n".join(lines(whole)))
        table = "\n".join(lines(broken))
    assert (answer["side"], answer["well"], len(answer["steps"])) == ("destination", True, 26)
    assert {"step", "verdict", "seconds", "detail", "change"} == set(answer["steps"][0])
    assert "the path fails at: tunnel port" in table
    assert "start `appliance source` on this VM" in table
    assert not [secret for secret in path.secrets if secret in table + str(answer)]


async def test_a_shim_that_does_not_run_is_told(path: Link) -> None:
    shim = f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}"
    report = await examined(path, DNS_LISTEN=shim)
    assert_breaks_at(report, "source: DNS", "does not answer", f"nobody answers at DNS_LISTEN={shim}: start `appliance")
    behind = [result.name for result in report.results if result.finding.verdict is Verdict.NOT_REACHED]
    names = ("TCP", "TLS", "SASL", "API versions", "broker ids", "read access", "failback")
    assert behind == [*(f"source: {name}" for name in names), "two clusters"]
    assert finding(report, behind[-1]).detail == "behind: source: DNS"


async def test_a_gateway_with_other_settings_is_told(path: Link) -> None:
    report = await examined(path, **named(path, f"b0.{DOMAIN}", "b0.kiwi.vpc.example"))
    assert_breaks_at(report, "source: DNS", "b0.kiwi.vpc.example", "restart `appliance destination`")


async def test_a_broker_of_live_metadata_that_is_not_allowed_is_told(path: Link) -> None:
    scripted, outside = Target(f"scripted.{DOMAIN}", port(path)), Target("b1.kiwi.vpc.example", 9092)
    async with scripted_broker("127.0.4.8", port(path), [scripted, outside]):
        changed = named(path, scripted.host) | {"SOURCE_SECURITY_PROTOCOL": "PLAINTEXT"}
        report = await examined(path, **changed)
    assert_breaks_at(report, "source: DNS", f"{outside}: its name is not allowed", "SOURCE_BROKER_PATTERN")


async def test_a_broker_that_is_down_is_told(path: Link) -> None:
    down = named(path, f"b0.{DOMAIN}", f"down.{DOMAIN}")
    report = await examined(path, **down)
    assert_breaks_at(report, "source: TCP", "connection refused", "is the broker up")
    report = await examined(path, Side.SOURCE, **down)
    assert_breaks_at(report, "source: TCP", f"down.{DOMAIN}", "that the broker is up")


async def test_a_broker_that_the_source_vm_does_not_allow_is_told(path: Link) -> None:
    wide = {"SOURCE_BROKER_PATTERN": f"*.{OTHER_DOMAIN}:{port(path)}"}
    report = await examined(path, **wide, **named(path, f"b0.{DOMAIN}", f"b0.{OTHER_DOMAIN}"))
    assert_breaks_at(report, "source: TCP", "not on the allow-list", "TUNNEL_BROKER_NETWORKS")


async def test_a_certificate_of_another_authority_is_told(path: Link) -> None:
    other = str(path.grape.ca_file)
    report = await examined(path, SOURCE_CA_FILE=other)
    assert_breaks_at(report, "source: TLS", f"b0.{DOMAIN}", f"SOURCE_CA_FILE; now it is {other}")
    report = await examined(path, DESTINATION_CA_FILE=str(path.orange.ca_file))
    assert_breaks_at(report, "destination: TLS", "127.0.5.1", "DESTINATION_CA_FILE")


async def test_a_certificate_in_another_name_is_told(path: Link) -> None:
    report = await examined(path, **named(path, f"b0.{DOMAIN}", f"alias.{DOMAIN}"))
    assert_breaks_at(report, "source: TLS", f"alias.{DOMAIN}", "the broker's certificate has other names")


async def test_a_port_that_is_secured_otherwise_is_told(path: Link) -> None:
    report = await examined(path, SOURCE_SECURITY_PROTOCOL="SASL_PLAINTEXT")
    assert_breaks_at(report, "source: SASL", f"b0.{DOMAIN}", "SOURCE_SECURITY_PROTOCOL=SASL_PLAINTEXT")
    async with scripted_broker("127.0.4.8", port(path), []):
        report = await examined(path, **named(path, f"scripted.{DOMAIN}"), SOURCE_SECURITY_PROTOCOL="SSL")
    assert_breaks_at(report, "source: TLS", f"scripted.{DOMAIN}", "SOURCE_SECURITY_PROTOCOL=SSL")


@pytest.mark.parametrize("wrong", [{"SOURCE_API_SECRET": "wrong"}, {"SOURCE_SASL_MECHANISM": "SCRAM-SHA-512"}])
async def test_a_wrong_key_is_told(path: Link, wrong: dict[str, str]) -> None:
    report = await examined(path, **wrong)
    assert_breaks_at(report, "source: SASL", "SOURCE_API_KEY=READER", "SOURCE_SASL_MECHANISM")


async def test_a_broker_that_is_too_old_is_told(path: Link) -> None:
    scripted = Target(f"scripted.{DOMAIN}", port(path))
    async with scripted_broker("127.0.4.8", scripted.port, [scripted], newest=5):
        report = await examined(path, **named(path, scripted.host), SOURCE_SECURITY_PROTOCOL="PLAINTEXT")
    assert_breaks_at(report, "source: API versions", "too old a broker", "Kafka 2.8")


@pytest.mark.parametrize(
    ("prefix", "operation", "seen"),
    [
        ("orders-eu", AclOperation.READ, "1 of 2 refused: orders-eu"),
        ("orders", AclOperation.DESCRIBE, "none matches"),
        ("orders", AclOperation.DESCRIBE_CONFIGS, "describe the configuration of orders"),
    ],
)
async def test_topics_that_may_not_be_read_are_named(
    path: Link, prefix: str, operation: AclOperation, seen: str
) -> None:
    with denied(path.orange, READER, ResourceType.TOPIC, prefix, operation):
        report = await examined(path)
    assert_breaks_at(report, "source: read access", seen, "SOURCE_API_KEY=READER")
    assert operation.name in finding(report, "source: read access").remedy


async def test_a_regex_that_matches_nothing_is_told(path: Link) -> None:
    report = await examined(path, REPLICA_TOPICS_SOURCE_REGEX="oders.*")
    assert_breaks_at(report, "source: read access", "none matches", "REPLICA_TOPICS_SOURCE_REGEX=oders.*")


@pytest.mark.parametrize("side", Side)
async def test_case_1113_a_topic_of_a_map_that_is_not_at_the_source_is_told_on_both_vms(path: Link, side: Side) -> None:
    # The source VM skipped the step without a regex, which a map does not need, and checked a regex's topics with one.
    mapped = {"REPLICA_TOPICS_NAMING": "map", "REPLICA_TOPICS_NAMES": "orders=sales,oders=paid"}
    report = await examined(path, side, **mapped, REPLICA_TOPICS_SOURCE_REGEX="")
    found = finding(report, "source: read access")
    assert (found.verdict, found.remedy) == (Verdict.WARNING, "check REPLICA_TOPICS_NAMES")
    assert found.detail == "1 topics; not seen, or not copied: oders"


@pytest.mark.parametrize(
    ("kind", "prefix", "operation", "step"),
    [
        (ResourceType.TOPIC, "orders", AclOperation.CREATE, "destination: create"),
        (ResourceType.TOPIC, POSITIONS, AclOperation.CREATE, "destination: create"),
        (ResourceType.TOPIC, "orders-eu", AclOperation.WRITE, "destination: write"),
        (ResourceType.TOPIC, POSITIONS, AclOperation.WRITE, "destination: write"),
        (ResourceType.TOPIC, OFFSETS, AclOperation.WRITE, "destination: write"),
        (ResourceType.TOPIC, REGISTRY, AclOperation.CREATE, "destination: create"),
        (ResourceType.TOPIC, REGISTRY, AclOperation.WRITE, "destination: write"),
        (ResourceType.TOPIC, "orders", AclOperation.READ, "destination: read and alter"),
        (ResourceType.TOPIC, POSITIONS, AclOperation.READ, "destination: read and alter"),
        (ResourceType.TOPIC, REGISTRY, AclOperation.READ, "destination: read and alter"),
        (ResourceType.TRANSACTIONAL_ID, REGISTRY, AclOperation.DESCRIBE, "destination: transactions"),
        (ResourceType.TRANSACTIONAL_ID, "replicator-orange.", AclOperation.WRITE, "destination: transactions"),
        (ResourceType.TRANSACTIONAL_ID, "replicator-orange.", AclOperation.DESCRIBE, "destination: transactions"),
    ],
)
async def test_rights_that_the_destination_does_not_give_are_named(
    path: Link, kind: ResourceType, prefix: str, operation: AclOperation, step: str
) -> None:
    with denied(path.grape, WRITER, kind, prefix, operation):
        report = await examined(path)
    assert_breaks_at(report, step, prefix, "permit DESTINATION_API_KEY=WRITER ")
    assert operation.name in finding(report, step).remedy


@pytest.mark.parametrize(("standbys", "verdict"), [("0", Verdict.WARNING), ("1", Verdict.FAILED)])
async def test_without_the_right_to_the_links_group_the_step_names_it_and_fails_only_where_a_standby_is_wanted(
    path: Link, standbys: str, verdict: Verdict
) -> None:
    with denied(path.grape, WRITER, ResourceType.GROUP, LINK, AclOperation.READ):
        found = finding(await examined(path, REPLICATOR_STANDBYS=standbys), "destination: standby")
    assert found.verdict is verdict
    assert f"permit DESTINATION_API_KEY=WRITER READ on group {LINK}:" in found.remedy


async def test_a_copy_that_may_not_be_described_is_told_by_the_doctor_and_by_the_replicator(path: Link) -> None:
    path.make_topic(path.grape, "orders.copy", 2)
    try:
        with denied(path.grape, WRITER, ResourceType.TOPIC, "orders.copy", AclOperation.DESCRIBE):
            report = await examined(path)
            assert_breaks_at(report, "destination: create", "may not see orders.copy", "DESCRIBE")
            async with path.running("replicate", **LIMITED) as replicator:
                unfit = "DESTINATION_API_KEY may not see topic orders.copy: grant it Describe there"
                await replicator.wait_for_line(unfit, PATIENCE)
                await replicator.wait_for_line("topics to copy", PATIENCE)
                made = [line for line in lines(replicator) if "topic made" in line and "orders.copy" in line]
        assert made == []
    finally:
        delete_topics(path.grape, path.topics(path.grape))


async def test_a_copy_that_must_not_be_written_is_named_and_keeps_no_other_from_being_copied(path: Link) -> None:
    # Before, the whole lane stopped: a coordinator that refuses one partition adds none of the transaction's.
    try:
        with denied(path.grape, WRITER, ResourceType.TOPIC, "orders.copy", AclOperation.WRITE):
            async with path.running("replicate", **LIMITED, LANES="1") as replicator:
                await replicator.wait_for_line("topics to copy", PATIENCE)
                for topic in ("orders", "orders-eu"):
                    path.produce(topic, 10)
                refused = await replicator.wait_for_line("orders.copy-0", PATIENCE)
                assert "TOPIC_AUTHORIZATION_FAILED" in refused
                await until_rows(path.grape, "orders-eu.copy", 10)
        assert read_rows(path.grape, "orders.copy", 0) == []
    finally:
        delete_topics(path.grape, path.topics(path.grape))


def delete_topics(cluster: Cluster, names: set[str]) -> None:
    admin = AdminClient(cluster.client_configuration())
    for deletion in admin.delete_topics(sorted(names)).values():
        deletion.result(PATIENCE)


async def test_more_replicas_than_brokers_are_told(path: Link) -> None:
    report = await examined(path, REPLICATION_FACTOR="3")
    assert_breaks_at(report, "destination: create", "orders", "REPLICATION_FACTOR=3")


async def test_a_positions_topic_that_forgets_is_told(path: Link) -> None:
    with positions_topic(path, **{"cleanup.policy": "delete"}):
        report = await examined(path)
    assert_breaks_at(report, "destination: positions topic", "cleanup.policy=delete", "cleanup.policy=compact")


async def test_the_destinations_steps_go_on_where_the_source_is_not_reached(path: Link) -> None:
    report = await examined(path, TUNNEL_PORT=str(free_port(OWN_ADDRESS)))
    assert_breaks_at(report, "tunnel port", "connection refused", "closed")
    assert finding(report, "destination: transactions").verdict is Verdict.PASSED


async def test_a_source_vm_without_a_key_tries_what_needs_none(path: Link) -> None:
    report = await examined(path, Side.SOURCE, **NO_KEY)
    assert report.well
    assert with_verdict(report, Verdict.SKIPPED) == ["source: SASL", "source: broker ids", "source: read access"]
    report = await examined(path, Side.SOURCE, **NO_KEY, SOURCE_CA_FILE="")
    assert report.well
    assert "source: TLS" in with_verdict(report, Verdict.WARNING)
    report = await examined(path, Side.SOURCE)
    assert finding(report, "source: read access").detail == "2 topics: orders, orders-eu"


async def test_names_that_the_source_vm_does_not_resolve_or_may_not_dial_are_told(path: Link) -> None:
    report = await examined(path, Side.SOURCE, **named(path, f"b0.{DOMAIN}", f"nobody.{DOMAIN}"))
    assert_breaks_at(report, "source: DNS", f"nobody.{DOMAIN}", "TUNNEL_RESOLVER=")
    report = await examined(path, Side.SOURCE, TUNNEL_BROKER_NETWORKS="")
    assert_breaks_at(report, "source: DNS", "loopback", "TUNNEL_BROKER_NETWORKS")


async def test_case_1447_a_broker_that_ends_tls_by_an_alert_is_not_said_to_speak_none(path: Link) -> None:
    # Java takes no name with an underscore in TLS, and says so by an alert: "does not speak TLS on this port".
    report = await examined(path, **named(path, f"b_0.{DOMAIN}"))
    assert_breaks_at(
        report, "source: TLS", "speaks TLS, and ends the handshake with the alert", "SOURCE_BROKER_SERVERS"
    )
    assert "an underscore" in finding(report, "source: TLS").detail


async def test_without_a_tunnel_the_source_is_reached_directly(path: Link) -> None:
    direct = {"SOURCE_ROUTE": "direct", "SOURCE_BROKER_SERVERS": f"127.0.4.1:{path.orange.ports.home}"}
    report = await examined(path, **direct, **dict.fromkeys(OF_THE_TUNNEL, ""))
    assert report.well
    assert with_verdict(report, Verdict.SKIPPED) == ["source: failback"]
    assert finding(report, "source: read access").detail == "2 topics: orders, orders-eu"


async def test_case_1448_one_cluster_on_both_sides_is_found_by_its_own_id(path: Link) -> None:
    # Another address of the same broker passed the settings and every step.
    alias = {"DESTINATION_BROKER_SERVERS": f"127.0.4.1:{port(path)}", **dict.fromkeys(OF_THE_TUNNEL, "")}
    servers = f"127.0.4.1:{path.orange.ports.home}"
    as_source = {f"DESTINATION_{name}": path.variables()[f"SOURCE_{name}"] for name in ("CA_FILE",)}
    key = {"DESTINATION_API_KEY": READER.key, "DESTINATION_API_SECRET": READER.secret.reveal()}
    report = await examined(path, SOURCE_ROUTE="direct", SOURCE_BROKER_SERVERS=servers, **alias, **as_source, **key)
    assert "two clusters" in with_verdict(report, Verdict.FAILED), report.as_json()
    assert "are one cluster" in finding(report, "two clusters").detail


async def test_without_a_tunnel_nobody_speaks_of_it_whatever_fails(path: Link) -> None:
    nowhere = f"127.0.4.1:{path.orange.ports.home},127.0.4.77:9"
    of_none = dict.fromkeys(OF_THE_TUNNEL, "")
    for wrong in ({"SOURCE_BROKER_SERVERS": nowhere}, {"SOURCE_API_SECRET": "wrong"}, {"SOURCE_API_KEY": ""}):
        own = {"SOURCE_ROUTE": "direct", "SOURCE_BROKER_SERVERS": f"127.0.4.1:{path.orange.ports.home}"} | wrong
        report = await examined(path, **own, **of_none)
        assert not report.well
        assert not re.search("tunnel|TUNNEL|gateway|source VM|`appliance", report.as_json().replace("SOURCE_ROUTE", ""))


async def test_a_replicator_with_the_rights_it_needs_is_not_disturbed(path: Link) -> None:
    path.produce("orders", 100)
    async with path.running("replicate", **LIMITED) as replicator:
        await until_copied(path, 100)
        assert (await diagnosis(path.directory, path.variables())).well
        path.produce("orders", 100)
        await until_copied(path, 200)
        assert (await diagnosis(path.directory, path.variables())).well
        assert [fault for fault in faults(replicator) if "names of lanes" not in fault] == []  # another test's topic
    assert read_rows(path.orange, "orders", 0) == read_rows(path.grape, "orders.copy", 0)


async def test_lanes_that_may_not_leave_their_names_copy_all_the_same_and_say_so_once(path: Link) -> None:
    path.make_topic(path.grape, PRODUCERS, 1, **{"cleanup.policy": "compact"})
    try:
        path.produce("orders", 10)
        async with path.running("replicate", **LIMITED) as replicator:
            await replicator.wait_for_line("lanes copy without leaving their names", PATIENCE)
            await until_copied(path, len(read_rows(path.orange, "orders", 0)))
            (fault,) = faults(replicator)
            assert "lanes copy without leaving their names" in fault
            assert read_rows(path.grape, PRODUCERS, 0) == []
    finally:
        delete_topics(path.grape, {PRODUCERS})


async def until_copied(on: Link, count: int) -> None:
    await until_rows(on.grape, "orders.copy", count)


FOR_FAILBACK = (
    ((ResourceType.TOPIC, "orders", AclOperation.WRITE), "WRITE on orders, orders-eu"),
    ((ResourceType.TOPIC, f"{BACK}.", AclOperation.CREATE), f"CREATE and READ on topics {FAILBACK}"),
    (
        (ResourceType.TRANSACTIONAL_ID, f"{BACK}.", AclOperation.WRITE),
        f"WRITE on transactional ids that begin with {BACK}.",
    ),
    ((ResourceType.TOPIC, f"{BACK}.", AclOperation.WRITE), f"WRITE on topics {FAILBACK}"),
    ((ResourceType.TOPIC, DIVERGED, AclOperation.CREATE), f"for --keep-diverged CREATE on {DIVERGED}"),
)


async def test_the_rights_missing_to_fail_back_are_named_one_by_one_and_break_nothing(path: Link) -> None:
    before = topics(path.orange)
    report = await examined(path)
    told = "only to fail back SOURCE_API_KEY=READER lacks: "
    lacks = FOR_FAILBACK[:3] + FOR_FAILBACK[4:]
    assert finding(report, "source: failback").detail == told + "; ".join(text for _, text in lacks)
    for lacking, text in FOR_FAILBACK:
        rights = [right for right, _ in FOR_FAILBACK if right is not lacking]
        with permitted(path.orange, READER, *rights):
            report = await examined(path)
        assert report.well
        assert finding(report, "source: failback").detail == told + text
    with permitted(path.orange, READER, *(right for right, _ in FOR_FAILBACK)):
        assert finding(await examined(path), "source: failback").detail == "permitted to orders, orders-eu"
    assert topics(path.orange) == before


def faulty(report: Diagnosis) -> list[str]:
    """The steps with a fault that is not this machine's."""
    return [step for step in with_verdict(report, Verdict.WARNING, Verdict.FAILED) if step != "clock"]


async def test_case_823_rights_that_are_needed_later_are_named_and_break_nothing(path: Link) -> None:
    # Only the right to describe the settings was looked at, and of copies alone.
    if there := path.topics(path.grape):
        delete_topics(path.grape, there)
    path.make_topic(path.grape, "orders.copy", 2)
    try:
        for operation in (AclOperation.ALTER_CONFIGS, AclOperation.ALTER):
            with denied(path.grape, WRITER, ResourceType.TOPIC, "orders.copy", operation):
                report = await examined(path)
            assert faulty(report) == ["destination: read and alter"]
            remedy = f"permit DESTINATION_API_KEY=WRITER {operation.name} on orders.copy"
            assert finding(report, "destination: read and alter").remedy == remedy
    finally:
        delete_topics(path.grape, {"orders.copy"})


@pytest.mark.parametrize("operation", [AclOperation.CREATE, AclOperation.WRITE, AclOperation.DELETE])
async def test_without_the_right_to_a_topic_of_its_own_the_doctor_says_that_it_does_not_know(
    path: Link, operation: AclOperation, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.topics(path.grape)
    with denied(path.grape, WRITER, ResourceType.TOPIC, TRIAL, operation):
        report = await examined(path)
    assert faulty(report) == ["destination: transactions"]
    told = finding(report, "destination: transactions")
    assert told.detail.startswith("whether records are acknowledged is not known: ")
    assert operation.name in told.remedy
    # A broker does not tell of a missing topic that it must not be deleted; the next run names it.
    left = path.topics(path.grape) - before
    assert left == ({TRIAL} if operation is AclOperation.DELETE else set())
    if left:
        monkeypatch.setattr(retry, "_PATIENCE", 5.0)
        assert TRIAL in finding(await examined(path), "destination: transactions").remedy
        delete_topics(path.grape, left)
    assert faulty(await examined(path)) == []
    assert path.topics(path.grape) == before


GROUP = "readers-of-orders"


async def test_case_824_rights_to_groups_are_tested_on_both_sides_and_no_offset_is_committed(path: Link) -> None:
    # The doctor found the path whole, and the log told of refused groups.
    commit(path.orange, GROUP, {("orders", 0): 0})
    wanted = {"REPLICA_GROUPS_REGEX": "readers-.*"}
    needed = (AclOperation.CREATE, AclOperation.READ, AclOperation.WRITE)
    of_groups = [(ResourceType.TOPIC, "replicator-orange.groups.", operation) for operation in needed]
    with permitted(path.grape, WRITER, *of_groups):
        report = await examined(path, **wanted)
        assert faulty(report) == ["source: groups"]
        assert "permit SOURCE_API_KEY=READER DESCRIBE" in finding(report, "source: groups").remedy
        with permitted(path.orange, READER, (ResourceType.GROUP, "readers-", AclOperation.DESCRIBE)):
            report = await examined(path, **wanted)
            assert_breaks_at(report, "destination: groups", GROUP, "permit DESTINATION_API_KEY=WRITER READ")
            assert f"READ on groups {GROUP}" in finding(report, "source: failback").detail
            with permitted(path.grape, WRITER, (ResourceType.GROUP, "readers-", AclOperation.READ)):
                report = await examined(path, **wanted)
                assert faulty(report) == []
    admin = AdminClient(path.grape.client_configuration())
    listed = admin.list_consumer_groups().result(PATIENCE)
    assert GROUP not in [group.group_id for group in listed.valid]


async def test_case_825_topics_of_dead_letters_and_the_sql_itself_are_tried(path: Link, tmp_path: Path) -> None:
    # Neither was: the replicator ended with the refusal, and the first dead letter waited for its topic.
    file = tmp_path / "transform.sql"
    wanted = {"REPLICA_TRANSFORM_SQL_FILE": str(file), "ON_TRANSFORM_ERROR": "dead-letter"}
    file.write_text("SELECT key, upper(string(value)) AS value, headers FROM records")
    steps = await as_command(path, **wanted)
    assert [name for name, step in steps.items() if step["verdict"] == "failed"] == []
    assert steps["SQL"]["verdict"] == "passed"
    file.write_text("SELECT key, upper(value FROM records")
    with denied(path.grape, WRITER, ResourceType.TOPIC, "orders.copy.dead", AclOperation.WRITE):
        steps = await as_command(path, **wanted)
    broken = {name: step for name, step in steps.items() if step["verdict"] == "failed"}
    assert broken.keys() == {"destination: write", "SQL"}
    assert "orders.copy.dead-letter" in broken["destination: write"]["detail"]
    assert f"REPLICA_TRANSFORM_SQL_FILE={file}: line 1" in broken["SQL"]["detail"]


async def as_command(on: Link, **changed: str) -> dict[str, dict[str, str]]:
    """The steps of the doctor as a process, by name."""
    async with on.running("doctor", "destination", "--json", **LIMITED, **changed) as doctor:
        await doctor.wait(PATIENCE)
        text = "\n".join(lines(doctor))
    return {step["step"]: step for step in json.loads(text[text.index("{\n") :])["steps"]}


ON_CLUSTER = ResourceType.BROKER, "kafka-cluster"


async def test_the_right_that_acls_lack_is_named_where_they_follow_and_breaks_nothing(path: Link) -> None:
    assert "source: ACLs" not in [result.name for result in (await examined(path)).results]
    before = acls_of(path.grape)
    report = await examined(path, ACLS_SYNC="yes")
    assert report.well
    assert {"source: ACLs", "destination: ACLs"} <= set(with_verdict(report, Verdict.WARNING))
    assert finding(report, "source: ACLs").detail == "describe ACLs: grant SOURCE_API_KEY Describe on the cluster"
    told = finding(report, "destination: ACLs")
    assert told.detail == "describe ACLs: grant DESTINATION_API_KEY Describe on the cluster"
    assert "ACLS_SYNC=no" in told.remedy
    with (
        permitted(path.orange, READER, (*ON_CLUSTER, AclOperation.DESCRIBE)),
        permitted(path.grape, WRITER, (*ON_CLUSTER, AclOperation.DESCRIBE)),
    ):
        report = await examined(path, ACLS_SYNC="yes")
        assert finding(report, "source: ACLs").verdict is Verdict.PASSED
        alter = "remove ACLs: grant DESTINATION_API_KEY Alter on the cluster"
        assert finding(report, "destination: ACLs").detail == alter
        with permitted(path.grape, WRITER, (*ON_CLUSTER, AclOperation.ALTER)):
            report = await examined(path, ACLS_SYNC="yes")
            assert finding(report, "destination: ACLs").verdict is Verdict.PASSED
    assert acls_of(path.grape) == before


async def test_case_895_acls_and_settings_that_cannot_follow_are_problems_of_the_status(path: Link) -> None:
    # The log alone told of them: status, page and metrics said that all was well.
    own = {**LIMITED, "ACLS_SYNC": "yes", "DISCOVERY_SECONDS": "0.2"}
    own["CONSOLE_LISTEN"] = f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}"
    path.produce("orders", 1)

    async def subjects() -> set[str]:
        async with path.running("status", "--json", **own) as status:
            await status.wait(PATIENCE)
            told = "\n".join(lines(status))
        return {each["subject"] for each in json.loads(told[told.index("{\n") :])["problems"]}

    async with asyncio.timeout(PATIENCE), path.running("replicate", **own):
        await until_copied(path, len(read_rows(path.orange, "orders", 0)))
        with denied(path.grape, WRITER, ResourceType.TOPIC, "orders.copy", AclOperation.ALTER_CONFIGS):
            configure(path.orange, "orders", **{"retention.ms": "7200000"})
            while not {"ACLs", "configs of orders"} <= await subjects():
                pass
        while "configs of orders" in await subjects():
            pass


@pytest.mark.release  # the rights that any link needs are tested by each submission
async def test_with_identical_names_nothing_is_copied_while_the_lanes_names_at_the_source_cannot_be_read(
    path: Link,
) -> None:
    producer = Producer({**path.orange.client_configuration(), "transactional.id": "an-application"})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce("orders", b"a copy, for all that is known", partition=0)
    producer.commit_transaction(PATIENCE)
    identical = {**LIMITED, "REPLICA_TOPICS_NAMING": "identical"}
    kind, op = ResourceType.TOPIC, AclOperation
    try:
        for side, cluster, key in (("DESTINATION", path.grape, WRITER), ("SOURCE", path.orange, READER)):
            async with path.running("replicate", **identical) as replicator:
                await replicator.wait_for_line(f"grant {side}_API_KEY Create, Describe, Read and Write on it", PATIENCE)
            permit(cluster, key, kind, PRODUCERS, op.CREATE, op.DESCRIBE, op.WRITE)
        permit(path.grape, WRITER, kind, PRODUCERS, op.READ)
        async with path.running("replicate", **identical) as replicator:
            await replicator.wait_for_line(f"grant SOURCE_API_KEY Describe and Read on {REGISTRY}", PATIENCE)
            path.produce(PRODUCERS, 1)  # a name that a link in the other direction has left
            permit(path.orange, READER, kind, REGISTRY, op.DESCRIBE, op.READ)
            await replicator.wait_for_line(f"grant SOURCE_API_KEY Describe and Read on {PRODUCERS}", PATIENCE)
        assert not read_rows(path.grape, "orders", 0)
    finally:
        for cluster in (path.orange, path.grape):
            remove_acls(cluster, PRODUCERS, prefixed=True)
        remove_acls(path.orange, REGISTRY, prefixed=True)
        delete_topics(path.grape, path.topics(path.grape))
        delete_topics(path.orange, {PRODUCERS, REGISTRY} & path.topics(path.orange))
