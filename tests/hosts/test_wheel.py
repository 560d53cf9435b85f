"""The wheel on a host: its programs, their help without any other package, what it brings beside Python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.command_table import COMMANDS
from appliance.version import VERSION
from deploy.manual.pages import pages
from deploy.systemd.units import files
from tests.hosts.conftest import environment

PROGRAMS = ("appliance", "kafka-cloud-replicator")
SHELLS = {
    "zsh": """
autoload -Uz compinit && compinit -u -d $1/dump
source $1/share/zsh/site-functions/_appliance
_describe() { print -l -- ${(P)2} }
words=("${(@s: :)2}") CURRENT=$#words
_appliance
""",
    "fish": """
source $argv[2]/share/fish/vendor_completions.d/appliance.fish
complete --do-complete "$argv[3]"
""",
}
"""What each shell completes; its arguments are the environment and the line."""


def run(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(installed), "LANG": "C.UTF-8"}
    line = [installed / "bin" / words[0], *words[1:]]
    return subprocess.run(line, env=variables, cwd=installed, capture_output=True, text=True)


@pytest.mark.parametrize("program", PROGRAMS)
def test_both_programs_give_help_and_their_version_without_any_other_package(installed: Path, program: str) -> None:
    for page in pages():
        done = run(installed, program, *page.words, "--help")
        assert (done.returncode, done.stdout) == (0, page.help)
    assert run(installed, program, "--version").stdout == f"kafka-cloud-replicator {VERSION}\n"


def test_a_command_that_needs_a_checkout_or_a_package_says_so_in_one_line(installed: Path) -> None:
    done = run(installed, "appliance", "support-bundle")
    assert (done.returncode, done.stderr.count("\n"), "only in a checkout" in done.stderr) == (2, 1, True)
    done = run(installed, "appliance", "status")
    assert (done.returncode, done.stderr.count("\n"), "pip install" in done.stderr) == (2, 1, True)


def test_the_page_of_man_is_found_and_shown(installed: Path) -> None:
    variables = {**os.environ, "MANPATH": str(installed / "share" / "man"), "MANPAGER": "cat", "MANWIDTH": "80"}
    shown = subprocess.run(["man", "appliance"], env=variables, capture_output=True, text=True, check=True).stdout
    assert all(f"   {' '.join(page.words)}\n" in shown for page in pages() if page.words)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("appliance ", {*COMMANDS}),
        ("appliance status --", {"--watch", "--json"}),
        ("appliance order ", {"move", "join"}),
        ("appliance doctor ", {"source", "order"}),
    ],
)
def test_zsh_and_fish_complete_what_the_wheel_has_installed_for_them(
    installed: Path, shell: str, line: str, words: set[str]
) -> None:
    program = [shell, "-f"] if shell == "zsh" else [shell, "--no-config"]
    done = subprocess.run([*program, "-c", SHELLS[shell], shell, installed, line], capture_output=True, text=True)
    assert words <= {said.replace(":", "\t").split("\t")[0] for said in done.stdout.splitlines()}, done.stderr


def test_the_wheel_brings_the_units_and_a_template_of_the_settings(installed: Path) -> None:
    folders = {".service": installed / "lib" / "systemd" / "system", ".conf": installed / "lib" / "sysusers.d"}
    for name, text in files().items():
        assert (folders[Path(name).suffix] / name).read_text() == text
    assert (installed / "share" / "kafka-cloud-replicator" / "setenv.sh.template").exists()


@pytest.mark.release  # PySpark is built from source
def test_with_its_dependencies_every_command_can_be_imported(wheel: Path, tmp_path: Path) -> None:
    programs = environment(tmp_path / "whole", "--constraint", "requirements.lock", str(wheel))
    names = [name for name in COMMANDS if name != "support-bundle"]
    code = f"from appliance.command_line import command\nfor name in {names}: command(name)"
    subprocess.run([programs / "python", "-I", "-c", code], check=True)
    assert sys.prefix != str(programs.parent)
