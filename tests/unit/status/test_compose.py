import uuid
from dataclasses import replace

import pytest

from appliance.errors import BrokerBusy
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.kafka.protocol.metadata import Partition, Topic
from appliance.link.model.agreement import CopyLog
from appliance.link.model.checkpoint import OPERATOR, Gap, Owner, StartOffsets
from appliance.link.model.claims import Claim
from appliance.link.model.copy_states import CopyState, StateRecord
from appliance.link.model.layout import Layout
from appliance.link.model.position import CopyEnd, SourcePlace, Trial
from appliance.link.model.problems import Fault
from appliance.status.model.compose import Composer
from appliance.status.model.compose_partition import reached
from appliance.status.model.facts import DestinationFacts, Log, Observation, SourceFacts
from appliance.status.model.messages import problems
from appliance.status.model.snapshot import LinkState
from appliance.status.model.topic_status import Reached
from tests.support.facts import (
    COPY_ID,
    DESTINATION,
    ENDS_AT_100,
    NOW,
    PAYMENTS,
    RUN,
    SILENT,
    SOURCE,
    SOURCE_ID,
    first,
    metadata,
    positions_topic,
    settings,
    snapshot,
    with_logs,
    with_position,
)

KEY = Partition("payments", 0)


def test_a_partition_copied_to_its_end_has_no_lag_at_any_age() -> None:
    status = snapshot(destination=with_position(timestamp=1))
    assert status.state is LinkState.COPIED
    assert (first(status).lag_records, first(status).lag_seconds, first(status).copied) == (0, 0, 90)
    assert first(status).lane == Layout(3).lane_of(*KEY)


def test_the_lag_counts_offsets_up_to_the_last_stable_one() -> None:
    status = snapshot(with_logs({KEY: Log(-1, 130, 150)}))
    assert status.state is LinkState.COPYING
    assert (first(status).lag_records, first(status).end_offset) == (30, 130)


@pytest.mark.parametrize("timestamp", [-1, 0, NOW + 1_000_000])
def test_case_870_the_age_of_a_lag_is_the_time_since_the_position_could_have_been_newer(timestamp: int) -> None:
    # It was the age of the newest copied record: 57 years, or 0 with 14,066 behind, and nothing before the first.
    written = with_position(timestamp=timestamp)
    status = snapshot(destination=written, now=NOW - 20_000)
    assert first(status).lag_seconds == 0
    for end, now, lag in ((110, NOW - 9_000, 0), (120, NOW - 4_000, 5), (120, NOW, 9)):
        status = snapshot(with_logs({KEY: Log(-1, end, end)}), written, status, now)
        assert first(status).lag_seconds == lag
    moved = with_position(next_offset=112, timestamp=timestamp)
    assert first(snapshot(with_logs({KEY: Log(-1, 120, 120)}), moved, status, NOW)).lag_seconds == 4


def test_the_age_of_a_lag_that_was_there_at_first_is_unknown_until_it_is_known_to_be_old() -> None:
    behind = with_logs({KEY: Log(-1, 101, 101)})
    status = snapshot(behind)
    assert first(status).lag_seconds is None
    assert first(snapshot(behind, previous=status, now=NOW + 9_000)).lag_seconds is None
    assert first(snapshot(behind, previous=status, now=NOW + 11_000)).lag_seconds == 11


def test_a_partition_with_whose_records_spark_has_ended_is_failing_and_not_copying() -> None:
    behind = with_logs({KEY: Log(-1, 130, 150)})
    first_time = snapshot(behind, with_position(trial=Trial(100, 130, 1)))
    assert (first_time.state, problems(first_time)) == (LinkState.COPYING, [])
    passed = snapshot(behind, with_position(trial=Trial(90, 100, 4)))
    assert passed.state is LinkState.COPYING
    hangs = replace(with_position(trial=Trial(100, 130, 1)), committed_at={KEY: NOW - 61_000})
    assert snapshot(behind, hangs).state is LinkState.FAILING
    again = snapshot(behind, with_position(trial=Trial(100, 130, 2)))
    assert again.state is LinkState.FAILING
    assert "payments-0: failing since " in problems(again)[0]
    assert "Spark has ended, or made no progress, between offset 100 and offset 130" in problems(again)[0]


