"""The commands that the prepare scripts print."""

import shlex
from pathlib import Path

import pytest

from deploy.prepare.__main__ import main
from deploy.prepare.compose_env import EnvFile
from deploy.prepare.preparation import Preparation
from deploy.prepare.report import firewall, what_next
from deploy.render.compose import RenderedFile
from deploy.render.firewall import rules
from tests.support.facts import settings


@pytest.mark.parametrize(("notes", "condition"), [([], ""), (["a note"], ", if this user may use Docker then")])
def test_the_boot_units_line_holds_any_path_and_says_what_the_boot_needs(
    notes: list[str], condition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "a link's $HOME").mkdir()
    monkeypatch.chdir(folder)
    prepared = Preparation(settings(), (RenderedFile("link.service", "", 0o644),), EnvFile("", None), (0, 0), ())
    said = what_next("docker-compose", prepared, ("other", "VM"), notes)
    (line,) = (line for line in said.splitlines() if "install -m 644" in line)
    label, command = line.strip().split(":", 1)
    assert label == f"once, so that a reboot starts it too{condition}"
    assert str(folder / "link.service") in shlex.split(command)


@pytest.mark.parametrize("width", [40, 80, 100, 1000])
@pytest.mark.parametrize("route", ["tunnel", "direct"])
def test_case_1494_the_firewall_rules_fit_the_terminal(width: int, route: str) -> None:
    # The table had 150 columns, and a terminal of 80 broke each of its rows.
    found = rules(settings(SOURCE_ROUTE=route))
    text = firewall(found, "destination", width)
    assert max(map(len, text.splitlines())) <= width
    told = " ".join(text.split())
    for rule in found:
        assert all(word in told for word in (f"{rule.machine} VM", rule.peer.name, f"TCP {rule.ports}", rule.reason))
    own = [line for line in text.splitlines() if line.startswith("  * ") and "to be opened" not in line]
    assert len(own) == sum(rule.machine == "destination" for rule in found)


@pytest.mark.parametrize("machine", ["source", "destination"])
def test_case_1494_the_help_of_the_prepare_scripts_fits_80_columns(
    machine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Its paragraphs had 103 columns.
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([machine, "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
