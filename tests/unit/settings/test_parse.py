import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from appliance.errors import SettingsError
from appliance.settings.login import Login
from appliance.settings.parse import parse
from appliance.settings.role import EVERY_ROLE, TUNNEL_ENDS, Role
from appliance.settings.secret import Secret
from appliance.settings.target import Target, TargetPattern
from appliance.settings.values import KeyFiles, Route, SecurityProtocol, SshSettings, Start
from appliance.settings.variables import GONE, TABLE
from tests.support.settings import REQUIRED, SECRET


def faults(changes: Mapping[str, str], role: Role = EVERY_ROLE) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as refusal:
        parse({**REQUIRED, **changes}, role)
    return refusal.value.faults


def test_the_required_variables_suffice() -> None:
    settings = parse(REQUIRED, EVERY_ROLE)

    assert settings.replicator == "replicator-orange"
    assert settings.source.bootstrap == (Target("b0.orange.example", 9092), Target("b1.orange.example", 9093))
    assert settings.destination.protocol is SecurityProtocol.SASL_SSL
    assert settings.destination.api_secret.reveal() == "grape $HOME `secret` #1"
    assert settings.route is Route.TUNNEL
    assert settings.topics.start is Start.EARLIEST
    assert settings.engine.commit_interval == 0.025
    assert settings.engine.lanes == 0


def test_the_tunnels_values_are_put_together() -> None:
    tunnel = parse({**REQUIRED, "SOURCE_BROKER_PATTERN": "*.orange.example:9092"}, TUNNEL_ENDS).tunnel

    assert tunnel.link == "orange-grape"
    assert tunnel.server == Target("203.0.113.7", 15060)
    assert tunnel.listen == Target("0.0.0.0", 15060)
    assert tunnel.peer_address == "198.51.100.9"
    assert tunnel.secret.reveal() == SECRET
    assert tunnel.allowed.exact == (Target("b0.orange.example", 9092), Target("b1.orange.example", 9093))
    assert tunnel.allowed.patterns == (TargetPattern("orange.example", 9092),)


@pytest.mark.parametrize("role", [Role.SOURCE, Role.DESTINATION, Role.REPLICATOR])
def test_a_role_is_content_with_what_the_table_says_it_needs(role: Role) -> None:
    needed = {variable.name for variable in TABLE if variable.required and variable.roles & role}
    parse({name: text for name, text in REQUIRED.items() if name in needed}, role)

    for name in needed:
        [fault] = faults({name: ""}, role)
        assert fault.startswith(f"{name}: missing: ")


def test_what_a_role_does_not_need_is_empty_when_absent() -> None:
    settings = parse({name: text for name, text in REQUIRED.items() if "API" not in name}, Role.SOURCE)
    assert (settings.source.api_key, settings.source.api_secret) == ("", Secret(""))
    assert not settings.destination.api_secret


def test_what_a_role_does_not_need_is_still_checked_when_given() -> None:
    assert faults({"LANES": "many"}, Role.SOURCE) == ("LANES=many: expected a whole number from 0 to 1000",)


def test_without_sasl_no_api_key_is_needed() -> None:
    without = {name: text for name, text in REQUIRED.items() if not name.startswith("SOURCE_API")}
    settings = parse({**without, "SOURCE_SECURITY_PROTOCOL": "SSL"}, EVERY_ROLE)
    assert settings.source.api_key == ""


def test_a_sasl_user_without_a_secret_is_a_fault() -> None:
    assert faults({"SOURCE_API_SECRET": ""}) == ("SOURCE_API_SECRET: missing: The password that belongs to it.",)


def test_an_empty_optional_variable_means_its_default() -> None:
    assert parse({**REQUIRED, "LANES": "", "TUNNEL_PORT": " "}, EVERY_ROLE) == parse(REQUIRED, EVERY_ROLE)


def test_every_fault_is_reported_at_once() -> None:
    spoiled = {
        "SOURCE_BROKER_SERVERS": "b0.orange.example",
        "DESTINATION_API_KEY": "",
        "REPLICA_TOPICS_SOURCE_REGEX": "orders[",
        "REPLICA_TOPICS_DEST_SUFFIX": "co py",
        "TUNNEL_PORT": "0",
        "SHARED_SECRET": "hunter2",
        "DESTINATION_CLUSTER_ID": "orange",
        "LOG_LEVEL": "loud",
    }
    assert {re.split("[=:]", fault)[0] for fault in faults(spoiled)} == set(spoiled)


def test_a_fault_says_the_variable_its_value_and_what_is_expected() -> None:
    assert faults({"SOURCE_SASL_MECHANISM": "GSSAPI"}) == (
        "SOURCE_SASL_MECHANISM=GSSAPI: expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
    )


