"""The running replicator's own problems are in every view: cases 873 and 874."""

from dataclasses import replace

import pytest

from appliance.link.model.copy_states import CopyState
from appliance.link.model.problems import PERSISTS_MS, Fault
from appliance.status.model.document import document, health
from appliance.status.model.facts import Log
from appliance.status.model.messages import problems, remarks
from appliance.status.model.running import Running, running, with_running
from appliance.status.model.snapshot import LinkState
from tests.support.facts import NOW, first, snapshot, with_logs, with_position

OLD, NEW = NOW - PERSISTS_MS, NOW - 1000


@pytest.mark.parametrize(
    "subject", ["payments-0", "lane 0", "lane 1 admission", "spark", "discovery", "destination", "lanes-0"]
)
def test_case_873_what_is_tried_in_vain_for_a_minute_is_no_copying(subject: str) -> None:
    # One line of the log had it; the state was "copying", the exit code 0, and no alert could fire.
    status = with_running(snapshot(), Running({subject: Fault("no right", OLD)}))
    assert (status.state, status.state.well, health(status, NOW)[0]) == (LinkState.FAILING, False, False)
    assert problems(status) == [f"{subject}: failing since 2027-01-15T07:59:00.000Z: no right"]
    assert remarks(status) == []


@pytest.mark.parametrize("subject", ["payments-0", "heartbeats", "maps"])
def test_a_new_problem_and_one_beside_the_copying_are_remarks(subject: str) -> None:
    since = NEW if subject == "payments-0" else OLD
    status = with_running(snapshot(), Running({subject: Fault("no leader", since)}))
    assert (status.state, problems(status)) == (LinkState.COPIED, [])
    assert [subject in remark and "no leader" in remark for remark in remarks(status)] == [True]


def test_groups_and_recorded_gaps_are_shown_where_they_belong() -> None:
    status = with_running(
        snapshot(), Running({"groups behind": Fault("g", OLD), "payments-0 gap": Fault("1 to 2", OLD)})
    )
    assert (status.state, problems(status), remarks(status)) == (LinkState.COPIED, [], [])


def test_case_874_a_topic_whose_copy_cannot_be_made_is_stopped() -> None:
    known = Running({"topic payments": Fault("INVALID_REPLICATION_FACTOR", NEW)})
    status = with_running(snapshot(), known)
    assert (status.state, status.topics[0].stopped) == (LinkState.STOPPED, Fault("INVALID_REPLICATION_FACTOR", NEW))
    assert len(problems(status)) == 1
    paused = replace(snapshot(), topics=(replace(snapshot().topics[0], state=CopyState.PAUSED),))
    assert with_running(paused, known).topics[0].stopped is None


def test_a_stop_is_told_once() -> None:
    stopped = snapshot(destination=with_position(stopped="too large", stopped_at=OLD))
    status = with_running(stopped, Running({"payments-0": Fault("too large", OLD)}))
    assert problems(status) == ["payments-0: stopped since 2027-01-15T07:59:00.000Z: too large"]


def test_the_page_of_a_running_replicator_tells_the_same_to_other_processes() -> None:
    behind = with_logs({("payments", 0): Log(-1, 130, 130)})
    known = Running({"lane 0": Fault("no right", OLD)})
    page = document(with_running(snapshot(behind, previous=snapshot(now=OLD), now=NEW), known))
    assert running(page) == Running(known.problems, {("payments", 0): NEW})
    status = with_running(snapshot(behind), running(page))
    assert first(status).lag_seconds == 1
    assert status.state is LinkState.FAILING


def test_that_the_running_replicators_problems_are_unknown_is_said() -> None:
    status = with_running(snapshot(), Running(unknown="no replicator answers"))
    assert remarks(status) == ["problems of the running replicator: unknown: no replicator answers"]
    assert document(status)["problems_unknown"] == "no replicator answers"
