import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.settings.env_file import assignment
from appliance.settings.role import Role, Side
from appliance.settings.variables import TABLE
from deploy.render.compose import COMPOSE_FILE, DESTINATION_VM, DIRECT_VM, SOURCE_VM, unit_file
from deploy.render.vm import IMAGE_USER, link_address
from tests.support.authority import Authority, page_files
from tests.support.authority import replace as replace_file
from tests.support.rendering import VM, VMS, compose, files, modes, services
from tests.support.settings import REQUIRED, SECRET

ROOT = Path(__file__).parents[4]
EVERY_SERVICE = [(role, name) for role in VMS for name in services(role)]
PEM = {
    "TUNNEL_AUTHORITY_FILE": "/srv/pem/ca.pem",
    "TUNNEL_CERTIFICATE_FILE": "/srv/pem/end.pem",
    "TUNNEL_KEY_FILE": "/srv/pem/$end.key",
}


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    """Settings of a tunnel inside SSH, with its keys in files."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    named = {"TUNNEL_SSH": "ann@bastion.example:22"}
    for name, content in (("KEY", private), ("HOST_KEYS", public)):
        path = tmp_path / name
        path.touch(0o600)
        path.write_bytes(content)
        named[f"TUNNEL_SSH_{name}_FILE"] = str(path)
    return named


def published(role: Role, **changes: str) -> list[str]:
    return [port for service in services(role, **changes).values() for port in service.get("ports", [])]


def volumes(service: dict[str, Any]) -> dict[str, str]:
    bound = [volume for volume in service["volumes"] if volume["type"] == "bind"]
    assert all(volume["read_only"] for volume in bound)
    return {volume["target"]: volume["source"] for volume in bound}


@pytest.mark.parametrize("role", VMS)
def test_the_first_line_says_who_wrote_the_file_and_where_to_change_it(role: Role) -> None:
    script = {SOURCE_VM: "bin/prepare_src_config.sh", DESTINATION_VM: "bin/prepare_dest_config.sh"}[role]
    assert (ROOT / script).exists()
    first = files(role)[COMPOSE_FILE].splitlines()[0]
    assert first.startswith(f"# Written by {script} for the link orange-grape: edits are lost, edit setenv.sh")


def test_each_vm_runs_its_own_commands() -> None:
    assert {name: service["command"] for name, service in services(SOURCE_VM).items()} == {
        "tunnel": ["appliance", "source"],
        "doctor": ["appliance", "doctor", "source"],
    }
    assert {name: service["command"] for name, service in services(DESTINATION_VM).items()} == {
        "gateway": ["appliance", "destination"],
        "replicator": ["appliance", "replicate"],
        "control-center": ["appliance", "console"],
        "doctor": ["appliance", "doctor", "destination"],
    }


@pytest.mark.parametrize(("role", "name"), EVERY_SERVICE)
def test_a_container_can_do_no_more_than_it_has_to(role: Role, name: str) -> None:
    service = services(role)[name]
    assert service["user"] == "1000:1001"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]  # and nothing against the default seccomp profile
    assert service["ulimits"]["core"] == 0
    assert not {"privileged", "cap_add", "devices", "pid", "ipc", "container_name", "env_file"} & set(service)
    assert all(entry.startswith("/tmp:size=") for entry in service["tmpfs"])


@pytest.mark.parametrize(("role", "name"), EVERY_SERVICE)
def test_a_container_is_watched_restarted_and_bounded(role: Role, name: str) -> None:
    service = services(role)[name]
    assert service["init"] is True
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}
    assert re.fullmatch(r"\d+m", service["mem_limit"])
    assert service["pids_limit"] > 0
    if name == "doctor":
        return
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"][:3] == ["CMD", "python", "-c"]
    compile(service["healthcheck"]["test"][3], name, "exec")


@pytest.mark.parametrize(
    ("cores", "tasks", "limit"), [(2, "0", 488), (2, "2", 488), (64, "0", 3712), (64, "2", 736), (2, "1000", 48392)]
)
def test_the_replicators_processes_follow_from_the_vms_cores_and_the_tasks(cores: int, tasks: str, limit: int) -> None:
    replicator = services(DESTINATION_VM, replace(VM, cores=cores), TASKS=tasks)["replicator"]
    assert replicator["pids_limit"] == limit


@pytest.mark.parametrize(("role", "beside"), [(SOURCE_VM, "tunnel"), (DESTINATION_VM, "gateway")])
def test_the_doctor_runs_when_it_is_asked_for_and_once_where_the_path_is(role: Role, beside: str) -> None:
    doctor = services(role)["doctor"]
    assert (doctor["profiles"], doctor["restart"]) == (["doctor"], "no")
    assert doctor["network_mode"] == f"service:{beside}"


def test_the_replicator_is_in_the_gateways_network_whose_resolver_is_the_shim() -> None:
    both = services(DESTINATION_VM)
    assert both["gateway"]["dns"] == ["127.0.0.1"]
    assert both["replicator"]["network_mode"] == "service:gateway"
    assert "ports" not in both["replicator"]
    assert both["gateway"]["sysctls"] == {"net.ipv4.ip_unprivileged_port_start": 0}


def test_containers_of_a_destination_vm_have_its_name_by_which_status_shows_it() -> None:
    vm = replace(VM, name="grape-vm-2")
    assert services(DESTINATION_VM, vm)["gateway"]["hostname"] == "grape-vm-2"
    assert services(DIRECT_VM, vm, SOURCE_ROUTE="direct")["replicator"]["hostname"] == "grape-vm-2"
    assert "hostname" not in services(DESTINATION_VM)["gateway"]


def test_no_addresses_of_dockers_are_fixed_and_each_end_of_each_link_has_a_bridge_of_its_own() -> None:
    ends = [(role, source) for role in VMS for source in ("orange", "lemon")]
    networks = [compose(role, SOURCE_CLUSTER_ID=source)["networks"] for role, source in ends]
    names = {network["default"]["name"] for network in networks}
    assert len(names) == len(ends)
    for name, network in zip((network["default"]["name"] for network in networks), networks, strict=True):
        assert network == {"default": {"name": name, "driver_opts": {"com.docker.network.bridge.name": name}}}
        assert len(name) <= 15
    assert not [service for role in VMS for service in services(role).values() if "networks" in service]


def test_the_control_centers_of_all_links_share_one_volume_and_it_is_in_memory() -> None:
    shared = [compose(DESTINATION_VM, SOURCE_CLUSTER_ID=source)["volumes"]["links"] for source in ("orange", "lemon")]
    assert shared[0] == shared[1]
    assert shared[0]["name"] == "kafka-cloud-replicator-links"
    assert shared[0]["driver_opts"]["type"] == "tmpfs"
    assert {"type": "volume", "source": "links", "target": "/run/links"} in _volumes_of_the_page()


def test_the_charts_of_each_link_have_a_volume_of_their_own() -> None:
    assert compose(DESTINATION_VM)["volumes"]["history"] is None, "Compose names it by the project"
    assert {"type": "volume", "source": "history", "target": "/var/tmp"} in _volumes_of_the_page()


def _volumes_of_the_page() -> list[dict[str, str]]:
    return [one for one in services(DESTINATION_VM)["control-center"]["volumes"] if one["type"] == "volume"]


def test_the_replicator_alone_may_write_the_audit_table_where_that_is_a_folder() -> None:
    writable = [
        (name, volume["source"], volume["target"])
        for name, service in services(DESTINATION_VM, AUDIT_PATH="/srv/the audit").items()
        for volume in service["volumes"]
        if volume["type"] == "bind" and not volume.get("read_only")
    ]
    assert writable == [("replicator", "/srv/the audit", "/srv/the audit")]
    assert (
        compose(DESTINATION_VM, AUDIT_PATH="s3a://audit")["services"]["replicator"]["volumes"]
        == (services(DESTINATION_VM)["replicator"]["volumes"])
    )


def test_only_the_control_center_has_its_token(secret_file: Path) -> None:
    token = {"CONSOLE_TOKEN": SECRET[::-1]}
    holding = {path for path, text in files(DESTINATION_VM, **token).items() if SECRET[::-1] in text}
    assert holding == {"prepared/control-center.sh"}
    in_a_file = files(DESTINATION_VM, CONSOLE_TOKEN_FILE=str(secret_file))
    named = {path for path, text in in_a_file.items() if "CONSOLE_TOKEN" in text} - {COMPOSE_FILE}
    assert named == {"prepared/control-center.sh"}
    found = volumes(services(DESTINATION_VM, CONSOLE_TOKEN_FILE=str(secret_file))["control-center"])
    assert found["/etc/appliance/CONSOLE_TOKEN_FILE"] == str(secret_file)


@pytest.mark.parametrize(
    ("changes", "url"),
    [
        ({}, f"http://{link_address('orange-grape', Role.DESTINATION)}:8082/"),
        ({"CONTROL_CENTER_LISTEN": "10.0.0.5:80"}, "http://10.0.0.5:80/"),
        ({"CONTROL_CENTER_URL": "https://kafka.example.com"}, "https://kafka.example.com"),
    ],
)
def test_case_980_a_control_center_in_a_container_tells_the_others_where_browsers_reach_it(
    changes: dict[str, str], url: str
) -> None:
    assert assignment("CONTROL_CENTER_URL", url) in files(DESTINATION_VM, **changes)["prepared/control-center.sh"]


def test_a_service_of_one_link_has_the_image_of_no_other_link() -> None:
    images = {service["image"] for role in VMS for service in services(role).values()}
    assert images == {"kafka-cloud-replicator:orange-grape"}
    [other] = {service["image"] for service in services(SOURCE_VM, SOURCE_CLUSTER_ID="-Lemon").values()}
    assert other == "kafka-cloud-replicator:Lemon-grape"


@pytest.mark.parametrize("role", VMS)
def test_pages_are_on_loopback_and_only_the_tunnel_is_open_to_others(role: Role) -> None:
    opened = {port for port in published(role) if not port.startswith("127.")}
    assert opened == ({"0.0.0.0:15060:15060"} if role is SOURCE_VM else set())


def test_pages_are_where_the_settings_have_them() -> None:
    chosen = {"CONSOLE_LISTEN": "10.0.0.5:9000", "TUNNEL_STATUS_LISTEN": "[::1]:9001"}
    assert published(DESTINATION_VM, **chosen)[:2] == ["10.0.0.5:9000:8080", "[::1]:9001:8081"]
    assert published(DESTINATION_VM, CONTROL_CENTER_LISTEN="10.0.0.5:80")[2] == "10.0.0.5:80:8082"


@pytest.mark.parametrize("role", VMS)
@settings(max_examples=20)
@given(links=st.lists(st.from_regex(r"[a-z][a-z0-9.]{0,8}", fullmatch=True), min_size=2, max_size=2, unique=True))
def test_two_links_publish_nothing_at_the_same_place(role: Role, links: list[str]) -> None:
    here, there = (
        published(role, SOURCE_CLUSTER_ID=f"x{link}", TUNNEL_PORT=str(15060 + number))
        for number, link in enumerate(links)
    )
    assert not set(here) & set(there)


def test_both_directions_of_a_pair_of_vms_publish_nothing_at_the_same_place() -> None:
    there = set(published(SOURCE_VM))
    back = set(published(DESTINATION_VM, SOURCE_CLUSTER_ID="grape", DESTINATION_CLUSTER_ID="orange"))
    assert not there & back


@pytest.mark.parametrize("role", VMS)
def test_only_files_that_hold_settings_hold_secrets_and_nobody_else_may_read_them(role: Role) -> None:
    secrets = [REQUIRED[variable.name] for variable in TABLE if variable.confidential and variable.required]
    for path, text in files(role).items():
        holds_one = any(secret in text for secret in secrets)
        assert holds_one == (modes(role)[path] == 0o600), path


@pytest.mark.parametrize("ignored", [".gitignore", ".dockerignore"])
def test_files_with_secrets_get_neither_into_git_nor_into_an_image(ignored: str) -> None:
    patterns = {line.strip("/") for line in (ROOT / ignored).read_text().splitlines()}
    closed = {path for role in VMS for path, mode in modes(role).items() if mode == 0o600}
    assert {"setenv.sh", *(str(Path(path).parent) for path in closed)} <= patterns


@pytest.mark.parametrize("role", VMS)
@settings(max_examples=30)
@given(secret=st.text("$%§#\\`~!", min_size=5), salt=st.text("0123456789abcdef", min_size=32, max_size=32))
def test_no_secret_gets_into_what_others_may_read(role: Role, secret: str, salt: str) -> None:
    changes = {"SOURCE_API_SECRET": secret, "DESTINATION_API_SECRET": secret, "SHARED_SECRET": SECRET + secret}
    for path, text in files(role, replace(VM, salt=salt), **changes).items():
        assert modes(role)[path] == 0o600 or not any(hidden in text for hidden in (secret, SECRET, salt))


@pytest.mark.parametrize(
    ("changes", "recreated"),
    [
        ({"REPLICA_TOPICS_SOURCE_REGEX": "other"}, {"replicator", "control-center"}),
        ({"DESTINATION_API_SECRET": "other"}, {"replicator", "control-center"}),
        ({"SHARED_SECRET": SECRET[::-1]}, {"gateway"}),
        ({"CONSOLE_TOKEN": SECRET[::-1]}, {"control-center"}),
        ({"MAX_BYTES_PER_SECOND": "1000"}, set()),
        ({"LOG_LEVEL": "debug"}, {"gateway", "replicator", "control-center"}),
        ({}, set()),
    ],
)
def test_a_changed_setting_recreates_the_containers_that_read_it(changes: dict[str, str], recreated: set[str]) -> None:
    before, after = services(DESTINATION_VM), services(DESTINATION_VM, **changes)
    assert {name for name in before if before[name].get("labels") != after[name].get("labels")} == recreated


def test_the_published_digest_of_the_settings_is_salted() -> None:
    [label] = services(SOURCE_VM)["tunnel"]["labels"].values()
    [other] = services(SOURCE_VM, replace(VM, salt="5a18"))["tunnel"]["labels"].values()
    assert label != other


def test_an_authoritys_file_is_mounted_where_the_replicator_looks_for_it() -> None:
    changes = {"DESTINATION_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "DESTINATION_CA_FILE": "/srv/a $b: {c}.pem"}
    text, document = files(DESTINATION_VM, **changes), services(DESTINATION_VM, **changes)
    assert volumes(document["replicator"])["/etc/appliance/DESTINATION_CA_FILE.pem"] == "/srv/a $$b: {c}.pem"
    assert "export DESTINATION_CA_FILE='/etc/appliance/DESTINATION_CA_FILE.pem'\n" in text["prepared/replicator.sh"]
    assert "CA_FILE" not in text["prepared/gateway.sh"] + str(volumes(document["gateway"]))


@pytest.mark.parametrize(("role", "name"), [(SOURCE_VM, "tunnel"), (DESTINATION_VM, "gateway")])
def test_the_tunnels_files_are_mounted_by_folder_so_that_a_new_one_is_seen(role: Role, name: str) -> None:
    assert volumes(services(role, **PEM)[name])["/etc/appliance/TUNNEL_KEY_FILE"] == "/srv/pem"
    text = files(role, **PEM)[f"prepared/{name}.sh"]
    assert "export TUNNEL_KEY_FILE='/etc/appliance/TUNNEL_KEY_FILE/$end.key'\n" in text


def test_our_certificate_is_mounted_by_folder_where_it_logs_in(tmp_path: Path) -> None:
    leaf = Authority().leaf(Side.DESTINATION)
    pem, key = tmp_path / "pem" / "own.pem", tmp_path / "keys" / "own.key"
    replace_file(pem, leaf.certificate)
    replace_file(key, leaf.key)
    own = {"SOURCE_SSL_CERTIFICATE_FILE": str(pem), "SOURCE_SSL_KEY_FILE": str(key)}
    changes = own | {"SOURCE_OAUTH_CA_FILE": "/srv/idp.pem"}
    document, text = services(DESTINATION_VM, **changes), files(DESTINATION_VM, **changes)
    for name in ("gateway", "replicator", "doctor"):
        found = volumes(document[name])
        assert found["/etc/appliance/SOURCE_SSL_CERTIFICATE_FILE"] == str(pem.parent)
        assert found["/etc/appliance/SOURCE_SSL_KEY_FILE"] == str(key.parent)
        assert found["/etc/appliance/SOURCE_OAUTH_CA_FILE.pem"] == "/srv/idp.pem"
        assert (
            "export SOURCE_SSL_KEY_FILE='/etc/appliance/SOURCE_SSL_KEY_FILE/own.key'\n" in text[f"prepared/{name}.sh"]
        )
    assert "SSL" not in str(services(SOURCE_VM, **changes)["tunnel"])


def test_ssh_keys_are_mounted_by_folder_at_the_end_that_logs_in(keys: dict[str, str]) -> None:
    # Case 9: before, they were not mounted, and their paths were the VM's.
    found = volumes(services(DESTINATION_VM, **keys)["gateway"])
    text = files(DESTINATION_VM, **keys)["prepared/gateway.sh"]
    for name, path in keys.items():
        if name.endswith("_FILE"):
            assert found[f"/etc/appliance/{name}"] == str(Path(path).parent)
            assert f"export {name}='/etc/appliance/{name}/{Path(path).name}'\n" in text
    for role, service in ((SOURCE_VM, "tunnel"), (DESTINATION_VM, "replicator")):
        assert "SSH" not in str(volumes(services(role, **keys)[service]))


def test_a_tunnel_that_the_vms_own_sshd_carries_is_published_on_loopback_alone(keys: dict[str, str]) -> None:
    own = {**keys, "TUNNEL_SSH": "ann@203.0.113.7:22"}
    assert "127.0.0.1:15060:15060" in published(SOURCE_VM, **own)
    assert "0.0.0.0:15060:15060" in published(SOURCE_VM, **keys)
    assert "SSH" not in files(SOURCE_VM, **own)["prepared/tunnel.sh"]


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    path.write_text(f"{SECRET}\n")
    return path


def test_a_secret_in_a_file_is_mounted_where_it_is_needed_and_written_nowhere(secret_file: Path) -> None:
    in_a_file = {"SHARED_SECRET": "", "SHARED_SECRET_FILE": str(secret_file)}
    for role, name in ((SOURCE_VM, "tunnel"), (DESTINATION_VM, "gateway"), (DESTINATION_VM, "doctor")):
        text = files(role, **in_a_file)
        assert "export SHARED_SECRET_FILE='/etc/appliance/SHARED_SECRET_FILE'\n" in text[f"prepared/{name}.sh"]
        assert not [path for path in text if SECRET in text[path]]
        found = volumes(services(role, **in_a_file)[name])
        assert found["/etc/appliance/SHARED_SECRET_FILE"] == str(secret_file)
    replicator = services(DESTINATION_VM, **in_a_file)["replicator"]
    assert "SHARED_SECRET" not in files(DESTINATION_VM, **in_a_file)["prepared/replicator.sh"] + str(replicator)


def test_another_secret_in_its_file_recreates_the_containers_that_read_it(secret_file: Path) -> None:
    in_a_file = {"SHARED_SECRET": "", "SHARED_SECRET_FILE": str(secret_file)}
    before = services(DESTINATION_VM, **in_a_file)
    secret_file.write_text(SECRET[::-1])
    after = services(DESTINATION_VM, **in_a_file)
    recreated = {name for name in before if before[name].get("labels") != after[name].get("labels")}
    assert recreated == {"gateway"}


def test_sql_and_its_salt_are_mounted_for_the_replicator_which_is_recreated_with_other_sql(secret_file: Path) -> None:
    sql = secret_file.with_name("mask.sql")
    sql.write_text("SELECT key FROM records")
    own = {"REPLICA_TRANSFORM_SQL_FILE": str(sql), "REPLICA_TRANSFORM_SALT_FILE": str(secret_file)}
    before, text = services(DESTINATION_VM, **own), files(DESTINATION_VM, **own)
    found = volumes(before["replicator"])
    assert found["/etc/appliance/transform.sql"] == str(sql)
    assert found["/etc/appliance/REPLICA_TRANSFORM_SALT_FILE"] == str(secret_file)
    assert "REPLICA_TRANSFORM_SQL_FILE='/etc/appliance/transform.sql'" in text["prepared/replicator.sh"]
    assert "transform.sql" not in str(volumes(before["gateway"])) + text["prepared/gateway.sh"]
    sql.write_text("SELECT value FROM records")
    after = services(DESTINATION_VM, **own)
    assert before["replicator"]["labels"] != after["replicator"]["labels"]
    assert before["gateway"]["labels"] == after["gateway"]["labels"]


def test_the_user_of_a_container_has_a_name_in_it() -> None:
    assert files(SOURCE_VM)["prepared/passwd"] == "appliance:x:1000:1001::/tmp:/usr/sbin/nologin\n"
    assert volumes(services(SOURCE_VM)["tunnel"])["/etc/passwd"] == "./prepared/passwd"


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({}, "1536m"),
        ({"SPARK_DRIVER_MEMORY": "2g"}, "3072m"),
        ({"TASKS": "8"}, "2688m"),
        ({"AUDIT_PATH": "/srv/audit"}, "1664m"),
    ],
)
def test_the_replicators_memory_is_its_heap_and_what_each_task_takes(changes: dict[str, str], limit: str) -> None:
    assert services(DESTINATION_VM, **changes)["replicator"]["mem_limit"] == limit


@pytest.mark.parametrize(("connections", "limit"), [("1", "512m"), ("4096", "512m"), ("20000", "1148m")])
def test_the_tunnels_memory_follows_from_how_many_connections_there_may_be(connections: str, limit: str) -> None:
    assert services(SOURCE_VM, TUNNEL_CONNECTIONS_MAX=connections)["tunnel"]["mem_limit"] == limit
    assert services(DESTINATION_VM, TUNNEL_CONNECTIONS_MAX=connections)["gateway"]["mem_limit"] == limit


def test_after_a_reboot_systemd_starts_what_docker_gave_up() -> None:
    unit = files(DESTINATION_VM, replace(VM, folder=Path("/srv/100%")))[unit_file("orange-grape")]
    assert "\nWorkingDirectory=/srv/100%%\n" in unit
    assert "\nUser=1000\n" in unit  # the preparing user, who may change what it runs
    of_root = files(DESTINATION_VM, replace(VM, user=IMAGE_USER, is_roots=True))[unit_file("orange-grape")]
    assert "\nUser=root\n" in of_root
    assert unit_file("orange-grape") not in files(SOURCE_VM)


def test_case_1416_the_unit_of_a_user_who_has_the_number_of_the_images_runs_as_that_user() -> None:
    # It ran as root, in a folder that this user may change.
    unit = files(DESTINATION_VM, replace(VM, user=IMAGE_USER))[unit_file("orange-grape")]
    assert f"\nUser={IMAGE_USER}\n" in unit


def test_case_991_the_control_center_alone_has_its_pages_certificate_and_is_asked_by_tls(tmp_path: Path) -> None:
    found = services(DESTINATION_VM, **page_files(tmp_path))
    target = "/etc/appliance/CONSOLE_TLS_CERTIFICATE_FILE"
    assert {name for name, service in found.items() if target in volumes(service)} == {"control-center"}
    assert volumes(found["control-center"])[target] == str(tmp_path)
    asked = {name: service["healthcheck"]["test"][-1] for name, service in found.items() if "healthcheck" in service}
    assert {name for name, check in asked.items() if "HTTPSConnection" in check} == {"control-center"}
