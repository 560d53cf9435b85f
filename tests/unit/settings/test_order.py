"""The settings of a total order: the same file on all VMs but for one line, and one clear line for each fault."""

import dataclasses
import itertools
import re
from pathlib import Path

import pytest

from appliance.dns.binding import AddressBook
from appliance.errors import SettingsError
from appliance.link.client.clusters import order_cluster
from appliance.settings.env_file import read_either, read_order, read_settings
from appliance.settings.order import parse_order
from appliance.settings.parse import parse
from appliance.settings.role import EVERY_ROLE, TUNNEL_ENDS, Member, Role
from appliance.settings.target import Target, TargetPattern
from appliance.settings.values import Route, SecurityProtocol
from appliance.settings.variables import table_of
from tests.support.order import ADDRESSES, CLUSTERS, ORDER, order, order_faults
from tests.support.settings import REQUIRED, SECRET, write_settings

NINE = ",".join(f"c{number}@10.0.0.{number}" for number in range(1, 10))


def of_clusters(text: str) -> dict[str, str]:
    """Brokers and logins of clusters beyond those of ``ORDER``."""
    names = [entry.partition("@")[0].upper() for entry in text.split(",")]
    return {
        "GLOBAL_CLUSTERS": text,
        "GLOBAL_CLUSTER": names[0].lower(),
        "GLOBAL_HOME": names[0].lower(),
        **{f"{name}_BROKER_SERVERS": f"b0.{name.lower()}.example:9092" for name in names},
        **{f"{name}_SECURITY_PROTOCOL": "SSL" for name in names},
    }


def test_the_clusters_have_their_own_brokers_and_logins_in_the_order_of_the_list() -> None:
    settings = order(ORANGE_SECURITY_PROTOCOL="SASL_PLAINTEXT", ORANGE_BROKER_PATTERN="*.orange.example:9092")
    orange, grape, us_east = settings.clusters
    assert [each.id for each in settings.clusters] == list(ADDRESSES)
    assert [each.addresses for each in settings.clusters] == [(each,) for each in ADDRESSES.values()]
    assert orange.settings.bootstrap == (Target("b0.orange.example", 9092), Target("b1.orange.example", 9093))
    assert orange.settings.protocol is SecurityProtocol.SASL_PLAINTEXT
    assert grape.settings.protocol is SecurityProtocol.SASL_SSL
    assert grape.settings.api_secret.reveal() == ORDER["GRAPE_API_SECRET"]
    assert us_east.settings.api_key == "us-key"
    assert orange.broker_patterns == (TargetPattern("orange.example", 9092),)
    assert settings.own is grape


def test_the_rest_keeps_its_meaning_and_its_defaults() -> None:
    settings = order(LANES="7", TUNNEL_PORT="15061", LOG_LEVEL="debug", DNS_LISTEN="127.0.0.3:53")
    assert (settings.cluster, settings.home, settings.topics_regex) == ("grape", "orange", ORDER["GLOBAL_TOPICS_REGEX"])
    assert (settings.partitions, settings.alone, settings.route) == (0, True, Route.TUNNEL)
    assert settings.engine.lanes == 7
    assert settings.tunnel.listen == Target("0.0.0.0", 15061)
    assert settings.tunnel.secret.reveal() == SECRET
    assert (settings.log.level, str(settings.dns.listen)) == ("debug", "127.0.0.3:53")
    assert order(REPLICATION_FACTOR="3").topics.replication_factor == 3
    assert (order(GLOBAL_PARTITIONS="1").partitions, order(GLOBAL_ALONE="no").alone) == (1, False)


def test_each_vm_serves_its_own_brokers_and_dials_every_other_vm_by_the_name_of_the_order() -> None:
    settings = order()
    assert settings.tunnel.link == "replicator-order"
    assert settings.tunnel.server == Target(ADDRESSES["grape"], 15060)
    assert settings.tunnel.allowed.exact == (Target("b0.grape.example", 9092),)
    assert [link.source.cluster_id for link in settings.links] == ["orange", "us-east.1"]
    for link in settings.links:
        assert link.tunnel.link == settings.tunnel.link
        assert link.tunnel.server == Target(ADDRESSES[link.source.cluster_id], 15060)
        assert link.tunnel.allowed.exact == link.source.bootstrap
        assert link.destination == settings.own.settings


