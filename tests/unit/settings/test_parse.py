import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import SettingsError
from appliance.settings.parse import parse
from appliance.settings.role import EVERY_ROLE, TUNNEL_ENDS, Role
from appliance.settings.secret import Secret
from appliance.settings.target import Login, Target, TargetPattern
from appliance.settings.values import KeyFiles, Route, SecretFile, SecurityProtocol, SshSettings, Start
from appliance.settings.variable import Variable
from appliance.settings.variables import GONE, NAMES, TABLE
from tests.support.settings import REQUIRED, SECRET


def faults(changes: Mapping[str, str], role: Role = EVERY_ROLE) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as refusal:
        parse({**REQUIRED, **changes}, role)
    return refusal.value.faults


def test_case_1050_a_value_in_another_encoding_is_refused_as_no_record_could_hold_it() -> None:
    # A regex of shared topics was written in a form that its own link did not read again.
    (fault,) = faults({"REPLICA_TOPICS_SOURCE_REGEX": "caf\udce9.*"})
    assert fault == r"REPLICA_TOPICS_SOURCE_REGEX=caf\udce9.*: expected UTF-8"


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
def test_a_role_needs_no_more_than_the_table_says(role: Role) -> None:
    needed = {variable.name for variable in TABLE if variable.required and variable.roles & role}
    parse({name: text for name, text in REQUIRED.items() if name in needed}, role)

    for name in needed:
        [fault] = faults({name: ""}, role)
        assert fault.startswith(f"{name}: missing: ")


def test_a_variable_that_a_role_does_not_need_is_empty_when_absent() -> None:
    settings = parse({name: text for name, text in REQUIRED.items() if "API" not in name}, Role.SOURCE)
    assert (settings.source.api_key, settings.source.api_secret) == ("", Secret(""))
    assert not settings.destination.api_secret


def test_a_variable_that_a_role_does_not_need_is_still_checked_when_given() -> None:
    assert faults({"LANES": "many"}, Role.SOURCE) == ("LANES=many: expected a whole number from 0 to 1000",)


def test_without_sasl_no_api_key_is_needed() -> None:
    without = {name: text for name, text in REQUIRED.items() if not name.startswith("SOURCE_API")}
    settings = parse({**without, "SOURCE_SECURITY_PROTOCOL": "SSL"}, EVERY_ROLE)
    assert settings.source.api_key == ""


def test_a_sasl_user_without_a_secret_is_a_fault() -> None:
    assert faults({"SOURCE_API_SECRET": ""}) == (
        "SOURCE_API_SECRET: missing: The SASL password of that user, or the secret of that client.",
    )


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


def test_a_fault_names_the_variable_its_value_and_the_expected_form() -> None:
    assert faults({"SOURCE_SASL_MECHANISM": "GSSAPI"}) == (
        "SOURCE_SASL_MECHANISM=GSSAPI: expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM",
    )


def test_a_fault_of_a_secret_never_shows_it() -> None:
    [fault] = faults({"SHARED_SECRET": "hunter2hunter2"})
    assert fault.startswith("SHARED_SECRET: too easy to guess, it withstands 2^")
    assert "hunter" not in fault


@pytest.mark.parametrize("name", ["SHARED_SECRET", "SPARK_AUTHENTICATE_SECRET"])
@pytest.mark.parametrize("role", [Role.SOURCE, Role.DESTINATION, Role.REPLICATOR])
def test_a_weak_secret_is_refused_in_every_role_with_a_strong_one_ready_to_paste(name: str, role: Role) -> None:
    [fault] = faults({name: "Password123!Password2024!Kafka-Prod"}, role)
    assert fault.startswith(f"{name}: too easy to guess, ")
    pasted = re.search(rf"; a strong one, made just now: export {name}='(\S+)'$", fault)
    assert pasted
    assert parse({**REQUIRED, name: pasted[1]}, role)


def test_two_weak_secrets_get_two_strong_ones() -> None:
    weak = faults({"SHARED_SECRET": "hunter2", "SPARK_AUTHENTICATE_SECRET": "hunter2"})
    assert len({fault.rpartition("='")[2] for fault in weak}) == 2


def test_a_weak_secret_in_a_file_gets_a_strong_one_for_that_file(tmp_path: Path) -> None:
    path = secret_file(tmp_path, b"hunter2\n")
    [fault] = faults({"SHARED_SECRET": "", "SHARED_SECRET_FILE": str(path)})
    assert f"; a strong one for {path}, made just now: " in fault


def test_a_weak_secret_of_before_is_to_be_left_out() -> None:
    [fault] = faults({"SHARED_SECRET_PREVIOUS": "hunter2hunter2"})
    assert fault.endswith("; leave it empty, and change SHARED_SECRET on both VMs at once")


def test_the_names_of_the_link_are_no_part_of_a_strong_secret() -> None:
    names = {"SOURCE_CLUSTER_ID": "tangerine-hz1", "SOURCE_BROKER_SERVERS": "b0.bromeliad.vq7.example:9092"}
    secret = {"SHARED_SECRET": "tangerine-hz1-quaxolotl-bromeliad-vq7-zebrafinch"}
    assert parse({**REQUIRED, **secret}, EVERY_ROLE)
    assert faults({**names, **secret})[0].startswith("SHARED_SECRET: too easy to guess, ")


