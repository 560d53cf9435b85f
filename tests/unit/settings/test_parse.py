import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import SettingsError
from appliance.settings.parse import parse
from appliance.settings.role import EVERY_ROLE, TUNNEL_ENDS, Role
from appliance.settings.secret import Secret
from appliance.settings.target import Login, Target, TargetPattern
from appliance.settings.values import KeyFiles, Route, SecurityProtocol, SshSettings, Start, TunnelSettings
from appliance.settings.variables import GONE, NAMES, TABLE
from tests.support.settings import REQUIRED, SECRET, faults, parsed


def test_case_1050_a_value_in_another_encoding_is_refused_as_no_record_could_hold_it() -> None:
    # A regex of shared topics was written in a form that its own link did not read again.
    (fault,) = faults(REPLICA_TOPICS_SOURCE_REGEX="caf\udce9.*")
    assert fault == r"REPLICA_TOPICS_SOURCE_REGEX=caf\udce9.*: expected UTF-8"


def test_the_required_variables_suffice() -> None:
    settings = parsed()

    assert settings.replicator == "replicator-orange"
    assert settings.source.bootstrap == (Target("b0.orange.example", 9092), Target("b1.orange.example", 9093))
    assert settings.destination.protocol is SecurityProtocol.SASL_SSL
    assert settings.destination.api_secret.reveal() == "grape $HOME `secret` #1"
    assert settings.route is Route.TUNNEL
    assert settings.topics.start is Start.EARLIEST
    assert settings.engine.commit_interval == 0.025
    assert settings.engine.lanes == 0


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("earliest", None),
        ("Latest", None),
        ("90m", 1_793_491_200_000 - 5_400_000),
        ("24h", 1_793_404_800_000),
        ("7d", 1_792_886_400_000),
        ("30000d", 0),
        ("2026-10-31T00:00:00Z", 1_793_404_800_000),
        ("2026-10-31T01:00+01:00", 1_793_404_800_000),
        ("1970-01-01", 0),
    ],
)
def test_a_link_begins_at_an_end_of_the_logs_or_at_a_time(text: str, time: int | None) -> None:
    start = parse({**REQUIRED, "REPLICA_TOPICS_START": text}, EVERY_ROLE).topics.start
    assert start.time(1_793_491_200_000) == time


@pytest.mark.parametrize("text", ["0h", "24", "soon", "2026-13-01", "1.5h"])
def test_a_beginning_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=f"REPLICA_TOPICS_START={text}: expected earliest, latest, an age such as"):
        parse({**REQUIRED, "REPLICA_TOPICS_START": text}, EVERY_ROLE)


def test_the_tunnels_values_are_put_together() -> None:
    tunnel = parsed(TUNNEL_ENDS, SOURCE_BROKER_PATTERN="*.orange.example:9092").tunnel

    assert tunnel.link == "orange-grape"
    assert tunnel.server == Target("203.0.113.7", 15060)
    assert tunnel.listen == Target("0.0.0.0", 15060)
    assert tunnel.peer_addresses == ("198.51.100.9",)
    assert tunnel.secret.reveal() == SECRET
    assert tunnel.allowed.exact == (Target("b0.orange.example", 9092), Target("b1.orange.example", 9093))
    assert tunnel.allowed.patterns == (TargetPattern("orange.example", 9092),)
    assert (tunnel.ssh, tunnel.by_own_sshd) == (None, False)


@pytest.mark.parametrize("role", [Role.SOURCE, Role.DESTINATION, Role.REPLICATOR])
def test_a_role_needs_no_more_than_the_table_says(role: Role) -> None:
    needed = {variable.name for variable in TABLE if variable.required and variable.roles & role}
    parse({name: text for name, text in REQUIRED.items() if name in needed}, role)

    for name in needed:
        [fault] = faults(role, **{name: ""})
        assert fault.startswith(f"{name}: missing: ")


def test_a_variable_that_a_role_does_not_need_is_empty_when_absent() -> None:
    settings = parse({name: text for name, text in REQUIRED.items() if "API" not in name}, Role.SOURCE)
    assert (settings.source.api_key, settings.source.api_secret) == ("", Secret(""))
    assert not settings.destination.api_secret


def test_a_variable_that_a_role_does_not_need_is_still_checked_when_given() -> None:
    assert faults(Role.SOURCE, LANES="many") == ("LANES=many: expected a whole number from 0 to 1000",)


def test_without_sasl_no_api_key_is_needed() -> None:
    without = {name: text for name, text in REQUIRED.items() if not name.startswith("SOURCE_API")}
    settings = parse({**without, "SOURCE_SECURITY_PROTOCOL": "SSL"}, EVERY_ROLE)
    assert settings.source.api_key == ""


def test_an_empty_optional_variable_means_its_default() -> None:
    assert parsed(LANES="", TUNNEL_PORT=" ") == parsed()


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
    assert {re.split("[=:]", fault)[0] for fault in faults(**spoiled)} == set(spoiled)


