"""Starts, resets, recreated copies and truncated positions that were said or judged wrongly: cases 1175 to 1185."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from appliance.commands.deletion import delete_link
from appliance.commands.model.position_change import Place
from appliance.commands.pause import set_paused
from appliance.commands.reset import reset
from appliance.link import handle
from appliance.link.model.copy_states import CopyEvent
from appliance.logs.model.span import CopyState as VerifiedState
from appliance.program import PROGRAM
from appliance.settings.values import OnGap, Settings, Start
from appliance.verify.model.report import PartitionResult
from appliance.verify.verification import Verification
from tests.simulation import scenario
from tests.simulation.process import Replicator, settings
from tests.simulation.scenario import copied, run_on
from tests.simulation.stopping import Stopped
from tests.simulation.test_command_cases import states_of


@pytest.mark.parametrize("written_on", [False, True])
def test_case_1175_states_that_the_positions_topic_has_lost_are_not_shown_by_a_link_that_was_open_before(
    written_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A log that was cut is read from its start again, but what only its lost end had said stayed. One that was written
    # on meanwhile was not even read again.
    link = Stopped(monkeypatch)
    opened: Any = handle.Link.of(link.settings, link.at_source, link.at_destination)  # type: ignore[arg-type]
    log = link.positions.logs[0]
    link.process.kill()
    link.go_on(1)
    kept = log.end
    run_on(link, partial(set_paused, event=CopyEvent.PAUSE))
    link.go_on(1)
    assert states_of(link, opened) == {"": "paused"}
    log.truncate(kept)
    link.destination.lead(log, log.leader)
    expected = {}
    for event in (CopyEvent.PAUSE, CopyEvent.RESUME, CopyEvent.PAUSE) if written_on else ():
        run_on(link, partial(set_paused, event=event), "aaa")
        link.go_on(1)
        expected = {"aaa": "paused"}
    fresh: Any = handle.Link.of(link.settings, link.at_source, link.at_destination)  # type: ignore[arg-type]
    assert states_of(link, fresh) == expected
    assert states_of(link, opened) == expected


def late(known: Settings) -> Settings:
    return replace(known, topics=replace(known.topics, start=Start.LATEST))


def test_case_1176_a_link_that_is_made_anew_begins_where_its_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    # A link that was deleted, with its copies, and is made anew by --adopt-positions copied all from the first record.
    monkeypatch.setattr(scenario, "settings", lambda *args: late(settings(*args)))
    link = Stopped(monkeypatch, starts=False)
    link.destination.delete(link.positions.name)
    link.process.start(None)
    link.go_on(4)
    assert copied(link, "aaa.copy") == 0
    link.process.kill()
    run_on(link, partial(delete_link, delete_copies=True))
    assert link.type(f"{PROGRAM} resume --adopt-positions") == 0
    link.process = Replicator(3, link.source, link.destination, link.fates, link.settings)
    link.process.start(None)
    link.go_on(10)
    assert copied(link, "aaa.copy") == 0


def test_case_1179_what_a_reset_has_asked_for_is_not_excused_by_the_start_of_the_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # verify judged a reset to the first record by the place where the link was made to begin: an empty copy was "equal
    # in part, REPLICA_TOPICS_START did not ask for them", with exit code 0.
    monkeypatch.setattr(scenario, "settings", lambda *args: late(settings(*args)))
    link = Stopped(monkeypatch, starts=False)
    link.destination.delete(link.positions.name)
    link.process.start(None)
    link.go_on(4)
    link.process.kill()
    run_on(link, partial(reset, place=Place.parse("--to", "earliest"), number=None), "aaa")
    opened: Any = handle.Link.of(link.settings, link.at_source, link.at_destination)  # type: ignore[arg-type]
    assert link.position().next_offset == 0
    run = Verification(opened)
    plan = link.run(run.plan())
    found: list[PartitionResult] = []
    link.run(run.checker({}, None).check(plan.jobs, 0.0, lambda _, result: found.append(result), lambda *_: None))
    assert [each.state for each in found] == [VerifiedState.BEHIND]


def test_case_1184_a_recreated_copy_begins_again_where_the_link_was_made_to_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With ON_GAP=record it began at the source's first record, though REPLICA_TOPICS_START had left these out.
    def recording(_: OnGap, *args: Any) -> Settings:
        return late(settings("orange", OnGap.RECORD, *args[1:]))

    monkeypatch.setattr(scenario, "settings", recording)
    link = Stopped(monkeypatch, starts=False)
    link.destination.delete(link.positions.name)
    link.process.start(None)
    link.go_on(4)
    link.write_singly(2)
    link.source.changed(link.log)
    link.go_on(2)
    assert copied(link, "aaa.copy") == 2
    link.destination.delete("aaa.copy")
    link.go_on(20)
    assert copied(link, "aaa.copy") == 2


def test_case_1185_of_a_recreated_copy_no_source_offset_is_said_to_be_never_copied_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With ON_GAP=record: "offset 10 and what followed it will never be copied", in the log and in the gap ledger, of
    # the same source topic, whose records are all copied into the new copy. The operator's way says it right.
    monkeypatch.setattr(scenario, "settings", lambda _, *args: settings("orange", OnGap.RECORD, *args[1:]))
    link = Stopped(monkeypatch, starts=False)
    link.destination.delete(link.positions.name)
    link.process.start(None)
    link.go_on(4)
    link.destination.delete("aaa.copy")
    link.go_on(20)
    link.write_singly(5)
    link.source.changed(link.log)
    link.go_on(5)
    assert copied(link, "aaa.copy") == 15
    told = link.faults()["aaa-0 gap"]
    assert "will never be copied" not in told
    assert (10, -1) not in link.gaps