def test_case_1041_a_trial_hides_no_problem_and_is_none_of_a_topic_that_is_not_copied() -> None:
    # "Spark has ended" was said of what could not be written, in place of the reason, and of paused topics.
    behind = with_logs({KEY: Log(-1, 130, 150)})
    slow = replace(with_position(trial=Trial(100, 130, 1)), committed_at={KEY: NOW - 59_000})
    assert snapshot(behind, slow).failing == {}
    known = snapshot(behind, with_position(trial=Trial(100, 130, 2)))
    assert list(known.failing) == ["payments-0"]
    told = replace(known, problems={"payments-0": Fault("too few replicas", NOW - 1000)})
    assert (told.failing, list(told.passing)) == ({}, ["payments-0"])
    for state in (CopyState.PAUSED, CopyState.PROMOTED):
        assert replace(known, topics=(replace(known.topics[0], state=state),)).failing == {}


def test_of_many_ends_the_first_above_the_position_is_kept() -> None:
    ends: tuple[Reached, ...] = ()
    for look in range(1200):  # an hour, every three seconds
        ends = reached(ends, 101 + look, 100, NOW + 3000 * look)
    assert (ends[0], len(ends)) == (Reached(101, NOW), 64)
    now = NOW + 3000 * 1200
    for position in range(101, 1300):  # it is copied on: an age is right to a quarter of itself
        ends = reached(ends, 1301, position, now)
        age = now - (NOW + 3000 * (position - 100))
        assert 0.75 * age - 3000 <= now - ends[0].at <= age + 3000
    assert reached(ends, 1301, 1301, now) == ()


def test_what_a_truncated_source_has_lost_was_not_reached() -> None:
    assert reached((Reached(150, NOW), Reached(170, NOW + 1)), 160, 100, NOW + 9) == (
        Reached(150, NOW),
        Reached(160, NOW + 9),
    )


def test_case_871_a_topic_that_may_not_be_described_any_more_is_unknown_and_not_gone() -> None:
    # It counted as deleted at the source: "copied".
    reason = "topic payments: TOPIC_AUTHORIZATION_FAILED: grant SOURCE_API_KEY Describe"
    status = snapshot(SourceFacts(metadata(), {}, dict.fromkeys(ENDS_AT_100, reason)))
    assert (status.state, first(status).unknown) == (LinkState.UNKNOWN, Fault(reason, NOW))
    assert status.topics[0].active


@pytest.mark.parametrize(
    ("naming", "setting"),
    [
        ({}, "REPLICA_TOPICS_SOURCE_REGEX"),
        ({"REPLICA_TOPICS_NAMING": "map", "REPLICA_TOPICS_NAMES": "payments=payments.copy"}, "REPLICA_TOPICS_NAMES"),
    ],
)
@pytest.mark.parametrize("there", [(), (replace(PAYMENTS, name="payments-old"),)])
def test_case_872_and_1114_a_link_whose_settings_match_nothing_is_not_copied(
    there: tuple[Topic, ...], naming: dict[str, str], setting: str
) -> None:
    # MirrorMaker 2's list `a,b,c` matched nothing: "copied", exit code 0. With a map, another setting was named.
    for positions in (DESTINATION, replace(DESTINATION, positions={})):
        status = snapshot(SourceFacts(metadata(*there)), positions, **naming)
        assert (status.state, status.state.well) == (LinkState.NOTHING_MATCHES, False)
        (problem,) = problems(status)
        assert f"{setting} matches no topic" in problem


LED_IN_4 = replace(PAYMENTS, epochs=(4, 4))
"""The source's topic, whose leaders are the fourth."""


def test_a_position_that_is_read_a_moment_after_the_ends_is_no_negative_lag() -> None:
    source = replace(SOURCE, metadata=metadata(LED_IN_4))
    status = snapshot(source, with_position(next_offset=105, leader_epoch=4))
    assert (first(status).lag_records, first(status).lost_at_source, status.state) == (0, 0, LinkState.COPIED)