@pytest.mark.parametrize(
    "name",
    [
        *("LOG_FORMAT", "DESTINATION_CA_FILE", "SOURCE_BROKER_SERVERS"),
        *("REPLICA_TRANSFORM_SQL_FILE", "KAFKA_CLUSTERS_SOURCE_TOPIC", "SHARED_SECRET_FILE"),
    ],
)
def test_case_1006_a_fault_is_one_line_whatever_the_value_holds(name: str) -> None:
    # Faults between values, and those of files, had the marks of the value.
    value = "/text\nLANES=3\x1b[2J\u202e"
    assert all(fault.isprintable() for fault in faults(**{name: value}))


def test_a_secret_is_taken_as_it_stands_and_other_values_are_trimmed() -> None:
    settings = parsed(SOURCE_API_SECRET=" s ", SOURCE_API_KEY=" k ")
    assert (settings.source.api_secret.reveal(), settings.source.api_key) == (" s ", "k")


def test_a_ca_file_matters_only_to_the_role_that_reads_it(tmp_path: Path) -> None:
    missing = {"SOURCE_CA_FILE": str(tmp_path / "absent.pem")}
    assert parsed(TUNNEL_ENDS, **missing).source.ca_file == tmp_path / "absent.pem"
    assert faults(Role.REPLICATOR, **missing) == (
        f"SOURCE_CA_FILE={tmp_path}/absent.pem: expected a readable PEM file: No such file or directory",
    )


SSH = {
    "TUNNEL_SSH": "ubuntu@bastion.example:22",
    "TUNNEL_SSH_KEY_FILE": "/own",
    "TUNNEL_SSH_HOST_KEYS_FILE": "/hosts",
}


def test_the_ssh_settings_are_put_together() -> None:
    tunnel = parsed(Role.SOURCE, **SSH).tunnel
    login = Login("ubuntu", Target("bastion.example", 22))
    assert tunnel.ssh == SshSettings(login, KeyFiles(Path("/own"), Path("/hosts")))
    assert (tunnel.server, tunnel.listen) == (Target("203.0.113.7", 15060), Target("0.0.0.0", 15060))
    assert not tunnel.by_own_sshd


@pytest.mark.parametrize(
    ("changes", "server", "listen"),
    [
        ({"TUNNEL_SSH": "u@203.0.113.7:22"}, "127.0.0.1", "127.0.0.1"),
        *(
            ({"SOURCE_SIDE_TUNNEL_IP": host}, Target.parse(f"{host}:1").host, listen)
            for host, listen in (
                ("127.0.0.1", "127.0.0.1"),
                ("localhost", "127.0.0.1"),
                ("::1", "::1"),
                ("[::1]", "::1"),
            )
        ),
        ({"TUNNEL_SSH": "u@203.0.113.7:22", "TUNNEL_LISTEN": "10.0.0.9"}, "127.0.0.1", "10.0.0.9"),
    ],
)
def test_the_source_vms_own_sshd_dials_its_loopback_and_nothing_else_is_opened_unless_it_is_set(
    changes: Mapping[str, str], server: str, listen: str
) -> None:
    tunnel = parsed(Role.SOURCE, **SSH | changes).tunnel
    assert (tunnel.server, tunnel.listen) == (Target(server, 15060), Target(listen, 15060))
    assert tunnel.by_own_sshd


def ways(tunnel: TunnelSettings) -> list[str]:
    return [each.way for each in tunnel.of_each_vm]


def test_several_source_vms_are_dialled_each_alone_in_their_order() -> None:
    several = "203.0.113.7, vm-b.orange.example ,2001:db8::7"
    tunnel = parsed(TUNNEL_ENDS, SOURCE_SIDE_TUNNEL_IP=several, DESTINATION_SIDE_TUNNEL_IP="198.51.100.9,::1").tunnel
    assert ways(tunnel) == ["203.0.113.7:15060", "vm-b.orange.example:15060", "[2001:db8::7]:15060"]
    assert not any(each.others for each in tunnel.of_each_vm)
    assert tunnel.peer_addresses == ("198.51.100.9", "::1")
    assert (tunnel.spread, parsed(TUNNEL_ENDS, TUNNEL_SPREAD="yes").tunnel.spread) == (False, True)


TWO = {"SOURCE_SIDE_TUNNEL_IP": "203.0.113.7,203.0.113.8"}


@pytest.mark.parametrize(
    ("hosts", "servers", "expected"),
    [
        ("203.0.113.7,203.0.113.8", "u@b.example:22", ["203.0.113.7:15060", "203.0.113.8:15060"]),
        ("203.0.113.7,203.0.113.8", "u@203.0.113.7:22,u@203.0.113.8:22", ["127.0.0.1:15060", "127.0.0.1:15060"]),
        ("203.0.113.7", "u@b.example:22,u@c.example:22", ["203.0.113.7:15060", "203.0.113.7:15060"]),
    ],
    ids=["one bastion", "each one's own sshd", "two bastions"],
)
def test_an_ssh_server_is_on_the_way_to_all_source_vms_or_one_to_each(
    hosts: str, servers: str, expected: list[str]
) -> None:
    tunnel = parsed(Role.SOURCE, **SSH | {"SOURCE_SIDE_TUNNEL_IP": hosts, "TUNNEL_SSH": servers}).tunnel
    logins = servers.split(",")
    assert ways(tunnel) == [f"{each} through {logins[-1 if at else 0]}" for at, each in enumerate(expected)]
    assert tunnel.listen.host == ("127.0.0.1" if tunnel.by_own_sshd else "0.0.0.0")


