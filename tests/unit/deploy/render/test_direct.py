"""The one VM of a link without a tunnel: three services without a gateway, and rules to both clusters' brokers."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from appliance.settings.env_file import load
from appliance.settings.parse import parse
from appliance.settings.values import Route
from deploy.prepare.preparation import services_in
from deploy.prepare.report import firewall, heading
from deploy.render.compose import COMPOSE_FILE, DIRECT_VM, rendered, unit_file
from deploy.render.container import SERVICES
from deploy.render.firewall import FORMATS, ready, rules
from deploy.render.vm import link_address, port_mappings
from tests.support.authority import page_files
from tests.support.rendering import VM
from tests.support.settings import DIRECT

SETTINGS = parse(DIRECT, DIRECT_VM)
ADDRESS = str(link_address(SETTINGS.tunnel.link, DIRECT_VM))
LONGEST = "abcdefghijklmnopqr" * 2


def files(**changes: str) -> dict[str, str]:
    """The text of each file of the VM, by its path."""
    environment = DIRECT | changes
    return {file.path: file.text for file in rendered(environment, parse(environment, DIRECT_VM), DIRECT_VM, VM)}


def services(**changes: str) -> dict[str, Any]:
    """The services of docker-compose.yml as Compose reads them."""
    found = yaml.safe_load(files(**changes)[COMPOSE_FILE])["services"]
    assert isinstance(found, dict)
    return found


def test_no_file_of_a_link_without_a_tunnel_speaks_of_one() -> None:
    text = "".join(files().values())
    assert not re.search("tunnel|gateway|shim|DNS_|SHARED_SECRET|prepare_src", text, re.IGNORECASE)
    assert set(files()) == {
        *(service.path for service in SERVICES[DIRECT_VM]),
        *("prepared/passwd", COMPOSE_FILE, unit_file("orange-grape")),
    }


def test_the_destination_vm_runs_the_replicator_the_control_center_and_the_doctor() -> None:
    assert {name: service["command"] for name, service in services().items()} == {
        "replicator": ["appliance", "replicate"],
        "control-center": ["appliance", "console"],
        "doctor": ["appliance", "doctor", "destination"],
    }
    assert services_in(files()[COMPOSE_FILE]) == set(services())


def test_each_container_has_a_network_of_its_own_so_that_none_falls_with_another() -> None:
    for service in services().values():
        assert not {"network_mode", "depends_on", "dns", "sysctls"} & set(service)


def test_each_page_is_published_by_its_own_container_and_the_control_center_finds_the_replicators() -> None:
    found = services(CONTROL_CENTER_LISTEN="10.0.0.5:80")
    assert found["replicator"]["ports"] == [f"{ADDRESS}:8080:8080"]
    assert found["control-center"]["ports"] == ["10.0.0.5:80:8082"]
    assert found["control-center"]["environment"] == {
        **found["replicator"]["environment"],
        "APPLIANCE_REPLICATOR": "replicator",
    }
    variables = {mapping.variable for mapping in port_mappings(DIRECT, SETTINGS, DIRECT_VM)}
    assert variables == {"CONSOLE_LISTEN", "CONTROL_CENTER_LISTEN"}


def test_a_container_is_asked_for_its_own_page_and_not_for_a_network_that_it_would_share(tmp_path: Path) -> None:
    asked = {name: one["healthcheck"]["test"][3] for name, one in services().items() if "healthcheck" in one}
    assert set(asked) == {"replicator", "control-center"}
    assert not [check for check in asked.values() if "eth0" in check]
    by_tls = services(**page_files(tmp_path))["control-center"]["healthcheck"]["test"][3]
    assert "HTTPSConnection" in by_tls


def test_each_services_settings_are_read_again_by_its_role_and_leave_the_vms_resolver_alone(tmp_path: Path) -> None:
    for service in SERVICES[DIRECT_VM]:
        path = tmp_path / "setenv.sh"
        path.write_text(files()[service.path])
        own = load(path, {})
        assert parse(own, service.role).route is Route.DIRECT
        assert "DNS_LISTEN" not in own


def test_the_destination_vm_dials_the_brokers_of_both_clusters_and_nothing_comes_in() -> None:
    by_pattern = parse(DIRECT | {"SOURCE_BROKER_PATTERN": "*.orange.example:9094"}, DIRECT_VM)
    found = [(str(rule.machine), rule.inbound, rule.peer.name, rule.ports, rule.across) for rule in rules(by_pattern)]
    assert found == [
        ("destination", False, "source brokers", "9092-9094", True),
        ("destination", False, "destination brokers", "9092", False),
    ]
    names = [rule.name for rule in rules(SETTINGS)]
    assert len(set(names)) == len(names)
    assert "tunnel" not in firewall(rules(SETTINGS), "destination", 1000)
    assert heading(SETTINGS, SETTINGS.destination.side).endswith("destination VM, without a tunnel")


@pytest.mark.parametrize("form", FORMATS)
def test_the_rules_in_each_format_name_both_clusters_brokers_and_no_other_vm(form: str) -> None:
    text = ready(form, SETTINGS, "destination")
    assert "CIDR_OF_SOURCE_BROKERS" in text
    assert "CIDR_OF_DESTINATION_BROKERS" in text
    assert not re.search("tunnel|source VM|SOURCE_VM", text, re.IGNORECASE)
    longest = parse(
        DIRECT | {"SOURCE_CLUSTER_ID": LONGEST, "SOURCE_BROKER_SERVERS": "b0.orange.example:65535"}, DIRECT_VM
    )
    names = re.findall(r"kafka-[a-z0-9-]+", ready(form, longest, "destination"))
    assert max(map(len, names)) <= 63