@pytest.mark.parametrize(
    ("epochs_end", "end", "lag", "lost"), [(94, 108, 14, 6), (94, 94, 0, 6), (94, 100, 6, 6), (-1, 94, None, 6)]
)
def test_case_600_a_source_that_came_back_without_what_was_copied_is_not_said_to_be_copied(
    epochs_end: int, end: int, lag: int | None, lost: int
) -> None:
    # The difference of the ends was the lag, and a negative one was 0: "copied".
    source = replace(SOURCE, metadata=metadata(LED_IN_4), logs={**ENDS_AT_100, KEY: Log(-1, end, end, 3, epochs_end)})
    status = snapshot(source, with_position(leader_epoch=3))
    assert (first(status).lag_records, first(status).lost_at_source) == (lag, lost)
    assert status.state is LinkState.STOPPED
    assert not status.state.well
    fault = first(status).stopped
    assert fault is not None
    assert "the source has lost records that were copied" in fault.reason
    again = snapshot(source, with_position(leader_epoch=3), status, NOW + 3000)
    assert first(again).stopped == fault


def test_case_762_a_log_without_leader_epochs_that_grows_is_not_said_to_have_lost_records() -> None:
    # Messages from before Kafka 0.11 have none, and the position is read a moment after the ends.
    source = replace(SOURCE, metadata=metadata(LED_IN_4))
    status = snapshot(source, with_position(next_offset=105, leader_epoch=-1))
    assert (first(status).stopped, status.state.well) == (None, True)


def test_what_was_not_asked_for_since_the_position_has_moved_is_unknown_and_no_loss() -> None:
    source = replace(SOURCE, metadata=metadata(LED_IN_4), logs={**ENDS_AT_100, KEY: Log(-1, 100, 100, 2, 70)})
    status = snapshot(source, with_position(next_offset=105, leader_epoch=3))
    assert (first(status).lag_records, first(status).lost_at_source, first(status).stopped) == (None, None, None)


@pytest.mark.parametrize("state", [CopyState.ACTIVE, CopyState.PROMOTED])
def test_case_601_a_copy_that_lost_what_it_had_acknowledged_is_not_said_to_be_copied(state: CopyState) -> None:
    # Only a lane noticed, at its next start; a promoted copy is its applications' own.
    log = CopyLog(Partition("payments.copy", 0), COPY_ID, 90, leader_epoch=6, epochs_end=90)
    destination = replace(
        with_position(copy_end=CopyEnd(101, 5, 7, 1)),
        copies={**DESTINATION.copies, KEY: log},
        states={"payments": StateRecord("payments", state, NOW, "me@host")},
    )
    status = snapshot(destination=destination)
    if state is CopyState.PROMOTED:
        assert (first(status).stopped, status.state.well) == (None, True)
        return
    assert (first(status).lag_records, status.state) == (None, LinkState.STOPPED)
    assert first(status).stopped == Fault(
        "payments.copy-0 has lost what it had acknowledged, offsets 90 to 100 of the copy", NOW
    )


def test_a_copy_whose_leader_does_not_answer_is_unknown_and_not_copied() -> None:
    log = CopyLog(
        Partition("payments.copy", 0), COPY_ID, error=BrokerBusy("it has no leader now", "LEADER_NOT_AVAILABLE")
    )
    status = snapshot(destination=replace(DESTINATION, copies={**DESTINATION.copies, KEY: log}))
    assert (first(status).lag_records, status.state) == (None, LinkState.UNKNOWN)
    assert first(status).unknown == Fault(f"nobody knows what payments.copy-0 holds: {log.error}", NOW)


def test_a_partition_without_a_position_lags_by_all_that_it_holds() -> None:
    source = with_logs({KEY: Log(40, 100, 100)})
    status = first(snapshot(source, replace(DESTINATION, positions={})))
    assert (status.copied, status.next_offset, status.lag_records, status.lag_seconds) == (0, None, 60, None)


