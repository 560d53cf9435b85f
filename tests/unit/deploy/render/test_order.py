"""The one folder of each VM of a total order: three services, and rules for each pair of VMs."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from appliance.settings.env_file import load
from appliance.settings.order import parse_order
from appliance.settings.role import Role
from appliance.settings.variables import table_of
from deploy.prepare.report import firewall
from deploy.prepare.writing import differences
from deploy.render.compose import COMPOSE_FILE, ORDER_VM, rendered
from deploy.render.container import SERVICES, Service
from deploy.render.firewall import FORMATS, ready, rules
from deploy.render.vm import bridge, port_mappings
from tests.support.order import ADDRESSES, ORDER
from tests.support.rendering import VM

EVERY_SERVICE = SERVICES[ORDER_VM]
LONGEST = "abcdefghijklmnopqr"


def files(**changes: str) -> dict[str, str]:
    """The text of each file of the VM, by its path."""
    environment = ORDER | changes
    return {file.path: file.text for file in rendered(environment, parse_order(environment, ORDER_VM), ORDER_VM, VM)}


def services(**changes: str) -> dict[str, Any]:
    """The services of docker-compose.yml as Compose reads them."""
    found = yaml.safe_load(files(**changes)[COMPOSE_FILE])["services"]
    assert isinstance(found, dict)
    return found


def variables(tmp_path: Path, service: Service, **changes: str) -> dict[str, str]:
    """The settings of one service."""
    path = tmp_path / "setenv.sh"
    path.write_text(files(**changes)[service.path])
    return load(path, {})


def test_a_vm_runs_the_tunnels_server_the_gateway_and_the_order() -> None:
    commands = {name: service["command"] for name, service in services().items()}
    assert commands == {
        "tunnel": ["appliance", "source"],
        "gateway": ["appliance", "destination"],
        "order": ["appliance", "order", "run"],
    }


def test_the_order_is_in_the_gateways_network_whose_resolver_is_the_shim() -> None:
    found = services()
    assert found["gateway"]["dns"] == ["127.0.0.1"]
    assert found["order"]["network_mode"] == "service:gateway"
    assert re.search(r"os.kill\(1, 15\); .*8080", found["order"]["healthcheck"]["test"][-1])


@pytest.mark.parametrize("name", ["tunnel", "gateway", "order"])
def test_a_container_can_do_no_more_than_it_has_to_and_is_bounded(name: str) -> None:
    service = services()[name]
    assert (service["read_only"], service["cap_drop"], service["restart"]) == (True, ["ALL"], "unless-stopped")
    assert re.fullmatch(r"\d+m", service["mem_limit"])
    assert service["pids_limit"] > 0
    assert service["tmpfs"] == ["/tmp:size=16m"]
    assert all(volume["read_only"] for volume in service["volumes"])


def test_memory_follows_from_the_number_of_clusters() -> None:
    two = services(GLOBAL_CLUSTERS=f"orange@{ADDRESSES['orange']},grape@{ADDRESSES['grape']}")
    three = services()
    assert two["tunnel"]["mem_limit"] == three["tunnel"]["mem_limit"] == two["gateway"]["mem_limit"] == "512m"
    assert three["gateway"]["mem_limit"] == "676m"
    assert (two["order"]["mem_limit"], three["order"]["mem_limit"]) == ("640m", "832m")


@pytest.mark.parametrize("service", EVERY_SERVICE, ids=lambda service: service.name)
@pytest.mark.parametrize("cluster", ADDRESSES)
def test_a_service_has_all_that_it_needs_and_nothing_that_it_does_not(
    tmp_path: Path, service: Service, cluster: str
) -> None:
    found = variables(tmp_path, service, GLOBAL_CLUSTER=cluster)
    settings = parse_order(found, service.role)
    whole = parse_order(ORDER | {"GLOBAL_CLUSTER": cluster}, ORDER_VM)
    assert set(found) <= {variable.name for variable in table_of(found) if variable.roles & service.role}
    if service.role is not Role.SOURCE:
        for own, of_whole in zip(settings.links, whole.links, strict=True):
            assert (own.source, own.tunnel.allowed) == (of_whole.source, of_whole.tunnel.allowed)
            assert own.tunnel.endpoint_network == of_whole.tunnel.endpoint_network
    if service.role is not Role.DESTINATION:
        assert settings.own.allowed == whole.own.allowed


def test_no_login_is_beside_the_tunnels_server_and_no_shared_secret_beside_the_order(tmp_path: Path) -> None:
    tunnel, gateway, order = EVERY_SERVICE
    assert not [name for name in variables(tmp_path, tunnel) if "API" in name]
    assert not [name for name in variables(tmp_path, gateway) if name.startswith("GRAPE_API")]
    assert not [name for name in variables(tmp_path, order) if "SHARED" in name]
    assert {name for name in variables(tmp_path, order) if "API" in name} == {name for name in ORDER if "API" in name}


def test_a_changed_login_recreates_the_containers_that_read_it() -> None:
    before, after = services(), services(ORANGE_API_KEY="another")
    assert {name for name, service in after.items() if service["labels"] != before[name]["labels"]} == {
        "gateway",
        "order",
    }


def test_a_secret_in_a_file_and_an_authoritys_file_are_mounted_where_they_are_needed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_text("from a file\n")
    changes = {"ORANGE_API_SECRET": "", "ORANGE_API_SECRET_FILE": str(secret)}
    mounted = {
        name: {volume["target"] for volume in service["volumes"] if volume["source"] == str(secret)}
        for name, service in services(**changes).items()
    }
    target = {"/etc/appliance/ORANGE_API_SECRET_FILE"}
    assert mounted == {"tunnel": set(), "gateway": target, "order": target}
    assert "from a file" not in "".join(files(**changes).values())


def test_no_secret_gets_into_what_others_may_read() -> None:
    environment = ORDER
    for file in rendered(environment, parse_order(environment, ORDER_VM), ORDER_VM, VM):
        hidden = [text for name, text in ORDER.items() if name.endswith("_SECRET") and text in file.text]
        assert not hidden or file.mode == 0o600


def test_the_differences_of_a_clusters_secret_are_not_shown() -> None:
    old, new = files()["prepared/order.sh"], files(US_EAST_1_API_SECRET="quite another")["prepared/order.sh"]
    shown = "\n".join(differences("order.sh", old, new))
    assert "US_EAST_1_API_SECRET=****" in shown
    assert "quite another" not in shown
    assert "us secret" not in shown


def test_the_tunnel_alone_is_open_to_others_and_the_pages_do_not_clash() -> None:
    for changes in ({}, {"TUNNEL_STATUS_LISTEN": "127.0.0.1:9001"}):
        mappings = port_mappings(ORDER | changes, parse_order(ORDER | changes, ORDER_VM), ORDER_VM)
        assert [one.at.host for one in mappings if not one.at.host.startswith("127.")] == ["0.0.0.0"]
        assert not any(one.clashes_with(other.at) for one, other in itertools.combinations(mappings, 2))
        found = services(**changes)
        published = [*found["tunnel"]["ports"], *found["gateway"]["ports"]]
        assert published == [f"{one.at}:{one.container_port}" for one in mappings]
    assert "127.0.0.1:9001:8081" in published


def test_each_pair_of_vms_has_a_rule_in_each_direction_and_each_vm_those_to_its_brokers() -> None:
    found = rules(parse_order(ORDER, ORDER_VM))
    inbound = {(rule.machine, rule.peer.network, rule.ports) for rule in found if rule.inbound}
    assert inbound == {
        (server, f"{ADDRESSES[client]}/32", "15060") for server, client in itertools.permutations(ADDRESSES, 2)
    }
    outbound = {(rule.machine, rule.peer.network, rule.ports) for rule in found if not rule.inbound and rule.across}
    assert outbound == inbound
    assert {(rule.machine, rule.ports) for rule in found if not rule.across} == {
        ("orange", "9092-9093"),
        ("grape", "9092"),
        ("us-east.1", "9092"),
    }
    table = firewall(found, "grape", 1000).splitlines()
    assert re.search(r"\*  grape VM +inbound +orange VM 203.0.113.7 +grape VM +TCP +15060", "\n".join(table))
    assert not [line for line in table if line.lstrip().startswith("*  orange")]


def test_of_several_vms_beside_a_cluster_each_pair_has_its_rules() -> None:
    clusters = "orange@203.0.113.7+203.0.113.8,grape@203.0.113.9,us-east.1@203.0.113.11"
    found = rules(parse_order(ORDER | {"GLOBAL_CLUSTERS": clusters}, ORDER_VM))
    assert {rule.peer.network for rule in found if rule.machine == "grape" and rule.inbound} == {
        f"203.0.113.{host}/32" for host in (7, 8, 11)
    }
    assert {rule.peer.network for rule in found if rule.machine == "orange" and rule.inbound} == {
        f"203.0.113.{host}/32" for host in (9, 11)
    }
    names = [rule.name for rule in found]
    assert len(names) == len({*names})


@pytest.mark.parametrize("form", FORMATS)
def test_ready_rules_have_names_that_are_legal_and_of_their_own(form: str) -> None:
    other = LONGEST.upper()[::-1]
    environment = ORDER | {
        "GLOBAL_CLUSTERS": f"{LONGEST}@10.0.0.1,{other}@10.0.0.2,us-east.1@fd00::3",
        "GLOBAL_CLUSTER": "us-east.1",
        "GLOBAL_HOME": LONGEST,
        "TUNNEL_PORT": "65000",
        **{f"{name.upper()}_SECURITY_PROTOCOL": "SSL" for name in (LONGEST, other)},
        f"{LONGEST.upper()}_BROKER_SERVERS": "b0.one.example:9092",
        f"{other}_BROKER_SERVERS": "b0.other.example:9092",
    }
    settings = parse_order(environment, ORDER_VM)
    text = ready(form, settings, "us-east.1")
    names = re.findall(r"kafka-[0-9a-f]{8}-[a-z0-9-]+", text)
    assert all(len(name) <= 63 for name in names)
    assert {rule.name for rule in rules(settings)} >= {name.split("-", 2)[2] for name in names}
    assert len({rule.name for rule in rules(settings)}) == len(rules(settings))
    assert not re.search(r"us-east\.1_|us-east\.1='", text)


def test_the_vm_lets_in_each_other_vm_before_it_drops_all_others() -> None:
    text = ready("nftables", parse_order(ORDER, ORDER_VM), "grape")
    chain = text.partition("chain published {")[2].partition("}")[0]
    accepted, dropped = chain.partition("tcp dport 15060 drop")[::2]
    assert accepted.count("tcp dport 15060 accept") == 2
    assert "15060" not in dropped
    assert bridge("replicator-order", Role.SOURCE) in text


def test_both_vms_and_both_scripts_write_the_same_but_for_the_cluster() -> None:
    orange, grape = files(GLOBAL_CLUSTER="orange"), files()
    assert orange.keys() == grape.keys()
    assert orange[COMPOSE_FILE].partition("labels")[0] == grape[COMPOSE_FILE].partition("labels")[0]
