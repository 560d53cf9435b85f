import os
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.settings.parse import parse
from appliance.settings.role import Role
from deploy.prepare.checks import container_faults, unused_variables
from deploy.render.compose import DESTINATION_VM, DIRECT_VM, SOURCE_VM
from deploy.render.vm import Vm
from tests.support.rendering import VM
from tests.support.settings import DIRECT, REQUIRED, SECRET

OURS = replace(VM, user=os.geteuid(), group=os.getegid())

FOLDERS = [
    (0o700, 0, 0, True),
    (0o700, 1, 0, False),
    (0o740, 1, 0, False),
    (0o710, 1, 0, True),
    (0o710, 1, 1, False),
    (0o704, 1, 1, False),
    (0o701, 1, 1, True),
]
"""A folder's mode, the difference of the containers' user and group from its own, and True if they may enter it."""


def faults(role: Role, vm: Vm = OURS, **changes: str) -> list[str]:
    return container_faults(parse(REQUIRED | changes, role), role, vm)


@pytest.fixture
def pem(tmp_path: Path) -> dict[str, str]:
    """The tunnel's three files, by their variables."""
    names = {"TUNNEL_AUTHORITY_FILE": "ca.pem", "TUNNEL_CERTIFICATE_FILE": "end.pem", "TUNNEL_KEY_FILE": "end.key"}
    for name in names.values():
        (tmp_path / name).touch(mode=0o600)
    return {variable: str(tmp_path / name) for variable, name in names.items()}


@pytest.mark.parametrize("role", [SOURCE_VM, DESTINATION_VM])
def test_good_settings_have_no_fault(role: Role) -> None:
    assert faults(role) == []


def test_without_a_tunnel_nothing_of_it_is_checked_and_what_is_set_of_it_is_named_in_one_line() -> None:
    nowhere, direct = replace(OURS, resolver=None), {"SOURCE_ROUTE": "direct", "TUNNEL_ENDPOINT_NETWORK": "127.0.0.0/8"}
    assert container_faults(parse(DIRECT | direct, DIRECT_VM), DIRECT_VM, nowhere) == []
    [line] = unused_variables(DIRECT | direct | {"TUNNEL_PORT": "15061"}, parse(DIRECT | direct, DIRECT_VM))
    assert line.endswith("there is no tunnel, so these are not used: TUNNEL_PORT, TUNNEL_ENDPOINT_NETWORK")
    assert unused_variables(DIRECT, parse(DIRECT, DIRECT_VM)) == []
    assert unused_variables(REQUIRED, parse(REQUIRED, DESTINATION_VM)) == []


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
    Path(pem["TUNNEL_KEY_FILE"]).parent.chmod(0o755)
    stranger = replace(OURS, user=OURS.user + 1, group=OURS.group + 1)
    assert faults(role, stranger, **pem) == [
        f"{variable}={path}: user {stranger.user}, the containers' user, may not read it"
        for variable, path in pem.items()
    ]


@pytest.mark.parametrize(("mode", "user", "group", "enters"), FOLDERS)
def test_the_containers_user_has_to_be_able_to_enter_the_folder_that_is_mounted(
    tmp_path: Path, pem: dict[str, str], mode: int, user: int, group: int, enters: bool
) -> None:
    for path in pem.values():
        Path(path).chmod(0o644)
    tmp_path.chmod(mode)
    other = replace(OURS, user=OURS.user + user, group=OURS.group + group)
    cause = f"user {other.user}, the containers' user, may not enter its folder, which is mounted"
    expected = [] if enters else [f"{variable}={path}: {cause}" for variable, path in pem.items()]
    assert faults(SOURCE_VM, other, **pem) == expected


def test_a_pem_file_that_is_missing_or_leads_out_of_its_folder_is_a_fault(tmp_path: Path, pem: dict[str, str]) -> None:
    (tmp_path / "end.pem").unlink()
    (tmp_path / "end.key").rename(tmp_path.parent / f"{tmp_path.name}.key")
    (tmp_path / "end.key").symlink_to(tmp_path.parent / f"{tmp_path.name}.key")
    missing, outside = faults(SOURCE_VM, **pem)
    assert missing == f"TUNNEL_CERTIFICATE_FILE={tmp_path}/end.pem: expected a file: No such file or directory"
    assert outside.startswith(f"TUNNEL_KEY_FILE={tmp_path}/end.key: leads out of its folder")


def test_the_containers_user_has_to_be_able_to_read_a_secret_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    path.write_text(SECRET)
    in_a_file = {"SHARED_SECRET": "", "SHARED_SECRET_FILE": str(path)}
    assert faults(SOURCE_VM, **in_a_file) == []
    stranger = replace(OURS, user=OURS.user + 1, group=OURS.group + 1)
    assert faults(SOURCE_VM, stranger, **in_a_file) == [
        f"SHARED_SECRET_FILE={path}: user {stranger.user}, the containers' user, may not read it"
    ]


def test_a_folder_of_the_audit_table_that_containers_may_not_write_is_named_with_its_remedy(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    [fault] = faults(DESTINATION_VM, AUDIT_PATH=str(folder))
    assert fault.startswith(f"AUDIT_PATH={folder}: expected a folder in which user {OURS.user}")
    assert fault.endswith(f"mkdir -p {folder} && chown {OURS.user}:{OURS.group} {folder}")
    folder.mkdir(0o755)
    assert faults(DESTINATION_VM, AUDIT_PATH=str(folder)) == []
    assert len(faults(DESTINATION_VM, replace(OURS, user=OURS.user + 1), AUDIT_PATH=str(folder))) == 1
    assert faults(SOURCE_VM, AUDIT_PATH="/nowhere") == faults(DESTINATION_VM, AUDIT_PATH="s3a://bucket") == []
