"""The running replicator's own problems are in every view: cases 873 and 874."""

from dataclasses import replace

import pytest

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import CopyState
from appliance.link.model.problems import PERSISTS_MS, Fault
from appliance.status.model.document import document, health
from appliance.status.model.facts import Log
from appliance.status.model.messages import problems, remarks
from appliance.status.model.metrics import exposition
from appliance.status.model.running import Running, read_running, with_running
from appliance.status.model.snapshot import LinkState, Snapshot
from tests.support.facts import DESTINATION, NOW, first, snapshot, with_logs, with_position

OLD, NEW = NOW - PERSISTS_MS, NOW - 1000
NOT_COPIED = replace(DESTINATION, positions={}, copies={})


BEHIND = with_logs({Partition("payments", 0): Log(-1, 130, 130)})


def after(minutes: float, committed_at: int | None = NOW - 1000, **changed: str) -> Snapshot:
    """A snapshot so long after the source had more, of a position that was committed then."""
    destination = replace(DESTINATION, committed_at={Partition("payments", 0): committed_at} if committed_at else {})
    earlier = snapshot(destination=destination, previous=snapshot(now=NOW - 3000), **changed)
    seen = snapshot(BEHIND, destination, earlier, **changed)
    return snapshot(BEHIND, destination, seen, NOW + int(minutes * 60_000), **changed)


@pytest.mark.parametrize("subject", ["payments-0", "lane 0", "lane 0 admission", "executors", "source broker 3"])
def test_case_873_what_is_not_copied_for_two_minutes_is_failing_and_no_copying(subject: str) -> None:
    # One line of the log had it; the state was "copying", the exit code 0, and no alert could fire.
    status = with_running(after(3), Running({subject: Fault("no right", OLD)}))
    assert (status.state, status.state.well, health(status, status.at)[0]) == (LinkState.FAILING, False, False)
    (problem,) = problems(status)
    told = f"payments-0: failing since 2027-01-15T08:00:00.000Z: nothing is copied of 30 offsets: {subject}: no right"
    assert problem == told
    assert b'kafka_replicator_stuck{partition="0",topic="payments"} 1.0' in exposition(status, fresh=True)


@pytest.mark.parametrize("subject", ["ACLs", "configs of payments", "heartbeats", "names of lanes", "registry a.copy"])
def test_work_beside_the_copying_is_not_given_as_the_reason_that_nothing_is_copied(subject: str) -> None:
    (problem,) = problems(with_running(after(3), Running({subject: Fault("no right", OLD)})))
    assert problem.endswith("nothing is copied of 30 offsets: for no known reason")


@pytest.mark.parametrize("subject", ["heartbeats-0", "registry-0", "ACLs-eu-1"])
def test_case_1150_a_partition_whose_topic_begins_as_work_beside_the_copying_is_a_reason(subject: str) -> None:
    # Subjects were compared by their beginnings alone: "for no known reason".
    (problem,) = problems(with_running(after(3), Running({subject: Fault("no right", OLD)})))
    assert problem.endswith(f"nothing is copied of 30 offsets: {subject}: no right")


def test_a_short_wait_is_no_failure() -> None:
    assert after(1.9).state is LinkState.COPYING
    assert after(3, NOW + 170_000).state is LinkState.COPYING
    assert after(3).state is LinkState.FAILING


def beside(others: int, minutes: float, bound: str) -> Snapshot:
    """A snapshot within a bound, so long after anything of payments-0 was copied; others were copied just now."""
    status = after(minutes, MAX_BYTES_PER_SECOND=bound)
    (topic,) = status.topics
    stuck, copied = topic.partitions
    copied = replace(copied, committed_at=status.at - 1000)
    parts = (stuck, *(replace(copied, partition=number) for number in range(1, others + 1)))
    return replace(status, topics=(replace(topic, partitions=parts),))


@pytest.mark.parametrize("others", [1, 10])
def test_case_890_within_a_bound_a_partition_of_which_nothing_is_copied_is_told_though_others_are(others: int) -> None:
    # One partition that was copied within two minutes hid every other one, for ever.
    status = beside(others, 3, "5000000")
    assert (status.state, [each.name for each in status.stuck]) == (LinkState.FAILING, ["payments-0"])


def test_within_a_bound_a_partition_waits_for_a_turn_of_each_that_is_copied() -> None:
    # Each turn takes a second of each of four leaders, or 2 MiB of the bound where that is longer.
    assert beside(100, 8, "5000000").state is LinkState.COPYING
    assert beside(100, 9, "5000000").state is LinkState.FAILING
    assert beside(1, 29, "10000").state is LinkState.COPYING
    assert beside(1, 30, "10000").state is LinkState.FAILING
    idle = replace(beside(100, 8, "5000000"), max_bytes_per_second=0)
    assert idle.state is LinkState.FAILING


def test_a_partition_that_waits_its_turn_does_so_too_where_its_topic_alone_is_shown() -> None:
    status = beside(100, 8, "5000000")
    (topic,) = status.topics
    waiting, *others = topic.partitions
    apart = (replace(topic, partitions=(waiting,)), replace(topic, name="other", partitions=tuple(others)))
    renamed = replace(apart[1], partitions=tuple(replace(each, topic="other") for each in others))
    assert replace(status, topics=(apart[0], renamed)).only(["payments"]).state is LinkState.COPYING


