"""The commands that the prepare scripts print."""

import shlex
from pathlib import Path

import pytest

from deploy.prepare.compose_env import EnvFile
from deploy.prepare.preparation import Preparation
from deploy.prepare.report import what_next
from deploy.render.compose import RenderedFile
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