def test_where_a_new_link_begins_at_the_end_nobody_knows_how_much_there_is_to_copy() -> None:
    source = with_logs({KEY: Log(40, 100, 100)})
    new = DestinationFacts(metadata())
    assert first(snapshot(source, new, REPLICA_TOPICS_START="latest")).lag_records is None
    later = replace(DESTINATION, positions={})
    assert first(snapshot(source, later, REPLICA_TOPICS_START="latest")).lag_records == 60


def test_a_partition_from_before_the_link_lags_from_its_end_at_that_time() -> None:  # invariant K
    source = with_logs({Partition("payments", n): Log(40, 100, 100) for n in range(2)})
    made = positions_topic()
    made.checkpoints[0].starts["payments"] = StartOffsets("payments", SOURCE_ID, (SourcePlace(90, 0),))
    status = snapshot(source, replace(DESTINATION, positions={}, topic=made))
    assert [partition.lag_records for partition in status.topics[0].partitions] == [10, 60]


def test_a_link_that_is_not_as_it_was_made_is_stopped_and_says_why() -> None:  # invariant H
    grown = snapshot(destination=replace(DESTINATION, topic=positions_topic(partitions=2)))
    assert grown.state is LinkState.STOPPED
    assert grown.stopped is not None
    assert "has 3 partitions, and had 2" in grown.stopped.reason


def test_a_copy_that_belongs_to_another_link_is_not_copied_and_says_so() -> None:  # invariant I
    claims = {("payments.copy", COPY_ID): Claim("replicator-plum", 1)}
    (topic,) = snapshot(destination=replace(DESTINATION, claims=claims)).topics
    assert topic.stopped is not None
    assert "payments.copy belongs to link replicator-plum" in topic.stopped.reason


@pytest.mark.parametrize("topic_id", [None, uuid.UUID(int=9)])
def test_a_copy_that_is_gone_or_made_anew_is_not_said_to_hold_everything(topic_id: uuid.UUID | None) -> None:
    copies = {key: replace(log, topic_id=topic_id) for key, log in DESTINATION.copies.items()}
    status = snapshot(destination=replace(DESTINATION, copies=copies))
    assert status.state is LinkState.UNKNOWN
    assert first(status).lag_records is None


def test_the_settings_that_a_copy_does_without_are_shown() -> None:
    claims = {("payments.copy", COPY_ID): Claim("replicator-orange", 1, left_out=("segment.bytes",))}
    (topic,) = snapshot(destination=replace(DESTINATION, claims=claims)).topics
    assert (topic.stopped, topic.left_out) == (None, ("segment.bytes",))


def test_a_partition_of_which_nobody_knows_how_far_it_is_copied_has_no_lag() -> None:  # invariant H
    status = first(snapshot(destination=with_position(next_offset=-1, stopped="who knows", stopped_at=NOW)))
    assert (status.next_offset, status.lag_records) == (None, None)
    assert status.stopped is not None


def test_the_rate_comes_from_two_snapshots() -> None:
    earlier = snapshot(now=NOW - 2000)
    status = snapshot(destination=with_position(records=590), previous=earlier)
    assert first(status).rate == 250
    assert first(earlier).rate is None


def test_after_an_unknown_moment_the_rate_is_not_known() -> None:
    earlier = snapshot(destination=SILENT, now=NOW - 2000)
    assert first(snapshot(previous=earlier)).rate is None


def test_while_the_source_is_silent_what_is_copied_is_known_and_the_lag_is_not() -> None:
    status = snapshot(source=SILENT)
    assert status.state is LinkState.UNKNOWN
    assert status.source.unknown == Fault(SILENT, NOW)
    assert status.destination.unknown is None
    assert [topic.name for topic in status.topics] == ["payments"]
    assert (first(status).copied, first(status).lag_records, first(status).lag_seconds) == (90, None, None)
    assert first(status).unknown == Fault(SILENT, NOW)
    assert (status.topics[0].copied, status.topics[0].lag_records) == (180, None)


def test_while_the_destination_is_silent_nothing_is_known_and_nothing_is_0() -> None:
    status = snapshot(destination=SILENT)
    assert status.state is LinkState.UNKNOWN
    assert status.lanes == ()
    partition = first(status)
    values = (partition.copied, partition.bytes, partition.next_offset, partition.lag_records, partition.lag_seconds)
    assert {*values, partition.rate, partition.lane, partition.stopped, partition.gaps} == {None}