def test_a_fault_of_a_secret_never_shows_it() -> None:
    [fault] = faults({"SHARED_SECRET": "hunter2hunter2"})
    assert fault.startswith("SHARED_SECRET: expected at least 32 characters, got 14")
    assert "hunter" not in fault


def test_a_fault_is_one_line_whatever_the_value_holds() -> None:
    [fault] = faults({"LOG_FORMAT": "text\nLANES=3\x1b[2J"})
    assert fault.isprintable()


def test_a_secret_is_taken_as_it_stands_and_other_values_are_trimmed() -> None:
    settings = parse({**REQUIRED, "SOURCE_API_SECRET": " s ", "SOURCE_API_KEY": " k "}, EVERY_ROLE)
    assert (settings.source.api_secret.reveal(), settings.source.api_key) == (" s ", "k")


def test_a_ca_file_matters_only_to_the_role_that_reads_it(tmp_path: Path) -> None:
    missing = {"SOURCE_CA_FILE": str(tmp_path / "absent.pem")}
    assert parse({**REQUIRED, **missing}, TUNNEL_ENDS).source.ca_file == tmp_path / "absent.pem"
    assert faults(missing, Role.REPLICATOR) == (
        f"SOURCE_CA_FILE={tmp_path}/absent.pem: expected a readable PEM file: No such file or directory",
    )


SSH = {
    "TUNNEL_SSH": "ubuntu@bastion.example:22",
    "TUNNEL_SSH_KEY_FILE": "/own",
    "TUNNEL_SSH_HOST_KEYS_FILE": "/hosts",
}


def test_the_ssh_settings_are_put_together() -> None:
    tunnel = parse({**REQUIRED, **SSH}, Role.SOURCE).tunnel
    login = Login("ubuntu", Target("bastion.example", 22))
    assert tunnel.ssh == SshSettings(login, KeyFiles(Path("/own"), Path("/hosts")))
    assert (tunnel.server, tunnel.listen) == (Target("203.0.113.7", 15060), Target("0.0.0.0", 15060))
    assert not tunnel.by_own_sshd


@pytest.mark.parametrize("changes", [{"TUNNEL_SSH": "u@203.0.113.7:22"}, {"SOURCE_SIDE_TUNNEL_IP": "127.0.0.1"}])
def test_the_source_vms_own_sshd_dials_its_loopback_and_nothing_else_is_opened(changes: Mapping[str, str]) -> None:
    tunnel = parse({**REQUIRED, **SSH, **changes}, Role.SOURCE).tunnel
    assert tunnel.server == tunnel.listen == Target("127.0.0.1", 15060)
    assert tunnel.by_own_sshd


def test_a_listening_address_that_is_given_holds_with_an_ssh_server_too() -> None:
    given = {**SSH, "TUNNEL_SSH": "u@203.0.113.7:22", "TUNNEL_LISTEN": "10.0.0.9"}
    assert parse({**REQUIRED, **given}, Role.SOURCE).tunnel.listen == Target("10.0.0.9", 15060)


def test_by_default_no_ssh_server_is_asked() -> None:
    tunnel = parse(REQUIRED, TUNNEL_ENDS).tunnel
    assert (tunnel.ssh, tunnel.by_own_sshd) == (None, False)


@pytest.mark.parametrize("file", ["TUNNEL_SSH_KEY_FILE", "TUNNEL_SSH_HOST_KEYS_FILE"])
def test_an_ssh_server_without_its_key_files_is_told_where_they_are_needed(file: str) -> None:
    [fault] = faults({**SSH, "TUNNEL_SSH_KEY_FILE": "", "TUNNEL_SSH_HOST_KEYS_FILE": ""} | {file: ""}, Role.DESTINATION)
    assert fault == (
        "TUNNEL_SSH=ubuntu@bastion.example:22: expected with it TUNNEL_SSH_KEY_FILE and TUNNEL_SSH_HOST_KEYS_FILE"
    )
    parse({**REQUIRED, "TUNNEL_SSH": SSH["TUNNEL_SSH"]}, Role.SOURCE)


def test_a_secret_is_asked_for_beside_certificate_files_too() -> None:
    names = ("TUNNEL_AUTHORITY_FILE", "TUNNEL_CERTIFICATE_FILE", "TUNNEL_KEY_FILE")
    told = faults({"SHARED_SECRET": ""} | dict.fromkeys(names, "/own"))
    assert any(fault.startswith("SHARED_SECRET: missing") for fault in told)


@pytest.mark.parametrize("name", GONE)
@pytest.mark.parametrize("role", [Role.SOURCE, Role.DESTINATION])
def test_a_variable_that_is_gone_names_what_takes_its_place(name: str, role: Role) -> None:
    [fault] = faults({name: "x"}, role)
    assert fault == f"{name}: gone: {GONE[name]}"
    assert "TUNNEL_SSH" in fault.partition("gone")[2]
    assert name not in {variable.name for variable in TABLE}