def test_several_vms_beside_a_cluster_are_dialled_in_their_order() -> None:
    clusters = "orange@203.0.113.7+vm-b.orange.example,grape@203.0.113.9,us-east.1@203.0.113.11"
    orange, us_east = (link.tunnel for link in order(GLOBAL_CLUSTERS=clusters).links)
    assert [each.way for each in orange.of_each_vm] == ["203.0.113.7:15060", "vm-b.orange.example:15060"]
    assert [each.way for each in us_east.of_each_vm] == ["203.0.113.11:15060"]
    assert {each.endpoint_network for each in orange.of_each_vm} == {orange.endpoint_network}


def test_no_two_clusters_brokers_share_an_address() -> None:
    settings = parse(REQUIRED, EVERY_ROLE)
    networks = [link.tunnel.endpoint_network for link in order().links]
    assert all(network.subnet_of(settings.tunnel.endpoint_network) for network in networks)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(networks, 2))
    nine = order(TUNNEL_ENDPOINT_NETWORK="127.9.9.0/24", **of_clusters(NINE))
    addresses = {AddressBook(link.tunnel.endpoint_network).address_of("b0.example") for link in nine.links}
    assert len(addresses) == 8


def test_a_cluster_is_the_same_on_all_vms_whatever_the_vm_beside_it() -> None:
    def told(name: str) -> object:
        settings = order(GLOBAL_CLUSTER=name)
        return [
            dataclasses.replace(each, settings=dataclasses.replace(each.settings, side=None, member=None))
            for each in settings.clusters
        ]

    assert told("orange") == told("grape") == told("us-east.1")


@pytest.mark.parametrize("name", ADDRESSES)
async def test_the_own_cluster_is_reached_in_this_network_and_others_by_the_tunnel(name: str) -> None:
    settings = order(Role.REPLICATOR, GLOBAL_CLUSTER=name)
    for each in settings.clusters:
        async with order_cluster(settings, each.id) as cluster:
            assert (cluster.settings, cluster.side) == (each.settings, each.id)
        assert each.settings.variable("API_KEY") == f"{re.sub('[-.]', '_', each.id).upper()}_API_KEY"
        assert each.settings.member == Member(each.id, each.id == name)


def test_a_direct_route_needs_no_addresses_and_no_tunnel() -> None:
    direct = ORDER | {"GLOBAL_ROUTE": "direct", "GLOBAL_CLUSTERS": "orange,grape", "SHARED_SECRET": ""}
    with pytest.raises(SettingsError, match="SHARED_SECRET: missing"):
        order(TUNNEL_ENDS, **direct)
    settings = order(Role.REPLICATOR, **direct | {"ORANGE_BROKER_SERVERS": "10.0.0.1:9092"})
    assert [each.addresses for each in settings.clusters] == [("",), ("",)]
    assert settings.link("orange").route is Route.DIRECT


def test_a_role_needs_no_more_than_its_part() -> None:
    names = [variable.name for variable in table_of(ORDER)]
    assert len(names) == len(set(names))
    for role in (Role.SOURCE, Role.DESTINATION, Role.REPLICATOR):
        needed = {each.name for each in table_of(ORDER) if each.required and each.roles & role and each.name in ORDER}
        order_of_role = {name: text for name, text in ORDER.items() if name in needed}
        assert parse_order(order_of_role, role).cluster == "grape"
        for name in needed - {"GLOBAL_CLUSTERS"}:
            [fault] = order_faults(role, **{name: ""})
            assert fault.startswith(f"{name}: missing: ")


