"""The units on disk are those of the table, and each runs a command that there is."""

import shlex

import pytest

from appliance.command_line import command, parser
from appliance.errors import SettingsError
from deploy.systemd.__main__ import FOLDER
from deploy.systemd.units import NAME, ROLES, HostRole, files


def test_the_units_are_those_of_the_table() -> None:
    kept = {path.name: path.read_text() for path in FOLDER.iterdir() if path.suffix in (".service", ".conf")}
    assert kept == files()  # python -m deploy.systemd


@pytest.mark.parametrize("role", ROLES.values(), ids=lambda role: role.command)
def test_a_unit_runs_a_command_of_the_appliance(role: HostRole) -> None:
    words = shlex.split(role.command)
    assert parser(words[0], command(words[0])).parse_args(words).command == words[0]


def test_only_the_ends_of_the_tunnel_may_listen_on_low_ports() -> None:
    able = {name for name, text in files().items() if "AmbientCapabilities=CAP_NET_BIND_SERVICE\n" in text}
    assert able == {f"{NAME}-source@.service", f"{NAME}-destination@.service"}


def test_a_unit_does_not_start_again_and_again_with_settings_that_cannot_be_used() -> None:
    never = f"RestartPreventExitStatus={SettingsError.exit_code}"
    assert all(never in text.splitlines() for name, text in files().items() if name.endswith(".service"))