def test_unknown_is_since_the_first_silence_whatever_the_reason_becomes() -> None:
    silent = snapshot(source=SILENT, now=NOW)
    later = snapshot(source="cannot connect", previous=silent, now=NOW + 9000)
    assert later.source.unknown == Fault("cannot connect", NOW)
    again = snapshot(previous=later, now=NOW + 12_000)
    assert again.source.unknown is None
    assert snapshot(source=SILENT, previous=again, now=NOW + 15_000).source.unknown == Fault(SILENT, NOW + 15_000)


def test_of_a_source_that_never_spoke_the_destination_still_knows_the_names() -> None:
    status = Composer(settings(), Observation(None, SILENT), Observation(DESTINATION), None, NOW).snapshot()
    assert [(topic.name, topic.active, len(topic.partitions)) for topic in status.topics] == [("payments", True, 2)]
    assert first(status).lag_records is None


def test_two_clusters_that_never_spoke_leave_an_empty_unknown_snapshot() -> None:
    status = Composer(settings(), Observation(None, SILENT), Observation(None, SILENT), None, NOW).snapshot()
    assert (status.state, status.topics, status.lanes) == (LinkState.UNKNOWN, (), ())


def test_one_partition_that_nobody_answers_for_is_unknown_alone() -> None:
    source = replace(SOURCE, logs={Partition("payments", 1): Log(-1, 100, 100)}, unanswered={KEY: "no leader"})
    status = snapshot(source)
    assert status.state is LinkState.UNKNOWN
    known, unknown = status.topics[0].partitions[1], status.topics[0].partitions[0]
    assert (known.lag_records, known.unknown) == (0, None)
    assert (unknown.lag_records, unknown.unknown) == (None, Fault("no leader", NOW))


def test_a_stopped_partition_says_why_and_since_when_the_destination_remembers() -> None:
    status = snapshot(destination=with_position(stopped="too large", stopped_at=NOW - 3))
    assert status.state is LinkState.STOPPED
    assert first(status).stopped == Fault("too large", NOW - 3)


def test_a_topic_that_cannot_be_copied_is_stopped_since_it_was_seen_so() -> None:
    few = replace(DESTINATION, metadata=metadata(Topic("payments.copy", COPY_ID, False, (1,))), positions={})
    seen = snapshot(destination=few)
    status = snapshot(destination=few, previous=seen, now=NOW + 3000)
    assert status.state is LinkState.STOPPED
    fault = status.topics[0].stopped
    assert fault is not None
    assert "payments.copy has 1 partitions" in fault.reason
    assert fault.since == NOW


def test_a_copy_of_ours_that_is_still_smaller_than_its_source_is_about_to_grow() -> None:
    few = replace(DESTINATION, metadata=metadata(Topic("payments.copy", COPY_ID, False, (1,))))
    assert snapshot(destination=few).topics[0].stopped is None


def test_no_replicator_has_ever_run_while_no_lane_has_an_owner() -> None:
    assert snapshot(destination=DestinationFacts(metadata())).state is LinkState.NEVER_RUN
    assert snapshot(destination=replace(DESTINATION, owners=(None, None))).state is LinkState.NEVER_RUN


def test_each_lane_has_the_owner_that_took_it_last() -> None:
    other = Owner("4d5e6f", "worker", "other-vm", NOW)
    status = snapshot(destination=replace(DESTINATION, owners=(RUN, other, None)))
    assert [lane.owner for lane in status.lanes] == [RUN, other, None]


def test_an_open_transaction_is_told_with_what_waits_for_it_and_is_no_fault_of_ours() -> None:
    transaction = OpenTransaction(100, 7, "till-3", NOW - 60_000)
    source = replace(with_logs({KEY: Log(-1, 100, 130)}), holding={KEY: transaction})
    status = snapshot(source)
    assert status.state is LinkState.COPIED
    held = first(status).held
    assert held is not None
    assert (held.transaction, held.waiting) == (transaction, 30)


