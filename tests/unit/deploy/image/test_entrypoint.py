"""The image's entrypoint runs the appliance's commands, and any other program."""

import subprocess
from pathlib import Path

import pytest

from appliance.command_table import COMMANDS
from deploy.image.entrypoint import entrypoint


@pytest.fixture
def script(tmp_path: Path) -> Path:
    for name, text in (("entrypoint", entrypoint()), ("appliance", '#!/bin/sh\necho appliance "$@"\n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path / "entrypoint"


def said(script: Path, *words: str) -> str:
    environment = {"PATH": f"{script.parent}:/usr/bin:/bin"}
    return subprocess.run([script, *words], env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("words", [*((name,) for name in COMMANDS), ("--help",), ("help",), ("status", "--json")])
def test_a_command_of_the_appliance_needs_no_program_before_it(script: Path, words: tuple[str, ...]) -> None:
    assert said(script, *words) == f"appliance {' '.join(words)}"


def test_a_word_that_is_no_program_is_left_to_the_appliance_which_names_the_nearest_command(script: Path) -> None:
    assert said(script, "statsu") == "appliance statsu"


def test_any_other_word_is_a_program(script: Path) -> None:
    assert said(script, "echo", "status") == "status"
    assert said(script, "appliance", "replicate") == "appliance replicate"
