"""What commands, pages and metrics show of names and texts of brokers and clients: text, and nothing that acts."""

import argparse
import asyncio
import io
import json
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console, RenderableType

from appliance import cli, command_line
from appliance.commands.acls import as_lines
from appliance.console.commands import Commands
from appliance.console.model.tables import Query
from appliance.console.pages import LinkPages
from appliance.console.watch import LinkWatch
from appliance.doctor.diagnosis import Diagnosis
from appliance.doctor.step import Result, failed
from appliance.driver.acl_follower import AclDiff
from appliance.errors import ApplianceError, BrokerRefused, SettingsError
from appliance.kafka.client.acls import AccessControlEntry, AclOperation, AclPermission
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.kafka.protocol.metadata import Partition, Topic
from appliance.kafka.records.records import Record, body_of
from appliance.link.model.agreement import CopyLog
from appliance.link.model.copied_acls import AclChanges
from appliance.logs.model.span import CopyState
from appliance.output import printable, say, say_error
from appliance.program import quoted
from appliance.runtime.command import Command
from appliance.settings.values import Side
from appliance.sql.model import dry_run
from appliance.status.model.document import document
from appliance.status.model.metrics import exposition
from appliance.status.model.running import Running
from appliance.status.model.snapshot import Snapshot
from appliance.status.model.table import rendered
from appliance.tables import cell, show, table
from appliance.verify.model.report import PartitionResult, VerificationReport
from tests.support.facts import DESTINATION, ENDS_AT_100, NOW, SOURCE, group, metadata, snapshot
from tests.support.facts import settings as link_settings

HOSTILE = ["a[/b]", "[bold]x[/]", ":smile:", "a\x1b[2Jb", "a\nfake: copied", "x\u202ey\u2066z", "\u2028", "\x7f\x9b"]
names = st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=30))


def is_text(shown: str, keep: str = "\n") -> bool:
    """True if a terminal shows all of it as it is."""
    return all(letter.isprintable() or letter in keep for letter in shown)


def drawn(*parts: RenderableType) -> str:
    stream = io.StringIO()
    Console(file=stream, width=4000).print(*parts)
    return stream.getvalue()


def named(name: str) -> Snapshot:
    """A link whose topic, group, transaction and reasons have that name."""
    partition, topic = Partition(name, 0), Topic(name, uuid.UUID(int=1), False, (1,))
    logs, held = ENDS_AT_100["payments", 0], replace(DESTINATION.positions["payments", 0], stopped=name, stopped_at=NOW)
    source = replace(SOURCE, metadata=metadata(topic), logs={partition: logs})
    source = replace(source, holding={partition: OpenTransaction(100, 7, name, NOW)})
    log = CopyLog(Partition(f"{name}.copy", 0), uuid.UUID(int=2))
    copy = Topic(f"{name}.copy", uuid.UUID(int=2), False, (1,))
    there = replace(DESTINATION, metadata=metadata(copy), positions={partition: held}, copies={partition: log})
    taken = snapshot(source, there, REPLICA_TOPICS_SOURCE_REGEX="(?s).*", REPLICA_GROUPS_REGEX=".*")
    return replace(taken, groups=(group(name, None, None, refused=name),))


def pages(taken: Snapshot, name: str) -> str:
    async def collect() -> Snapshot:
        return taken

    async def ask_replicator() -> Running:
        return Running()

    async def ask_tunnel() -> str:
        return name

    watch = LinkWatch(collect, ask_replicator, ask_tunnel)
    watch.add(taken)
    made = LinkPages(link_settings(REPLICA_GROUPS_REGEX=".*"), watch, Commands(Path("setenv.sh")))
    topic = made.topic(name, Query(), "hour")
    assert topic is not None
    return "".join([made.main("day"), made.topics(Query()), topic, made.groups(Query()), made.events()])


@settings(deadline=None)
@given(names)
def test_a_name_is_text_in_every_view(name: str) -> None:
    taken = named(name)
    assert printable(name) in drawn(rendered(taken))
    assert is_text(drawn(rendered(taken)))
    assert json.loads(json.dumps(document(taken)))["topics"][0]["topic"] == name
    assert is_text(json.dumps(document(taken), indent=2))
    assert is_text(pages(taken, name), "\n\t")
    exposed = exposition(taken, fresh=True).decode()
    assert is_text(exposed)
    labels = [s.labels for family in text_string_to_metric_families(exposed) for s in family.samples]
    assert {each["topic"] for each in labels if "topic" in each} == {printable(name)}


@settings(deadline=None)
@given(names)
def test_a_name_is_text_in_every_table_and_line(name: str) -> None:
    result = PartitionResult(name, name, 0, CopyState.NOT_COMPARED, name)
    report = VerificationReport(name, name, "", "", [result])
    assert is_text(drawn(report.as_table(), *map(cell, report.remarks())))
    diagnosis = Diagnosis(Side.SOURCE, "", [Result(name, failed(name, name), 0.0)])
    assert is_text(drawn(diagnosis.as_table(), *diagnosis.remarks()))
    record = Record(0, 0, body_of(name.encode("utf-8", "replace"), None, ()))
    tried = dry_run.Tried(Partition(name, 0), record, None, name)
    assert is_text(drawn(dry_run.as_table([tried])))
    entry = AccessControlEntry(AclPermission.ALLOW, name, name, AclOperation.READ)
    look = AclDiff({}, AclChanges({name: frozenset([entry])}, {}))
    assert is_text(drawn(*map(cell, as_lines(look, follows=True))))
    assert is_text(drawn(table([name], [[name]], title=name)))


@pytest.mark.parametrize("name", HOSTILE)
def test_case_1000_a_command_says_an_error_in_one_line_that_a_terminal_shows_as_it_is(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A topic's name began a line of its own, and a broker's text moved the cursor.
    async def refuse(_: argparse.Namespace, __: asyncio.Event) -> int:
        raise BrokerRefused(f"read {name}: {name}", "X")

    monkeypatch.setattr(command_line, "command", lambda _: Command("", refuse))
    assert cli.main(["status"]) == ApplianceError.exit_code
    said = capsys.readouterr().err
    assert said == f"appliance status: read {printable(name)}: {printable(name)}\n"


def test_case_1007_the_traceback_of_an_unexpected_error_is_text_too() -> None:
    code = "from appliance.output import *; say_tracebacks(); raise ValueError('a\\x1b[2J')"
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert ended.stderr.endswith("ValueError: a\\x1b[2J\n\n")


def test_case_1001_a_topic_with_markup_in_its_name_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    # `appliance status` ended with rich's MarkupError.
    show(rendered(named("a[/b]")))
    say("a[/b]")
    assert "│ a[/b] " in capsys.readouterr().out


@given(names)
def test_a_printed_name_never_acts(name: str) -> None:
    assert is_text(printable(name), "")
    if name.isprintable():
        assert printable(name) == name


@settings(max_examples=20, deadline=None)
@given(st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)))
def test_a_word_of_a_printed_command_line_is_the_name_for_a_shell(name: str) -> None:
    word = quoted(name)
    assert is_text(word, "")
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    told = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True, env=env)
    assert told.stdout.decode() == name


def test_an_error_of_several_faults_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    say_error("appliance status", SettingsError(["A: missing", "\tB\x1b: missing"]))
    assert capsys.readouterr().err == "appliance status: A: missing\nappliance status: \tB\\x1b: missing\n"


def test_case_1030_faults_of_the_settings_are_all_told() -> None:
    faults = [f"VARIABLE_{number}: expected another value" for number in range(1_000)]
    assert str(SettingsError(faults)).split("\n") == faults