def test_case_879_a_replicator_that_restarts_again_and_again_copies_nothing_and_is_failing() -> None:
    # Each of its processes ended within a minute, before it knew of any lasting problem.
    destination = replace(DESTINATION, committed_at={Partition("payments", 0): NOW - 3_600_000})
    first_look = snapshot(BEHIND, destination)
    assert first_look.state is LinkState.COPYING
    assert snapshot(BEHIND, destination, first_look, NOW + 31_000).state is LinkState.FAILING


def test_case_896_a_clock_that_is_set_back_hides_no_partition_that_was_never_copied_and_no_lasting_problem() -> None:
    # Ages were negative until the clock had caught up: an hour long, nothing was failing.
    never = replace(DESTINATION, positions={}, copies={}, committed_at={})
    behind = with_logs({Partition("payments", 0): Log(0, 130, 130)})
    back = snapshot(behind, never, snapshot(behind, never), NOW - 3_600_000)
    assert snapshot(behind, never, back, NOW - 3_600_000 + 121_000).state is LinkState.FAILING
    known = Running({"discovery": Fault("no right", NOW)})
    assert with_running(snapshot(now=NOW - 3_600_000), known).state is LinkState.FAILING


@pytest.mark.parametrize("subject", ["payments-0", "lane 0", "heartbeats", "source broker 3"])
def test_a_problem_of_what_is_copied_is_a_remark(subject: str) -> None:
    status = with_running(snapshot(), Running({subject: Fault("no leader", OLD)}))
    assert (status.state, problems(status)) == (LinkState.COPIED, [])
    assert [subject in remark and "no leader" in remark for remark in remarks(status)] == [True]


def test_a_look_for_topics_that_fails_for_a_minute_is_failing_though_all_that_is_known_is_copied() -> None:
    status = with_running(snapshot(), Running({"discovery": Fault("no right", OLD)}))
    assert (status.state, len(problems(status))) == (LinkState.FAILING, 1)
    assert with_running(snapshot(), Running({"discovery": Fault("no right", NEW)})).state is LinkState.COPIED


def test_case_880_the_metrics_look_for_stuck_partitions_once_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each partition looked at all: 1.1 s for 1,000 partitions, and a hundred times as long for 10,000.
    looks, find = list[int](), vars(Snapshot)["stuck"].fget
    monkeypatch.setattr(Snapshot, "stuck", property(lambda self: (looks.append(1), find(self))[1]))
    status = after(3)
    exposition(status, fresh=True)
    few = len(looks)
    topic = status.topics[0]
    many = tuple(replace(each, partition=number) for number in range(100) for each in topic.partitions)
    exposition(replace(status, topics=(replace(topic, partitions=many),)), fresh=True)
    assert len(looks) == 2 * few


def test_beside_a_stopped_partition_another_that_is_stuck_is_told() -> None:
    stopped = with_position(1, stopped="too large", stopped_at=NOW)
    status = snapshot(BEHIND, replace(stopped, committed_at={Partition("payments", 0): NOW}), after(1), NOW + 180_000)
    assert (status.state, [each.partition for each in status.stuck]) == (LinkState.STOPPED, [0])
    assert len(problems(status)) == 2


def test_groups_and_recorded_gaps_are_shown_where_they_belong() -> None:
    status = with_running(
        snapshot(), Running({"groups behind": Fault("g", OLD), "payments-0 gap": Fault("1 to 2", OLD)})
    )
    assert (status.state, problems(status), remarks(status)) == (LinkState.COPIED, [], [])


def test_case_874_a_topic_whose_copy_cannot_be_made_is_stopped() -> None:
    # The state was "copying", and no alert could fire.
    known = Running({"topic payments": Fault("INVALID_REPLICATION_FACTOR", NEW)})
    status = with_running(snapshot(destination=NOT_COPIED), known)
    assert (status.state, status.topics[0].stopped) == (LinkState.STOPPED, Fault("INVALID_REPLICATION_FACTOR", NEW))
    assert len(problems(status)) == 1
    begun = with_running(snapshot(), known)
    assert (begun.topics[0].stopped, begun.state) == (None, LinkState.COPIED)
    never = snapshot(destination=NOT_COPIED)
    paused = replace(never, topics=(replace(never.topics[0], state=CopyState.PAUSED),))
    assert with_running(paused, known).topics[0].stopped is None


def test_a_stop_is_told_once() -> None:
    stopped = snapshot(destination=with_position(stopped="too large", stopped_at=OLD))
    status = with_running(stopped, Running({"payments-0": Fault("too large", OLD)}))
    assert problems(status) == ["payments-0: stopped since 2027-01-15T07:59:00.000Z: too large"]


def test_the_page_of_a_running_replicator_tells_the_same_to_other_processes() -> None:
    behind = with_logs({Partition("payments", 0): Log(-1, 130, 130)})
    known = Running({"lane 0": Fault("no right", OLD)})
    page = document(with_running(snapshot(behind, previous=snapshot(now=OLD), now=NEW), known))
    assert read_running(page) == Running(known.problems, {Partition("payments", 0): NEW})
    status = with_running(snapshot(behind), read_running(page))
    assert first(status).lag_seconds == 1


def test_that_the_running_replicators_problems_are_unknown_is_said() -> None:
    status = with_running(snapshot(), Running(unknown="no replicator answers"))
    assert remarks(status) == ["problems of the running replicator: unknown: no replicator answers"]
    assert document(status)["problems_unknown"] == "no replicator answers"
