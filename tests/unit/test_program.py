"""The command lines that are printed."""

import subprocess
import sys

import pytest

from appliance.program import command_line


@pytest.mark.parametrize(
    ("env_file", "line"),
    [
        (None, "bin/appliance resume --topic-name=t"),
        ("links/a b/setenv.sh", "bin/appliance resume --topic-name=t --env-file='links/a b/setenv.sh'"),
    ],
)
def test_case_1431_a_command_that_is_printed_acts_on_the_link_that_was_looked_at(
    env_file: str | None, line: str
) -> None:
    assert command_line("resume --topic-name=t", env_file) == line


def test_a_process_prints_the_settings_that_it_was_given() -> None:
    code = "from appliance.program import DOCTOR, command_line; print(command_line('pause'), DOCTOR, sep='\\n')"
    words = [sys.executable, "-c", code, "status", "--env-file", "a.sh", "--json"]
    said = subprocess.run(words, capture_output=True, text=True, check=True)
    assert said.stdout.split("\n")[:2] == [
        "bin/appliance pause --env-file=a.sh",
        "bin/appliance doctor destination --env-file=a.sh",
    ]
