"""The replicators of a link in every view: the active one, those that stand by, and the last hand-over."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from appliance.link.model.problems import Fault
from appliance.link.model.standby import Assignment, Member, Members
from appliance.status.model.document import document, health
from appliance.status.model.facts import Observation
from appliance.status.model.messages import problems, remarks
from appliance.status.model.metrics import exposition
from appliance.status.model.running import Running, read_running, with_running
from appliance.status.model.snapshot import LinkState, Snapshot
from appliance.status.model.state_words import replicators
from appliance.status.model.table import rendered
from appliance.timestamps import utc
from tests.support.facts import ACTIVE, DESTINATION, HANDED_OVER, MEMBERS, NOW, SILENT, STANDBY, snapshot

LINE = (
    "active: grape-vm since 2027-01-15T07:59:00.000Z, standing by: grape-vm-2 since 2027-01-15T07:59:30.000Z; "
    "last hand-over from grape-vm-3: grape-vm-3 was stopped"
)
REFUSED = "describe group replicator-orange: GROUP_AUTHORIZATION_FAILED"


def seen(members: Members | None, problem: str = "", standbys: int = 0) -> Snapshot:
    """The snapshot of a group as it was seen."""
    found = replace(DESTINATION, members=Observation(members, problem))
    return snapshot(destination=found, REPLICATOR_STANDBYS=str(standbys))


def of(*members: Member, assignment: Assignment = HANDED_OVER) -> Members:
    return Members(members, assignment)


def test_one_line_names_the_active_one_the_standbys_and_the_last_hand_over_with_its_reason() -> None:
    assert replicators(MEMBERS) == LINE
    stream = io.StringIO()
    Console(file=stream, width=1000).print(rendered(snapshot()))
    assert LINE in stream.getvalue().splitlines()


def test_each_member_has_its_state_and_a_standby_that_was_active_stands_by_since_the_hand_over() -> None:
    before = replace(STANDBY, host="grape-vm-3", since=NOW - 900_000)
    leaving, starting = replace(STANDBY, run="l", leaving=True), replace(STANDBY, run="s", ready=False)
    members = of(ACTIVE, before, leaving, starting)
    assert [members.state(each) for each in members.members] == ["active", "standing by", "leaving", "not ready"]
    assert [members.since(each) for each in members.members] == [NOW - 60_000, NOW - 60_000, *2 * [NOW - 30_000]]


def test_members_that_may_not_be_seen_are_unknown_with_the_reason_and_not_absent() -> None:  # invariant N
    status = seen(None, REFUSED)
    line = replicators(status.replicators, status.replicators_unknown)
    assert line == f"unknown since {utc(NOW / 1000)} who copies: {REFUSED}"
    assert document(status)["replicators_unknown"] == {"since": utc(NOW / 1000), "reason": REFUSED}
    assert b"kafka_replicator_members{" not in exposition(status, fresh=True)
    assert (status.state, problems(status)) == (LinkState.COPIED, [])


@pytest.mark.parametrize(("destination", "reason"), [(SILENT, SILENT), (None, "members come or go")])
def test_what_was_never_seen_is_unknown(destination: str | None, reason: str) -> None:
    status = snapshot(destination=destination) if destination else seen(None)
    assert status.replicators_unknown == Fault(reason, NOW)


def test_the_last_seen_members_are_shown_as_such_while_the_destination_does_not_answer() -> None:
    status = snapshot(destination=SILENT)
    assert replicators(status.replicators, status.replicators_unknown).endswith(f"{SILENT}; last seen {LINE}")


def test_without_any_member_nobody_is_said_to_copy() -> None:
    assert replicators(Members()) == "no replicator is a member of the link's group"
    assert document(seen(Members()))["replicators"] == {"members": [], "activations": 0, "last_hand_over": None}


@pytest.mark.parametrize(
    ("members", "problem", "standbys", "missing"),
    [
        (MEMBERS, "", 0, False),
        (MEMBERS, "", 1, False),
        (MEMBERS, "", 2, True),
        (of(ACTIVE, replace(STANDBY, ready=False)), "", 1, True),
        (of(ACTIVE, replace(STANDBY, leaving=True)), "", 1, True),
        (MEMBERS, REFUSED, 1, True),
        (None, REFUSED, 0, False),
    ],
)
def test_a_configured_standby_that_is_missing_or_unknown_is_a_problem_that_does_not_fail_the_link(
    members: Members | None, problem: str, standbys: int, missing: bool
) -> None:
    status = seen(members, problem, standbys)
    assert (status.state, health(status, NOW)[0]) == (LinkState.COPIED, True)
    assert [each.startswith(f"standby: REPLICATOR_STANDBYS={standbys}: ") for each in problems(status)] == [
        True
    ] * missing
    assert health(status, NOW)[1]["troubles"] == problems(status)


def test_the_metrics_count_the_members_by_state_and_name_the_active_one() -> None:
    text = exposition(seen(MEMBERS, standbys=2), fresh=True).decode()
    for sample in (
        'kafka_replicator_members{state="active"} 1.0',
        'kafka_replicator_members{state="standing by"} 1.0',
        'kafka_replicator_members{state="not ready"} 0.0',
        f'kafka_replicator_active_since_seconds{{host="grape-vm"}} {(NOW - 60_000) / 1000!r}',
        "kafka_replicator_activations_total 3.0",
        "kafka_replicator_standbys_wanted 2.0",
    ):
        assert sample.replace("1799999940.0", "1.79999994e+09") in text


def test_a_replicator_that_stands_by_is_healthy_and_says_so_though_the_link_fails() -> None:
    failing = with_running(snapshot(), Running({"discovery": Fault("no right", NOW - 90_000)}))
    assert (failing.state, health(failing, NOW)[0]) == (LinkState.FAILING, False)
    well, answer = health(replace(failing, stands_by=True), NOW)
    assert (well, answer["stands_by"], answer["state"]) == (True, True, LinkState.FAILING)
    blind = with_running(snapshot(destination=SILENT), Running(stands_by=True))
    assert health(blind, NOW)[0] is False


def test_a_standby_does_not_say_that_the_link_has_no_problem() -> None:  # invariant N
    status = with_running(snapshot(), Running({"standby": Fault("no answer", NOW)}, stands_by=True))
    assert document(status)["stands_by"] is True
    assert [each.split(":")[0] for each in remarks(status)] == ["problems of the running replicator", "standby"]
    told = read_running(document(status))
    assert told.stands_by
    assert "stands by" in with_running(snapshot(), told).problems_unknown