def test_the_tunnels_server_needs_no_login_and_the_gateway_none_to_its_own_cluster() -> None:
    keys = {name for name in ORDER if "API" in name}

    def logins(role: Role) -> set[str]:
        return {each.name for each in table_of(ORDER) if each.name in keys and each.roles & role}

    assert logins(Role.SOURCE) == set()
    assert logins(Role.DESTINATION) == {name for name in keys if not name.startswith("GRAPE_")}
    assert logins(Role.REPLICATOR) == keys


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"GLOBAL_CLUSTERS": ""}, "GLOBAL_CLUSTERS: missing: Clusters of a total order"),
        ({"GLOBAL_CLUSTERS": "orange@"}, "GLOBAL_CLUSTERS=orange: expected two to 9 clusters"),
        ({"GLOBAL_CLUSTERS": f"{NINE},c10@10.0.0.10"}, "expected two to 9 clusters"),
        ({"GLOBAL_CLUSTERS": f"{CLUSTERS},orange@10.0.0.1"}, "expected ids of their own, not orange and orange"),
        (
            {"GLOBAL_CLUSTERS": f"{CLUSTERS},us_east-1@10.0.0.1"},
            "us-east.1 and us_east-1, whose variables are both US_EAST_1_",
        ),
        (
            {"GLOBAL_CLUSTERS": "orange@10.0.0.1,grape@10.0.0.1"},
            "expected an address for each VM: orange and grape have the same",
        ),
        ({"GLOBAL_CLUSTERS": "orange@10.0.0.1,grape"}, "expected grape@address (GLOBAL_ROUTE=tunnel)"),
        (
            {"GLOBAL_CLUSTERS": "orange@ten!,grape@10.0.0.1"},
            "expected an IP address or a host name, got 'orange@ten!' in the list",
        ),
        ({"GLOBAL_CLUSTERS": "1orange@10.0.0.2,grape@10.0.0.1"}, "expected id@address, an id of at most 18"),
        ({"GLOBAL_ROUTE": "direct"}, "expected orange without an address (GLOBAL_ROUTE=direct)"),
        (
            {"GLOBAL_CLUSTER": "lemon"},
            "GLOBAL_CLUSTER=lemon: expected one of the ids in GLOBAL_CLUSTERS: orange, grape, us-east.1",
        ),
        (
            {"GLOBAL_HOME": "lemon"},
            "GLOBAL_HOME=lemon: expected one of the ids in GLOBAL_CLUSTERS: orange, grape, us-east.1",
        ),
        ({"GLOBAL_PARTITIONS": "2"}, "GLOBAL_PARTITIONS=2: expected a whole number from 0 to 1"),
        ({"GLOBAL_TOPICS_REGEX": "orders["}, "GLOBAL_TOPICS_REGEX=orders[: expected a regular expression"),
        ({"ORANGE_BROKER_SERVERS": ""}, "ORANGE_BROKER_SERVERS: missing: Bootstrap brokers of the orange cluster"),
        ({"ORANGE_BROKER_SERVERS": "10.0.0.1:9092"}, "ORANGE_BROKER_SERVERS=10.0.0.1:9092: expected a name"),
        (
            {"US_EAST_1_SASL_MECHANISM": "OAUTHBEARER"},
            "expected either US_EAST_1_OAUTH_TOKEN_URL or US_EAST_1_OAUTH_TOKEN_COMMAND",
        ),
        ({"GRAPE_SSL_KEY_FILE": "/key.pem"}, "GRAPE_SSL_CERTIFICATE_FILE and GRAPE_SSL_KEY_FILE: expected both files"),
        ({"GRAPE_BROKER_PATTERN": "*.com:9092"}, "GRAPE_BROKER_PATTERN=*.com:9092: expected a domain of at least two"),
        (
            {"ORANGE_BROKER_PATTERN": "*.orange.example:9100"},
            "expected ports with one of ORANGE_BROKER_SERVERS (9092, 9093)",
        ),
        ({"ORANGE_BROKER_PATTERN": "*.grape.example:9092"}, "both have b0.grape.example"),
        (
            {"GRAPE_BROKER_SERVERS": "b0.orange.example:9099"},
            "ORANGE_BROKER_SERVERS, ORANGE_BROKER_PATTERN, GRAPE_BROKER_SERVERS",
        ),
        ({"SHARED_SECRET": "secret"}, "SHARED_SECRET: "),
        ({"SOURCE_CLUSTER_ID": "orange"}, "SOURCE_CLUSTER_ID: expected nothing with GLOBAL_CLUSTERS"),
        ({"TUNNEL_SSH": "me@10.0.0.1:22"}, "TUNNEL_SSH: expected nothing with GLOBAL_CLUSTERS"),
        (
            {"TUNNEL_ENDPOINT_NETWORK": "127.9.9.0/25"},
            "TUNNEL_ENDPOINT_NETWORK=127.9.9.0/25: expected /24 or larger for an order",
        ),
    ],
    ids=str,
)
def test_a_fault_is_one_line_that_names_the_variable(changes: dict[str, str], expected: str) -> None:
    [fault] = order_faults(**changes)
    assert expected in fault