@pytest.mark.parametrize(
    "name",
    [
        "LOG_FORMAT",
        "DESTINATION_CA_FILE",
        "SOURCE_BROKER_SERVERS",
        "REPLICA_TRANSFORM_SQL_FILE",
        "KAFKA_CLUSTERS_SOURCE_TOPIC",
        "SHARED_SECRET_FILE",
    ],
)
def test_case_1006_a_fault_is_one_line_whatever_the_value_holds(name: str) -> None:
    # Faults between values, and those of files, had the marks of the value.
    value = "/text\nLANES=3\x1b[2J\u202e"
    assert all(fault.isprintable() for fault in faults({name: value}))


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


@pytest.mark.parametrize(("host", "listens"), [("localhost", "127.0.0.1"), ("::1", "::1"), ("[::1]", "::1")])
def test_however_loopback_is_spelled_nothing_else_is_opened(host: str, listens: str) -> None:
    tunnel = parse({**REQUIRED, **SSH, "SOURCE_SIDE_TUNNEL_IP": host}, Role.SOURCE).tunnel
    assert (tunnel.by_own_sshd, tunnel.listen) == (True, Target(listens, 15060))


def test_a_listening_address_that_is_given_holds_with_an_ssh_server_too() -> None:
    given = {**SSH, "TUNNEL_SSH": "u@203.0.113.7:22", "TUNNEL_LISTEN": "10.0.0.9"}
    assert parse({**REQUIRED, **given}, Role.SOURCE).tunnel.listen == Target("10.0.0.9", 15060)


def test_by_default_no_ssh_server_is_asked() -> None:
    tunnel = parse(REQUIRED, TUNNEL_ENDS).tunnel
    assert (tunnel.ssh, tunnel.by_own_sshd) == (None, False)


@pytest.mark.parametrize("file", ["TUNNEL_SSH_KEY_FILE", "TUNNEL_SSH_HOST_KEYS_FILE"])
def test_an_ssh_server_without_its_key_files_is_a_fault_where_they_are_needed(file: str) -> None:
    [fault] = faults({**SSH, "TUNNEL_SSH_KEY_FILE": "", "TUNNEL_SSH_HOST_KEYS_FILE": ""} | {file: ""}, Role.DESTINATION)
    assert fault == (
        "TUNNEL_SSH=ubuntu@bastion.example:22: expected with it TUNNEL_SSH_KEY_FILE and TUNNEL_SSH_HOST_KEYS_FILE"
    )
    parse({**REQUIRED, "TUNNEL_SSH": SSH["TUNNEL_SSH"]}, Role.SOURCE)


def test_a_secret_is_asked_for_beside_certificate_files_too() -> None:
    names = ("TUNNEL_AUTHORITY_FILE", "TUNNEL_CERTIFICATE_FILE", "TUNNEL_KEY_FILE")
    told = faults({"SHARED_SECRET": ""} | dict.fromkeys(names, "/own"))
    [missing] = [fault for fault in told if fault.startswith("SHARED_SECRET: missing")]
    assert missing.endswith("; certificates of your own no longer take its place, since it proves the first flight")
    assert "certificates" not in faults({"SHARED_SECRET": ""})[0]


@pytest.mark.parametrize("name", GONE)
@pytest.mark.parametrize("role", [Role.SOURCE, Role.DESTINATION])
def test_a_variable_that_is_gone_names_its_replacement(name: str, role: Role) -> None:
    [fault] = faults({name: "x"}, role)
    assert fault == f"{name}: gone: {GONE[name]}"
    named = {"`appliance lanes --balance`", *(variable.name for variable in TABLE)}
    assert any(other in GONE[name] for other in named)
    assert name not in named


def secret_file(directory: Path, content: bytes, mode: int = 0o600) -> Path:
    path = directory / "secret"
    path.touch(mode=0o600)
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    "variable", [variable for variable in TABLE if variable.confidential], ids=lambda one: one.name
)
def test_every_secret_may_be_in_a_file_of_its_own(tmp_path: Path, variable: Variable[object]) -> None:
    path = secret_file(tmp_path, SECRET.encode() + b"\n", 0o440)
    settings = parse({**REQUIRED, variable.name: "", f"{variable.name}_FILE": f" {path} "}, EVERY_ROLE)
    assert settings.secret_files == (SecretFile(variable.name, path, Secret(SECRET)),)
    with_it = parse({**REQUIRED, variable.name: SECRET}, EVERY_ROLE)
    assert replace(settings, secret_files=()) == with_it


@pytest.mark.parametrize(
    "variable", [variable for variable in TABLE if not variable.confidential], ids=lambda one: one.name
)
def test_a_variable_that_is_no_secret_has_no_file(variable: Variable[object]) -> None:
    assert variable.names == (variable.name,)