@pytest.mark.parametrize(
    "changes",
    [
        {"SOURCE_SIDE_TUNNEL_IP": "203.0.113.7,203.0.113.7"},
        TWO | {"TUNNEL_SSH": "u@b.example:22,u@c.example:22,u@d.example:22"},
        {"TUNNEL_SSH": "u@b.example:22,u@b.example:22"},
    ],
    ids=["twice", "three for two", "one SSH server twice"],
)
def test_source_vms_that_do_not_fit_their_ssh_servers_are_a_fault(changes: Mapping[str, str]) -> None:
    (fault,) = faults(Role.SOURCE, **changes)
    assert fault.endswith(": expected each address once, and one TUNNEL_SSH for all or one for each")


@pytest.mark.parametrize("text", ["203.0.113.7,", "203.0.113.7;203.0.113.8", "a b"])
def test_a_list_of_source_vms_has_no_empty_or_illegal_entry(text: str) -> None:
    (fault,) = faults(Role.SOURCE, SOURCE_SIDE_TUNNEL_IP=text)
    assert fault.startswith(f"SOURCE_SIDE_TUNNEL_IP={text}: expected an IP address or a host name, got ")


def test_no_destination_vm_has_the_address_of_a_source_vm() -> None:
    (fault,) = faults(TUNNEL_ENDS, **TWO, DESTINATION_SIDE_TUNNEL_IP="198.51.100.9,203.0.113.8")
    assert fault.startswith("DESTINATION_SIDE_TUNNEL_IP=203.0.113.8: expected the destination VM's address")


@pytest.mark.parametrize("file", ["TUNNEL_SSH_KEY_FILE", "TUNNEL_SSH_HOST_KEYS_FILE"])
def test_an_ssh_server_without_its_key_files_is_a_fault_where_they_are_needed(file: str) -> None:
    missing, _unreadable = faults(Role.DESTINATION, **SSH | {file: ""})
    assert missing == (
        "TUNNEL_SSH=ubuntu@bastion.example:22: expected with it TUNNEL_SSH_KEY_FILE and TUNNEL_SSH_HOST_KEYS_FILE"
    )
    parsed(Role.SOURCE, TUNNEL_SSH=SSH["TUNNEL_SSH"])


def test_a_secret_is_asked_for_beside_certificate_files_too() -> None:
    names = ("TUNNEL_AUTHORITY_FILE", "TUNNEL_CERTIFICATE_FILE", "TUNNEL_KEY_FILE")
    refused = faults(**{"SHARED_SECRET": ""} | dict.fromkeys(names, "/own"))
    [missing] = [fault for fault in refused if fault.startswith("SHARED_SECRET: missing")]
    assert missing.endswith("; certificates of your own no longer take its place, since it proves the first flight")
    assert "certificates" not in faults(SHARED_SECRET="")[0]


@pytest.mark.parametrize("name", GONE)
@pytest.mark.parametrize("role", [Role.SOURCE, Role.DESTINATION])
def test_a_variable_that_is_gone_names_its_replacement(name: str, role: Role) -> None:
    [fault] = faults(role, **{name: "x"})
    assert fault == f"{name}: gone: {GONE[name]}"
    replacements = {"`appliance lanes --balance`", *(variable.name for variable in TABLE)}
    assert any(other in GONE[name] for other in replacements)
    assert name not in replacements


@pytest.mark.parametrize("name", ["SOURCE_CA_FILE", "SHARED_SECRET", "AUDIT_PATH", "REPLICA_TRANSFORM_SQL_FILE"])
def test_case_1413_a_value_with_a_null_character_is_refused_as_any_other(name: str) -> None:
    # SOURCE_CA_FILE ended each command with a traceback: "embedded null byte".
    [fault] = faults(Role.REPLICATOR, **{name: "/srv/a\0b"})
    assert fault.startswith(name)
    assert fault.endswith(": expected text without a null character")


MARKS = ["\x1b", "\u202e", "\u2028", "٣", "://", "u:p@", "s3a://", "a.b:1"]
ODD = st.sampled_from([*"'\"\\$`\n\r\t=#,:[]*?(){}+~ -/0", *MARKS])


@settings(deadline=None)
@given(st.sampled_from(sorted(NAMES)), st.one_of(st.lists(ODD, max_size=8).map("".join), st.text(max_size=40)))
def test_any_value_is_taken_or_refused_by_lines_that_name_a_variable(name: str, value: str) -> None:
    try:
        parsed(**{name: value})
    except SettingsError as error:
        for fault in error.faults:
            assert fault.isprintable()
            assert any(variable in fault for variable in NAMES)