@pytest.mark.parametrize("name", ["source", "Destination", "global", "tunnel", "console"])
def test_an_id_whose_variables_have_a_meaning_already_is_refused(name: str) -> None:
    faults = order_faults(GLOBAL_CLUSTERS=f"{CLUSTERS},{name}@10.0.0.1")
    assert f"expected another id than {name}: variables that begin with {name.upper()}_" in faults[0]


def test_patterns_that_overlap_leave_the_cluster_of_a_name_open() -> None:
    changes = {"ORANGE_BROKER_PATTERN": "*.example.org:9092", "GRAPE_BROKER_PATTERN": "*.grape.example.org:9092"}
    [fault] = order_faults(**changes)
    assert fault.endswith("both have *.grape.example.org")


def test_the_file_is_read_as_a_links_and_says_where_a_name_is_wrong(tmp_path: Path) -> None:
    path = write_settings(tmp_path / "setenv.sh", ORDER)
    assert read_order(path, EVERY_ROLE, {}) == read_either(path, EVERY_ROLE, {}) == order()
    assert read_order(path, EVERY_ROLE, {"GLOBAL_CLUSTER": "orange"}).cluster == "orange"
    assert read_order(path, EVERY_ROLE, {"ORANGE_API_KEY": "other"}).clusters[0].settings.api_key == "other"
    write_settings(path, ORDER | {"ORANGE_BROKER_SERVRES": "b0:9092", "US_EAST_1_X": "1", "ORANGEADE": "1"})
    with pytest.raises(SettingsError) as refusal:
        read_order(path, EVERY_ROLE, {})
    mistyped, unknown = refusal.value.faults
    assert mistyped.endswith("ORANGE_BROKER_SERVRES: no such variable: did you mean ORANGE_BROKER_SERVERS?")
    assert "US_EAST_1_X: no such variable: did you mean US_EAST_1_" in unknown


def test_a_secret_of_a_cluster_may_be_in_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "orange"
    secret.touch(0o600)
    secret.write_text("from the file\n")
    settings = order(ORANGE_API_SECRET="", ORANGE_API_SECRET_FILE=str(secret))
    assert settings.clusters[0].settings.api_secret.reveal() == "from the file"
    assert [(each.variable, each.path) for each in settings.secret_files] == [("ORANGE_API_SECRET", secret)]
    assert order(Role.SOURCE, ORANGE_API_SECRET="", ORANGE_API_SECRET_FILE=str(secret)).secret_files == ()


def test_a_command_of_a_link_refuses_an_orders_settings(tmp_path: Path) -> None:
    path = write_settings(tmp_path / "setenv.sh", ORDER)
    with pytest.raises(SettingsError, match="GLOBAL_CLUSTERS: expected nothing here: it makes this a total order"):
        read_settings(path, Role.REPLICATOR, {})
    write_settings(path, REQUIRED)
    assert read_either(path, EVERY_ROLE, {}) == parse(REQUIRED, EVERY_ROLE)