@pytest.mark.parametrize(
    ("content", "mode", "expected"),
    [
        (b"x", 0o604, "expected a file that others cannot read: chmod o= "),
        (b"x", 0o602, "expected a file that others cannot read: chmod o= "),
        (b"", 0o600, "expected a line of 1 to 4096 bytes in it"),
        (b"\n", 0o600, "expected a line of 1 to 4096 bytes in it"),
        (b"x" * 4097, 0o600, "expected a line of 1 to 4096 bytes in it"),
        (b"hunter\nhunter\n", 0o600, "expected one line of text without control characters"),
        (b"hunter\r\n", 0o600, "expected one line of text without control characters"),
        (b"hunter\xff", 0o600, "expected UTF-8 text in it"),
    ],
)
def test_a_file_that_holds_no_secret_is_a_fault_of_one_line(
    tmp_path: Path, content: bytes, mode: int, expected: str
) -> None:
    path = secret_file(tmp_path, content, mode)
    [fault] = faults({"SOURCE_API_SECRET": "", "SOURCE_API_SECRET_FILE": str(path)})
    assert fault.startswith(f"SOURCE_API_SECRET_FILE={path}: {expected}")
    assert "hunter" not in fault.removeprefix(f"SOURCE_API_SECRET_FILE={path}")


def test_a_file_that_is_none_is_a_fault(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    causes = {
        tmp_path: "expected a readable file: Is a directory",
        pipe: "expected a regular file",
    }
    for path, cause in causes.items():
        variables = {"SHARED_SECRET": "", "SHARED_SECRET_FILE": str(path)}
        assert faults(variables) == (f"SHARED_SECRET_FILE={path}: {cause}",)


def test_a_secret_is_given_in_one_way(tmp_path: Path) -> None:
    both = {"SHARED_SECRET_FILE": str(secret_file(tmp_path, SECRET.encode()))}
    assert faults(both) == ("SHARED_SECRET, SHARED_SECRET_FILE: expected one of them, not both",)


def test_a_role_opens_no_file_whose_secret_it_does_not_need(tmp_path: Path) -> None:
    absent = {"SHARED_SECRET": "", "SHARED_SECRET_FILE": str(tmp_path / "absent")}
    assert parse({**REQUIRED, **absent}, Role.REPLICATOR).secret_files == ()
    assert faults(absent, Role.SOURCE)


def test_a_relative_path_is_refused_for_a_container_or_an_executor_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = secret_file(tmp_path, SECRET.encode())
    monkeypatch.chdir(tmp_path)
    assert faults({"SHARED_SECRET": "", "SHARED_SECRET_FILE": path.name}) == (
        "SHARED_SECRET_FILE: expected the absolute path of a file "
        "(if it is the secret itself, give it as SHARED_SECRET)",
    )


@pytest.mark.parametrize("pasted", [f"/{SECRET}", "/" + "s" * 300, "/hunter2\0"])
def test_a_secret_that_is_pasted_in_the_place_of_its_file_is_not_shown(pasted: str) -> None:
    assert faults({"SHARED_SECRET": "", "SHARED_SECRET_FILE": pasted}) == (
        "SHARED_SECRET_FILE: no such file (if it is the secret itself, give it as SHARED_SECRET)",
    )


@pytest.mark.parametrize("content", [f"\ufeff{SECRET}", f" {SECRET}", f"{SECRET} \n", f"\t{SECRET}\n"])
def test_a_secret_with_a_byte_order_mark_or_blanks_around_it_is_refused(tmp_path: Path, content: str) -> None:
    path = secret_file(tmp_path, content.encode())
    [fault] = faults({"SHARED_SECRET": "", "SHARED_SECRET_FILE": str(path)})
    assert fault.endswith(": expected the secret alone, without a byte order mark or blanks around it")
    assert SECRET not in fault


def test_a_secret_that_docker_or_kubernetes_lets_all_read_is_refused_with_the_cure_for_each(tmp_path: Path) -> None:
    path = secret_file(tmp_path, SECRET.encode(), 0o444)
    [fault] = faults({"SHARED_SECRET": "", "SHARED_SECRET_FILE": str(path)})
    assert fault.endswith(f"chmod o= {path} (a secret of Docker: mode 0440, of Kubernetes: defaultMode 0440)")


MARKS = ["\x1b", "\u202e", "\u2028", "٣", "://", "u:p@", "s3a://", "a.b:1"]
ODD = st.sampled_from([*"'\"\\$`\n\r\t=#,:[]*?(){}+~ -/0", *MARKS])


@settings(deadline=None)
@given(st.sampled_from(sorted(NAMES)), st.one_of(st.lists(ODD, max_size=8).map("".join), st.text(max_size=40)))
def test_any_value_is_taken_or_refused_by_lines_that_name_a_variable(name: str, value: str) -> None:
    try:
        parse({**REQUIRED, name: value}, EVERY_ROLE)
    except SettingsError as error:
        for fault in error.faults:
            assert fault.isprintable()
            assert any(known in fault for known in NAMES)
