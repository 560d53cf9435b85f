from dataclasses import replace

from appliance.console.model.events import EVENTS_MAX, Event, changes, merged, written_down
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import OPERATOR, Gap, Owner
from appliance.link.model.copy_states import CopyState, StateRecord
from tests.support.facts import DESTINATION, NOW, RUN, SILENT, SOURCE_ID, snapshot, with_position

PAUSED = StateRecord("payments", CopyState.PAUSED, NOW - 10, "ann@vm", "maintenance")


def test_who_paused_when_and_why_is_known_from_the_first_snapshot_on() -> None:
    taken = snapshot(destination=replace(DESTINATION, states={"payments": PAUSED}))
    assert Event(NOW - 10, "payments", "paused: maintenance", "ann@vm") in list(written_down(taken))


def test_the_run_that_took_the_lanes_is_one_event() -> None:
    (event,) = written_down(snapshot())
    assert event == Event(RUN.since, "lanes 0, 1, 2", "taken by run 1a2b3c, which fences every run before", "grape-vm")


def test_case_1476_a_command_that_wrote_in_the_lanes_is_no_restart() -> None:
    command = replace(DESTINATION, owners=(Owner(OPERATOR, "", "grape-vm-2", NOW),) * 3)
    assert [event for event in written_down(snapshot(destination=command)) if event.mark] == []


def test_stops_and_gaps_have_their_own_times() -> None:
    gap = Gap(Partition("payments", 1), SOURCE_ID, 5, 9, "retention", NOW - 30)
    stopped = replace(with_position(stopped="a gap", stopped_at=NOW - 20), gaps={Partition("payments", 1): (gap,)})
    found = list(written_down(snapshot(destination=stopped)))
    assert Event(NOW - 20, "payments-0", "stopped: a gap") in found
    assert Event(NOW - 30, "payments-1", "gap from offset 5 on: retention") in found


def test_a_silence_and_its_end_are_events() -> None:
    before = snapshot()
    silent = snapshot(SILENT, previous=before, now=NOW + 5)
    (silence,) = changes(before, silent)
    assert (silence.at, silence.subject) == (NOW + 5, "source cluster orange")
    assert [event.what for event in changes(silent, snapshot(previous=silent, now=NOW + 9))] == ["answers again"]


def test_a_resumed_partition_is_an_event() -> None:
    stopped = snapshot(destination=with_position(stopped="a gap", stopped_at=1))
    found = list(changes(stopped, snapshot(previous=stopped)))
    assert Event(NOW, "payments-0", "no longer stopped") in found


def test_events_are_bounded_and_the_newest_come_first() -> None:
    events = merged([], (Event(at, "", "") for at in range(EVENTS_MAX + 9)))
    assert merged(events, events) == events
    assert (len(events), events[0].at, events[-1].at) == (EVENTS_MAX, EVENTS_MAX + 8, 9)
