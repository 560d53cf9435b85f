"""Help, the version, completion and mistyped commands: generated from one table, and shown without any package."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from appliance import cli
from appliance.command_line import command, parser
from appliance.version import VERSION
from deploy.manual.__main__ import FOLDER, texts
from deploy.manual.examples import EXAMPLES, is_of
from deploy.manual.pages import WIDTH, CommandPage, pages

CHECKOUT = Path(__file__).parents[2]
PAGES = pages()
COMPLETED = """
source appliance/help/appliance.bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_appliance
echo "${COMPREPLY[@]}"
"""
COMPLETED_LINES = COMPLETED.replace('echo "${COMPREPLY[@]}"', 'printf "%s\\n" "${COMPREPLY[@]}"')
LIGHT = [
    ["--help"],
    ["--version"],
    [],
    ["stauts"],
    ["help"],
    ["help", "status"],
    ["version"],
    ["-V"],
    ["--env-file", "x", "status"],
    ["--", "status"],
    ["appliance"],
    ["order.move"],
    ["../help/status"],
    ["order"],
    ["order", "staus"],
    *([*page.words, "--help"] for page in PAGES),
]
IMPORTED = """
import sys
from appliance import cli
cli.main(sys.argv[1:])
print(*{name.split(".")[0] for name in sys.modules} - {*sys.stdlib_module_names, "__main__"}, file=sys.stderr)
"""


def of_line(*words: str) -> CommandPage:
    return next(page for page in PAGES if page.words == words)


def test_the_texts_of_help_are_those_of_the_commands_and_their_options() -> None:
    assert {path: path.read_text() for path in FOLDER.iterdir()} == texts()  # python -m deploy.manual


@pytest.mark.parametrize("page", PAGES, ids=lambda page: " ".join(page.words))
def test_no_line_of_the_help_is_wider_than_a_terminal(page: CommandPage) -> None:
    assert [line for line in page.help.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("words", EXAMPLES)
def test_each_example_is_a_line_that_its_command_takes(words: str) -> None:
    line = shlex.split(words)
    assert parser(line[0], command(line[0])).parse_args(line).command == line[0]


@pytest.mark.parametrize("page", [page for page in PAGES if page.words], ids=lambda page: " ".join(page.words))
def test_each_command_has_an_example_in_its_help(page: CommandPage) -> None:
    assert [words for words in EXAMPLES if is_of(words, " ".join(page.words)) and f"  appliance {words}\n" in page.help]


def test_the_help_lists_every_command_in_a_group() -> None:
    shown = (FOLDER / "appliance.txt").read_text()
    for name, entry in cli.COMMANDS.items():
        group = shown.split(f"{entry.group}:\n")[1].split("\n\n")[0]
        assert f"  {name:<16}{entry.summary}" in group.splitlines()


@pytest.mark.parametrize("words", [line for line in LIGHT if line[:1] != ["completion"]][:21], ids=" ".join)
def test_help_imports_the_standard_library_alone(words: list[str]) -> None:
    line = [sys.executable, "-S", "-c", IMPORTED, *words]
    done = subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1:] == ["appliance"], done.stderr


@pytest.mark.parametrize("words", [*LIGHT, ["completion", "bash"], ["completion", "tcsh"]], ids=" ".join)
def test_help_makes_no_environment(words: list[str], tmp_path: Path) -> None:
    variables = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    variables |= {"PYTHON": sys.executable, "PATH": "/usr/bin:/bin", "JAVA_HOME": "/nowhere"}
    done = subprocess.run([CHECKOUT / "bin" / "appliance", *words], env=variables, capture_output=True, text=True)
    assert "usage: " in done.stdout + done.stderr or VERSION in done.stdout or words
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stauts"], "appliance: stauts: no such command: did you mean status?; see appliance --help"),
        (
            ["order", "staus"],
            "appliance order: staus: no such command: did you mean status?; see appliance order --help",
        ),
        *(
            ([word], f"appliance: {word}: no such command; see appliance --help")
            for word in ("qqqq", "stop", "topics", "delete", "rm", "bogus", "appliance", "order.move")
        ),
        (["--env-file", "x", "status"], "appliance: --env-file: options come after the command; see appliance --help"),
        (["--", "status"], "appliance: --: options come after the command; see appliance --help"),
    ],
)
def test_case_1497_a_mistyped_command_is_answered_with_the_nearest_that_is_like_it(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # stop and topics with rm-topic, delete with reset; an option before the command with a missing package.
    assert cli.main(words) == 2
    assert capsys.readouterr().err == f"{said}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "--jsn"], "appliance status: error: --jsn: no such option: did you mean --json?"),
        (["order", "alone", "--wiat=3"], "appliance order alone: error: --wiat: no such option: did you mean --wait?"),
        (["status", "orders"], "appliance status: error: unexpected: orders"),
        (["status", "--version"], "appliance status: error: --version: no such option"),
        (["status", "--bad"], "appliance status: error: --bad: no such option"),
        (["status", "--topi", "a"], "appliance status: error: --topi: no such option: did you mean --topic?"),
        (["doctor"], "appliance doctor: error: choose source, destination or order"),
        (["link"], "appliance link: error: choose delete"),
        (["completion"], "appliance completion: error: choose bash, zsh or fish"),
    ],
)
def test_a_mistyped_option_is_answered_with_the_nearest(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["appliance", ""], list(cli.COMMANDS)),
        (["bin/appliance", "stat"], ["status"]),
        (["appliance", "order", "m"], ["move"]),
        (["appliance", "status", "--w"], ["--watch"]),
        (["appliance", "verify", "--spark", ""], ["auto", "yes", "no"]),
        (["appliance", "doctor", ""], ["source", "destination", "order"]),
        (["appliance", "support-bundle", "--logs", "pyproj"], ["pyproject.toml"]),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_bash_completes_commands_options_and_their_values(line: list[str], words: list[str]) -> None:
    done = subprocess.run(
        ["bash", "-c", COMPLETED, "bash", *line], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert set(words) <= set(done.stdout.split())
    assert len(line[-1]) == 0 or set(words) == set(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["appliance", "status", "--env-file", "my"], ["my link"]),
        (["appliance", "order", "--env-file", "x", "move", "--t"], ["--to"]),
        (["appliance", "order", "--env-file", "=", "x", "move", "--t"], ["--to"]),
    ],
)
def test_case_1498_bash_completes_a_path_with_a_space_and_a_command_after_an_options_value(
    line: list[str], words: list[str], tmp_path: Path
) -> None:
    # "my link" gave two words; the value of --env-file counted as the command below order.
    (tmp_path / "my link").mkdir()
    (tmp_path / "appliance").symlink_to(CHECKOUT / "appliance")
    done = subprocess.run(["bash", "-c", COMPLETED_LINES, "bash", *line], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout.splitlines(), done.stderr) == (words, "")


@pytest.mark.parametrize(("shell", "finds"), [("bash", "complete -p kafka-cloud-replicator")])
def test_a_shell_finds_the_completion_of_the_second_program_by_its_name(shell: str, finds: str) -> None:
    line = f"source appliance/help/kafka-cloud-replicator.{shell} && {finds}"
    done = subprocess.run([shell, "-c", line], cwd=CHECKOUT, capture_output=True, text=True)
    assert "-F _appliance kafka-cloud-replicator" in done.stdout, done.stderr


@pytest.mark.parametrize("word", ["help", "version", "-V"])
def test_words_for_help_and_the_version_are_taken(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([word]) == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: appliance COMMAND" if word == "help" else f"kafka-cloud-replicator {VERSION}")
    assert cli.main(["help", "order", "move"]) == 0
    assert capsys.readouterr().out == of_line("order", "move").help


def test_the_page_of_man_names_every_command_with_every_option() -> None:
    page = (FOLDER / "appliance.1").read_text().replace("\\-", "-")
    for each in PAGES[1:]:
        section = page.split(f".SS {' '.join(each.words)}\n")[1].split("\n.S")[0]
        assert all(f"\\fB{name}\\fR" in section for option in each.options for name in option.names)
