import os
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.errors import SettingsError
from appliance.prepare.checks import container_faults, file_faults
from appliance.render.compose import DESTINATION_VM, SOURCE_VM
from appliance.render.place import Place
from appliance.settings.parse import parse
from appliance.settings.role import Role
from tests.support.rendering import PLACE
from tests.support.settings import REQUIRED

OURS = replace(PLACE, user=os.geteuid(), group=os.getegid())


def faults(role: Role, place: Place = OURS, **changes: str) -> list[str]:
    return container_faults(parse(REQUIRED | changes, role), role, place)


@pytest.fixture
def pem(tmp_path: Path) -> dict[str, str]:
    """The tunnel's three files, as the settings name them."""
    names = {"TUNNEL_AUTHORITY_FILE": "ca.pem", "TUNNEL_CERTIFICATE_FILE": "end.pem", "TUNNEL_KEY_FILE": "end.key"}
    for name in names.values():
        (tmp_path / name).touch(mode=0o600)
    return {variable: str(tmp_path / name) for variable, name in names.items()}


def test_a_missing_file_gives_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no such file or directory: cp setenv\.sh\.template .* && chmod 600 "):
        file_faults(tmp_path / "setenv.sh")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_that_others_may_read_or_write_is_refused_with_the_command_that_closes_it(
    tmp_path: Path, mode: int
) -> None:
    path = tmp_path / "setenv.sh"
    path.touch()
    path.chmod(mode)
    assert file_faults(path) == [f"{path}: holds secrets, and others may read it: chmod 600 {path}"]
    path.chmod(0o600)
    assert file_faults(path) == []


@pytest.mark.parametrize("role", [SOURCE_VM, DESTINATION_VM])
def test_good_settings_have_no_fault(role: Role) -> None:
    assert faults(role) == []


def test_without_a_tunnel_there_is_nothing_to_prepare() -> None:
    [fault] = faults(DESTINATION_VM, SOURCE_ROUTE="direct")
    assert fault.startswith("SOURCE_ROUTE=direct: expected tunnel here")


def test_a_resolver_on_the_vms_own_loopback_is_none_of_a_container() -> None:
    for role, variable in ((SOURCE_VM, "TUNNEL_RESOLVER"), (DESTINATION_VM, "DNS_UPSTREAM")):
        [fault] = faults(role, **{variable: "127.0.0.53:53"})
        assert fault.startswith(f"{variable}=127.0.0.53:53: expected a DNS server that a container reaches")


def test_a_destination_vm_without_a_dns_server_needs_to_be_given_one() -> None:
    nowhere = replace(OURS, resolver=None)
    [fault] = faults(DESTINATION_VM, nowhere)
    assert fault.startswith("DNS_UPSTREAM: missing: ")
    assert faults(DESTINATION_VM, nowhere, DNS_UPSTREAM="10.0.0.2:53") == []
    assert faults(SOURCE_VM, nowhere) == []


def test_endpoints_leave_the_addresses_of_the_shim_and_of_dockers_resolver_alone() -> None:
    [fault] = faults(DESTINATION_VM, TUNNEL_ENDPOINT_NETWORK="127.0.0.0/27", DNS_LISTEN="127.1.0.1:53")
    assert fault.startswith("TUNNEL_ENDPOINT_NETWORK=127.0.0.0/27: expected a network without 127.0.0.1 and 127.0.0.11")


@pytest.mark.parametrize("role", [SOURCE_VM, DESTINATION_VM])
def test_the_containers_user_has_to_be_able_to_read_every_pem_file(role: Role, pem: dict[str, str]) -> None:
    assert faults(role, **pem) == []
    stranger = replace(OURS, user=OURS.user + 1, group=OURS.group + 1)
    assert faults(role, stranger, **pem) == [
        f"{variable}={path}: user {stranger.user}, whom the containers run as, may not read it"
        for variable, path in pem.items()
    ]


def test_a_pem_file_that_is_missing_or_leads_out_of_its_folder_is_a_fault(tmp_path: Path, pem: dict[str, str]) -> None:
    (tmp_path / "end.pem").unlink()
    (tmp_path / "end.key").rename(tmp_path.parent / f"{tmp_path.name}.key")
    (tmp_path / "end.key").symlink_to(tmp_path.parent / f"{tmp_path.name}.key")
    missing, outside = faults(SOURCE_VM, **pem)
    assert missing == f"TUNNEL_CERTIFICATE_FILE={tmp_path}/end.pem: expected a file: No such file or directory"
    assert outside.startswith(f"TUNNEL_KEY_FILE={tmp_path}/end.key: leads out of its folder")
