"""The table of the commands."""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from appliance import cli, command_line
from appliance.errors import Unreachable
from appliance.runtime.command import Command

PACKAGE = Path(cli.__file__).parent


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_is_where_the_table_says(name: str) -> None:
    assert isinstance(command_line.command(name), Command)


def test_where_a_command_is_not_as_in_the_image_and_the_wheel_it_says_in_one_line_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "appliance").symlink_to(PACKAGE)
    variables = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "appliance.cli", "support-bundle"]
    said = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 2
    where = "it is only in a checkout: run bin/appliance support-bundle in the link's folder on the VM"
    assert said.stderr == f"appliance support-bundle: {where}\n"


def test_case_1450_without_a_package_a_command_says_in_one_line_which_is_missing() -> None:
    # As a traceback, where the wheel was installed without its dependencies.
    command = [sys.executable, "-S", "-m", "appliance.cli", "status"]
    said = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True)
    missing = "the Python package aiohttp is missing: pip install kafka-cloud-replicator"
    assert (said.returncode, said.stderr) == (2, f"appliance status: {missing}\n")


INTERRUPTED = """
import os, signal, sys
from importlib import abc
from appliance import cli

class Interrupting(abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == MODULE:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["appliance", "status"]
cli.program()
"""


@pytest.mark.parametrize("module", ["appliance.command_line", "asyncio.runners", "aiohttp", "appliance.link.handle"])
def test_case_1451_ctrl_c_ends_a_command_that_is_being_imported_without_a_traceback(module: str) -> None:
    # With Python's traceback through the imports.
    line = [sys.executable, "-c", INTERRUPTED.replace("MODULE", repr(module))]
    ended = subprocess.run(line, cwd=PACKAGE.parent, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


CLOSED = """
import os, sys
from appliance import cli, command_line
from appliance.output import say
from appliance.errors import Unreachable
from appliance.runtime.command import Command
from appliance.tables import cell, show

async def run(parsed, stopping):
    os.close(reading)
    SAYS

reading, writing = os.pipe()
os.dup2(writing, 1)
command_line.command = lambda name: Command("", run)
sys.argv = ["appliance", "status"]
cli.program()
"""


@pytest.mark.parametrize("says", ['say("a")', 'show(cell("a"))', 'print("a")'])
def test_case_1452_a_closed_pipe_ends_a_command_as_it_ends_other_programs(says: str) -> None:
    # `appliance status | head -1` ended with a traceback of BrokenPipeError.
    line = [sys.executable, "-c", CLOSED.replace("SAYS", says)]
    ended = subprocess.run(line, cwd=PACKAGE.parent, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, "")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("/tmp/x", 2, "appliance: /tmp/x: no such command; see appliance --help\n"),
        ("'**x'", 2, "appliance: **x: no such command; see appliance --help\n"),
        ("--help >&-", 0, ""),
        ("--version >&-", 0, ""),
        ("--version 2>&-", 0, ""),
        ("status --env-file /nowhere >&- 2>&-", 2, ""),
        ("--version >/dev/full", 1, "appliance: No space left on device\n"),
        ("--help >/dev/full", 1, "appliance: No space left on device\n"),
    ],
)
def test_case_1496_no_word_and_no_closed_or_full_output_gives_a_traceback(line: str, code: int, said: str) -> None:
    # NotImplementedError and ValueError of a glob, AttributeError of no stdout, OSError of a full one.
    command = ["sh", "-c", f"exec {sys.executable} -m appliance.cli {line}"]
    for unbuffered in ("", "1"):
        variables = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        ended = subprocess.run(command, cwd=PACKAGE.parent, env=variables, capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (code, said)


STOPPED = """
import os, signal, sys
from appliance import cli, command_line
from appliance.errors import Interrupted
from appliance.errors import Unreachable
from appliance.runtime.command import Command

async def run(parsed, stopping):
    os.kill(os.getpid(), NUMBER)
    await stopping.wait()
    ENDS

command_line.command = lambda name: Command("", run)
sys.argv = ["appliance", "status"]
cli.program()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("ends", ["return 0", "raise Interrupted('stopped')"])
def test_a_command_that_a_signal_ends_exits_by_its_own_code_or_if_it_did_not_finish_as_killed(
    number: signal.Signals, ends: str
) -> None:
    line = [sys.executable, "-c", STOPPED.replace("NUMBER", str(int(number))).replace("ENDS", ends)]
    ended = subprocess.run(line, cwd=PACKAGE.parent, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (
        (0, "") if ends == "return 0" else (128 + number, "appliance status: stopped\n")
    )


def test_case_1432_a_command_on_a_vm_with_containers_that_cannot_reach_the_brokers_names_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def unreachable(_: argparse.Namespace, __: asyncio.Event) -> None:
        raise Unreachable("b0.orange does not answer")

    told = []
    monkeypatch.setattr(command_line, "command", lambda _: Command("", unreachable))
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert command_line.run(["verify"]) == 1
        told.append(capsys.readouterr().err)
        (tmp_path / "prepared").mkdir(exist_ok=True)
        (tmp_path / "prepared" / "replicator.sh").touch()
    assert told[0] == "appliance verify: b0.orange does not answer\n"
    assert told[1].endswith(": docker-compose exec replicator appliance verify\n")