def test_a_transaction_that_holds_a_lanes_positions_is_told() -> None:
    hanging = OpenTransaction(5, 9, "replicator-orange.lane-1", NOW)
    status = snapshot(destination=replace(DESTINATION, holding={1: hanging}))
    assert [lane.held for lane in status.lanes] == [None, hanging, None]


def test_gaps_are_kept_for_each_partition() -> None:
    gap = Gap(KEY, SOURCE_ID, 10, 15, "deleted at the source", NOW)
    status = snapshot(destination=replace(DESTINATION, gaps={KEY: (gap,)}))
    assert first(status).gaps == (gap,)
    assert status.topics[0].partitions[1].gaps == ()


def test_a_position_of_an_older_topic_of_the_name_gives_no_lag() -> None:  # invariant G
    anew = replace(PAYMENTS, id=uuid.UUID(int=9))
    status = snapshot(SourceFacts(metadata(anew), {KEY: Log(-1, 500, 500), Partition("payments", 1): Log(-1, 5, 5)}))
    assert [partition.lag_records for partition in status.topics[0].partitions] == [None, None]
    assert status.state is LinkState.UNKNOWN
    fault = first(status).unknown
    assert fault is not None
    assert "made anew" in fault.reason


@pytest.mark.parametrize("there", [(), (replace(PAYMENTS, name="payments-old"),)])
def test_a_topic_of_the_past_stays_with_what_was_copied_and_is_not_behind(there: tuple[Topic, ...]) -> None:
    status = snapshot(SourceFacts(metadata(*there)))
    assert [(topic.name, topic.active) for topic in status.topics] == [("payments", False)]
    assert (first(status).copied, first(status).lag_records, first(status).unknown) == (90, None, None)
    assert status.state is LinkState.NOTHING_MATCHES


def test_the_stop_of_a_topic_of_the_past_is_no_trouble_any_more() -> None:
    status = snapshot(SourceFacts(metadata()), with_position(stopped="too large", stopped_at=NOW))
    assert (first(status).stopped, status.state) == (None, LinkState.NOTHING_MATCHES)


def test_a_changed_position_by_the_operator_counts_as_having_run() -> None:
    operator = Owner(OPERATOR, "", "vm", NOW)
    assert snapshot(destination=replace(DESTINATION, owners=(operator,))).state is LinkState.COPIED


def test_one_topic_of_a_snapshot_can_be_looked_at_alone() -> None:
    more = Topic("orders.eu", uuid.UUID(int=5), False, (1,))
    source = SourceFacts(metadata(PAYMENTS, more), {**SOURCE.logs, Partition("orders.eu", 0): Log(0, 10, 10)})
    status = snapshot(source)
    assert [topic.name for topic in status.topics] == ["orders.eu", "payments"]
    assert status.state is LinkState.COPYING
    assert [topic.name for topic in status.only(["payments"]).topics] == ["payments"]
    assert status.only(["payments"]).state is LinkState.COPIED


@pytest.mark.parametrize(("committed_at", "latency"), [(NOW + 1040, 40), (NOW + 1000, 0), (NOW + 960, None)])
def test_case_253_a_latency_that_two_clocks_contradict_is_unknown_and_not_0(
    committed_at: int, latency: int | None
) -> None:
    # A negative one was shown as 0 ms.
    copied = with_position(records=91, timestamp=NOW + 1000)
    status = snapshot(
        destination=replace(copied, committed_at={Partition("payments", 0): committed_at}), previous=snapshot()
    )
    assert first(status).latency_ms == latency


def test_case_1029_one_forged_position_adds_one_partition_and_not_all_below_it() -> None:
    forged = Partition("payments", 2_000_000_000)
    positions = {**DESTINATION.positions, forged: DESTINATION.positions[KEY]}
    copies = {**DESTINATION.copies, forged: DESTINATION.copies[KEY]}
    (topic,) = snapshot(destination=replace(DESTINATION, positions=positions, copies=copies)).topics
    assert [each.partition for each in topic.partitions] == [0, 1, forged[1]]
