"""The table of the commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from appliance import cli
from appliance.runtime.command import Command

PACKAGE = Path(cli.__file__).parent


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_is_where_the_table_says(name: str) -> None:
    assert isinstance(cli.command(name), Command)


def test_where_a_command_is_not_as_in_the_image_it_says_in_one_line_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "appliance").symlink_to(PACKAGE)
    variables = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "appliance.cli", "support-bundle"]
    said = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 1
    where = "it is not in the image: run bin/appliance support-bundle in the link's folder on the VM"
    assert said.stderr == f"appliance support-bundle: {where}\n"
