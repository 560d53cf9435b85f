"""One rule for the exit codes of all commands, and one for the options that choose topics."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance import cli
from appliance.command_line import command, parser
from appliance.command_table import COMMANDS
from appliance.errors import ApplianceError, Interrupted, NothingToDo, SettingsError, ToolMissing, UnknownTopic
from appliance.link.model.topic_choice import among, takes
from deploy.manual.pages import pages

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"
OTHERS = {NothingToDo: 0, SettingsError: 2, UnknownTopic: 2, ToolMissing: 2, Interrupted: 130}
NEEDED = {
    "acls": [],
    "adopt": ["mm2"],
    "configs": [],
    "failback": [],
    "failover": [],
    "offsets": ["build"],
    "pause": [],
    "promote": [],
    "reset": ["--to=latest"],
    "resume": [],
    "rm-topic": [],
    "status": [],
    "transform": ["--dry-run"],
    "verify": [],
    "order rebuild": [],
}
"""The commands on chosen topics, with the arguments that each needs beside."""
WITHOUT_LINK = {"import", "completion", "support-bundle", "doctor"}
"""They read no settings of a link, or work where these have faults: the doctor's first step names them."""
LINES = {
    **{name: [] for name in COMMANDS},
    **NEEDED,
    "audit": ["--last=1h"],
    "spark": ["master"],
    "link": ["delete"],
    "order": ["status"],
    "doctor": ["source"],
    "import": ["mm2", "file"],
    "completion": ["bash"],
}


def kinds(above: type[ApplianceError] = ApplianceError) -> Iterator[type[ApplianceError]]:
    yield above
    for each in above.__subclasses__():
        yield from kinds(each)


def test_every_error_has_an_exit_code_of_the_table() -> None:
    errors = {each for each in kinds() if each.__module__ == "appliance.errors"}
    assert len(errors) > 30
    assert {each: each.exit_code for each in errors} == {each: OTHERS.get(each, 1) for each in errors}


def test_the_document_and_the_help_have_every_exit_code() -> None:
    whole = next(iter(pages())).help
    for code in {*OTHERS.values(), 1}:
        assert f"| {code} |" in DOCUMENT.read_text()
        assert f"{code} " in " ".join(whole.split("Exit codes: ")[1].split())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_mistyped_option_of_any_command_is_bad_usage(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([name, *LINES[name], "--no-such-option"])
    assert (ended.value.code, "--no-such-option" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT_LINK])
def test_faults_of_the_settings_are_told_as_such_by_any_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setenv.sh").write_text("SOURCE_ROUTE=nowhere\n")
    (tmp_path / "setenv.sh").chmod(0o600)
    assert cli.main([name, *LINES[name]]) == 2
    assert capsys.readouterr().err.startswith(f"appliance {name}: ")


def parsed(name: str, *options: str) -> argparse.Namespace:
    words = [*name.split(), *NEEDED[name], *options]
    return parser(words[0], command(words[0])).parse_args(words)


def test_the_commands_on_chosen_topics_are_those_that_have_the_option() -> None:
    having = {" ".join(page.words) for page in pages() for each in page.options if "--topic" in each.names}
    assert having == {*NEEDED}


@pytest.mark.parametrize("name", NEEDED)
def test_an_expression_matches_whole_names_and_a_name_itself_whichever_command_takes_it(name: str) -> None:
    assert parsed(name).topic == ""
    choice = parsed(name, "--topic=a.*", "--topic-name=b.c").topic
    assert among(choice, ["a", "ab", "ba", "b.c", "b-c"]) == ["a", "ab", "b.c"]
    assert not takes(choice, "b-c")


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("option", ["--topic", "--topic-name"])
def test_the_empty_text_of_a_scripts_unset_variable_is_refused_by_every_command(name: str, option: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(name, f"{option}=")
    assert ended.value.code == 2


def test_each_expression_that_takes_no_topic_is_an_unknown_topic() -> None:
    with pytest.raises(UnknownTopic, match="--topic typo: no topic of this link is called so"):
        among("a.*\ntypo", ["a"])
    with pytest.raises(SettingsError, match=r"--topic \(: no regular expression"):
        among("(", ["a"])
