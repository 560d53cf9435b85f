import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.settings.env_file import load
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.values import Settings
from appliance.settings.variables import TABLE
from deploy.render.compose import DESTINATION_VM, SOURCE_VM
from deploy.render.container import SERVICES, Service
from tests.support.rendering import VMS, files
from tests.support.settings import REQUIRED

EVERY_SERVICE = [(role, service) for role in VMS for service in SERVICES[role]]


def variables(tmp_path: Path, role: Role, service: Service, **changes: str) -> dict[str, str]:
    path = tmp_path / "setenv.sh"
    path.write_text(files(role, **changes)[service.path])
    return load(path, {})


def settings(tmp_path: Path, role: Role, service: Service, **changes: str) -> Settings:
    return parse(variables(tmp_path, role, service, **changes), service.role)


@pytest.mark.parametrize(("role", "service"), EVERY_SERVICE)
def test_a_service_has_all_that_it_needs_and_nothing_that_it_does_not(
    tmp_path: Path, role: Role, service: Service
) -> None:
    found = variables(tmp_path, role, service)
    parse(found, service.role)
    assert set(found) <= {variable.name for variable in TABLE if variable.roles & service.role}


def test_no_login_to_the_destination_is_beside_the_tunnel_and_no_shared_secret_beside_the_replicator(
    tmp_path: Path,
) -> None:
    tunnel, _ = SERVICES[SOURCE_VM]
    gateway, replicator, control_center, _ = SERVICES[DESTINATION_VM]
    assert not [name for name in variables(tmp_path, SOURCE_VM, tunnel) if "API" in name]
    assert not [name for name in variables(tmp_path, DESTINATION_VM, gateway) if "DESTINATION_API" in name]
    previous = {"SHARED_SECRET_PREVIOUS": REQUIRED["SHARED_SECRET"][::-1]}
    for service in (replicator, control_center):
        assert not [name for name in variables(tmp_path, DESTINATION_VM, service, **previous) if "SHARED" in name]


def test_case_1011_the_control_center_has_no_key_of_the_tunnel_and_asks_its_end_in_the_same_network(
    tmp_path: Path,
) -> None:
    """Before, it had the shared secret and the tunnel's keys, for the doctor alone."""
    gateway, _, control_center, _ = SERVICES[DESTINATION_VM]
    found = settings(tmp_path, DESTINATION_VM, control_center, TUNNEL_STATUS_LISTEN="10.0.0.5:9001")
    assert not found.tunnel.secret
    there = settings(tmp_path, DESTINATION_VM, gateway, TUNNEL_STATUS_LISTEN="10.0.0.5:9001").tunnel.status
    assert (found.tunnel.status.port, there.port) == (8081, 8081)


def test_the_charts_are_kept_in_the_volume_or_not_at_all(tmp_path: Path) -> None:
    page = next(one for one in SERVICES[DESTINATION_VM] if one.command == "console")
    kept = [
        settings(tmp_path, DESTINATION_VM, page, CONTROL_CENTER_HISTORY=given_folder).control_center.history
        for given_folder in ("", "/srv/charts", "none")
    ]
    assert kept == [Path("/var/tmp"), Path("/var/tmp"), None]


@given(secret=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_a_secret_arrives_unchanged_at_every_service(tmp_path_factory: pytest.TempPathFactory, secret: str) -> None:
    changes = {"SOURCE_API_SECRET": f"x{secret}x", "SHARED_SECRET": f"{REQUIRED['SHARED_SECRET']}{secret}x"}
    path = tmp_path_factory.getbasetemp() / "setenv.sh"
    for role in VMS:
        rendered = files(role, **changes)
        for service in SERVICES[role]:
            path.write_text(rendered[service.path])
            found = load(path, {})
            assert changes.items() & found.items() == {item for item in changes.items() if item[0] in found} != set()


def test_the_source_listens_where_docker_publishes(tmp_path: Path) -> None:
    tunnel, _ = SERVICES[SOURCE_VM]
    found = settings(tmp_path, SOURCE_VM, tunnel, TUNNEL_LISTEN="10.0.0.5", TUNNEL_PORT="443")
    assert str(found.tunnel.listen) == "0.0.0.0:443"
    assert str(found.tunnel.status) == "0.0.0.0:8081"


def test_the_shim_and_the_replicator_agree_on_where_it_listens(tmp_path: Path) -> None:
    gateway, replicator, *_ = SERVICES[DESTINATION_VM]
    found = [settings(tmp_path, DESTINATION_VM, one, DNS_LISTEN="127.0.0.9:5353") for one in (gateway, replicator)]
    assert [str(one.dns.listen) for one in found] == ["127.0.0.1:53"] * 2
    assert str(found[1].console.listen) == "0.0.0.0:8080"


@pytest.mark.parametrize(("given_upstream", "used"), [("", "10.0.0.2:53"), ("10.9.9.9:5353", "10.9.9.9:5353")])
def test_the_shim_asks_the_vms_own_dns_server_for_other_names(tmp_path: Path, given_upstream: str, used: str) -> None:
    gateway, *_ = SERVICES[DESTINATION_VM]
    assert str(settings(tmp_path, DESTINATION_VM, gateway, DNS_UPSTREAM=given_upstream).dns.upstream) == used


def test_no_endpoint_gets_the_address_of_the_shim(tmp_path: Path) -> None:
    gateway, *_ = SERVICES[DESTINATION_VM]
    found = settings(tmp_path, DESTINATION_VM, gateway)
    assert ipaddress.ip_address(found.dns.listen.host) not in found.tunnel.endpoint_network


def test_every_service_that_dials_source_brokers_has_the_gateways_allow_list_and_network(tmp_path: Path) -> None:
    changes = {"SOURCE_BROKER_PATTERN": "*.orange.example:9092", "TUNNEL_ENDPOINT_NETWORK": "127.80.0.0/16"}
    found = [settings(tmp_path, DESTINATION_VM, service, **changes).tunnel for service in SERVICES[DESTINATION_VM]]
    assert {(str(*one.allowed.patterns), str(one.endpoint_network)) for one in found} == {tuple(changes.values())}
