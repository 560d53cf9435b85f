"""Commands that said less, or did more, than they were asked: cases 1172 to 1185."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from appliance import command_line
from appliance.commands import acls, configs, offsets, offsets_build
from appliance.commands.model.position_change import Place
from appliance.commands.reset import reset
from appliance.engine.model import map_growth
from appliance.errors import LinkRefused, SettingsError
from appliance.link import handle
from appliance.program import PROGRAM
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.variables import GONE
from tests.simulation.operator_commands import simulated
from tests.simulation.process import Replicator
from tests.simulation.scenario import Link, run_on
from tests.simulation.stopping import Stopped
from tests.simulation.test_killed_commands import Killable
from tests.support.settings import REQUIRED

Pairs = tuple[tuple[str, str], ...]


def test_case_1172_a_dry_run_of_adopt_positions_foretells_that_the_run_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    # It printed the fault and ended with 0, as if the run would accept the topic; the run refuses and ends with 1.
    link = Stopped(monkeypatch)
    link.process.kill()
    link.positions.configs["cleanup.policy"] = "delete"
    with pytest.raises(LinkRefused, match="policy=delete"):
        link.type(f"{PROGRAM} resume --adopt-positions")
    with pytest.raises(LinkRefused, match="policy=delete"):
        link.type(f"{PROGRAM} resume --adopt-positions --dry-run")


def states_of(link: Link, opened: handle.Link) -> dict[str, str]:
    return {topic: str(record.state) for topic, record in link.run(opened.lanes.read()).items()}


def test_case_1174_a_dry_run_of_offsets_build_has_the_exit_code_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    # The dry run ends with 1 where the run builds all and ends with 0.
    monkeypatch.setattr(map_growth, "TAIL_BYTES", -1)
    link = Stopped(monkeypatch, starts=False)
    link.destination.delete(link.positions.name)
    link.process.start(None)
    link.go_on(4)
    link.process.kill()
    link.destination.delete(link.naming.offsets_topic)
    link.destination.make(link.naming.offsets_topic, 1, {"cleanup.policy": "compact"})
    with simulated(link.source, link.destination, link.fates):
        foretold = link.run(offsets_build.build(link.settings, lambda _: True, print, only_plan=True))
        left = link.run(offsets_build.build(link.settings, lambda _: True, print))
    assert left == 0
    assert foretold == 0


@pytest.mark.parametrize("name", ["pause", "failover", "promote", "failback", "reset"])
@pytest.mark.parametrize("option", ["--topic", "--topic-name"])
def test_case_1177_an_empty_name_of_a_topic_is_not_the_whole_link(name: str, option: str) -> None:
    # `appliance failover --yes --topic-name "$TOPIC"` with an unset variable failed the whole link over.
    words = [name, *(["--to", "earliest"] if name == "reset" else [])]
    parser = command_line.parser(name, command_line.command(name))
    assert parser.parse_args(words).topic == ""
    with pytest.raises(SystemExit):
        parser.parse_args([*words, option, ""])


@pytest.mark.parametrize("name", GONE)
def test_case_1178_a_variable_that_is_gone_is_refused_in_the_environment_too(name: str, tmp_path: Path) -> None:
    # A container that has all settings in its environment was not told that one of them does nothing any more.
    empty = tmp_path / "setenv.sh"
    empty.write_text("")
    empty.chmod(0o600)
    with pytest.raises(SettingsError, match=f"{name}: gone: "):
        read_settings(empty, Role.REPLICATOR, {**REQUIRED, name: "x"})


TYPOS = {
    "configs": (configs._configs, ["configs", "--topic", "typo"]),
    "acls": (acls._acls, ["acls", "--topic", "typo"]),
    "offsets build": (offsets._offsets, ["offsets", "build", "--topic", "typo"]),
}


@pytest.mark.parametrize("name", TYPOS)
def test_case_1182_a_command_says_nothing_of_copies_when_no_topic_has_the_name(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # "every copy has its source topic's settings", "every copy has the ACLs for its readers", or nothing and exit code
    # 0, though no copy was looked at; pause, reset, verify and the others refuse such a name.
    link = Stopped(monkeypatch, starts=False)
    link.destination.delete(link.positions.name)
    link.process.start(None)
    link.go_on(4)
    run, words = TYPOS[name]
    monkeypatch.setattr("appliance.driver.acl_follower.topic_acls", no_acls)
    parsed = command_line.parser(words[0], command_line.command(words[0])).parse_args(words)
    with simulated(link.source, link.destination, link.fates):
        try:
            code = link.run(run(link.settings, parsed, asyncio.Event()))
        except SettingsError:
            return
    raise AssertionError((code, capsys.readouterr().out))


async def no_acls(_: object) -> list[object]:
    return []


def test_case_1183_a_reset_of_all_leaves_out_a_killed_reset_whose_copy_is_gone() -> None:
    # The killed reset was met, and refused, only after the other topics had been made "resetting": nothing of them was
    # copied any more. The dry run had refused nothing.
    link = Killable()
    link.process.kill()
    link.write(link.source.make("bbb", 1).logs[0], 5)
    link.process = Replicator(2, link.source, link.destination, link.fates, link.settings)
    link.process.start(None)
    link.go_on(4)
    link.process.kill()
    link.ended_at(partial(reset, place=Place.parse("--to", "4"), number=None), 8, False, "aaa")
    link.go_on(10)
    assert states_now(link) == {"aaa": "resetting"}
    link.destination.delete("aaa.copy")
    for dry_run in (True, False):
        run_on(link, partial(reset, place=Place.parse("--to", "earliest"), number=None), dry_run=dry_run)
    link.go_on(4)
    assert {topic: state for topic, state in states_now(link).items() if state != "active"} == {"aaa": "resetting"}


def states_now(link: Link) -> dict[str, str]:
    opened: Any = handle.Link.of(link.settings, link.at_source, link.at_destination)  # type: ignore[arg-type]
    return states_of(link, opened)
