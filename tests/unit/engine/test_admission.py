"""The verdicts on partitions that are to be copied, and the tries of those that wait."""

import math
import uuid
from dataclasses import replace
from typing import Any

import pytest

from appliance.engine.model.admission import Begins, CopyEnds, Facts, HeldBack, Verdict, judge
from appliance.errors import ApplianceError, BrokerBusy, CopyShortened, GapFound, PartitionStopped
from appliance.kafka.client.configs import WriteLimits
from appliance.kafka.client.transactions import Producer
from appliance.kafka.protocol.metadata import NOWHERE, Metadata, Topic
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import NO_PLACE, CopyEnd, Position, SourcePlace
from appliance.link.model.replicas import Replica

REPLICA = Replica("orders", 0, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
IDS = REPLICA.source_id, REPLICA.destination_id
HELD = Position(*IDS, 10, 0)
OF_ANOTHER_SOURCE = replace(HELD, source_id=uuid.UUID(int=3))
OF_ANOTHER_COPY = replace(HELD, destination_id=uuid.UUID(int=3))
BUSY = BrokerBusy("no leader", "LEADER_NOT_AVAILABLE")
LOST = PartitionStopped("orders.copy-0 has lost what it had acknowledged")
BEGIN = SourcePlace(4, 1)
COPY = Topic("orders.copy", REPLICA.destination_id, False, (1,), epochs=(3,), in_sync=(1,), replicas=(1,))
FACTS = Facts(
    Metadata("grape", 0, {}, {COPY.name: COPY}),
    Producer("replicator-orange.lane-0", 4000, 7),
    {},
    {COPY.name: WriteLimits(1000, 1)},
    begins=Begins({REPLICA.source: BEGIN}),
    now=5,
)

made_anew = pytest.mark.parametrize("held", [OF_ANOTHER_SOURCE, OF_ANOTHER_COPY], ids=["source", "copy"])


def verdict(held: Position | None, refusal: ApplianceError | None = None, *, end: int = 11, **further: Any) -> Verdict:
    copies = CopyEnds({}, {REPLICA.copy: refusal}) if refusal else CopyEnds({REPLICA.copy: end})
    positions = {REPLICA.source: held} if held else {}
    return judge(REPLICA, replace(FACTS, positions=positions, copies=copies, **further))


@made_anew
def test_a_topic_made_anew_is_a_gap(held: Position) -> None:
    assert isinstance(verdict(held).stop, GapFound)


@made_anew
def test_case_40_no_gap_explains_what_a_copy_has_lost(held: Position) -> None:  # invariant J
    # Before, with ON_GAP=record the new source topic was copied after the hole, without a message.
    stop = verdict(held, LOST).stop
    assert not isinstance(stop, GapFound)
    assert "was deleted and made anew" in str(stop)
    assert "has lost what it had acknowledged" in str(stop)


@made_anew
def test_a_copy_made_anew_that_was_shortened_says_where_it_ends(held: Position) -> None:
    stop = verdict(held, CopyShortened("lost", 7, is_known=False)).stop
    assert isinstance(stop, CopyShortened)
    assert (stop.end, stop.is_known) == (7, False)


@made_anew
def test_a_topic_made_anew_waits_while_nothing_is_known_of_its_copy_or_its_beginning(held: Position) -> None:
    assert verdict(held, BUSY) == Verdict(wait=BUSY)
    assert verdict(held, begins=Begins(unknown={REPLICA.source: BUSY})) == Verdict(wait=BUSY)


def test_a_known_partition_is_read_stopped_or_waits_by_its_copy_alone() -> None:
    unasked = Begins(unknown={REPLICA.source: BUSY})
    assert verdict(HELD, begins=unasked) == Verdict()
    assert verdict(HELD, LOST) == Verdict(stop=LOST)
    assert verdict(HELD, BUSY) == Verdict(wait=BUSY)


def test_a_position_from_before_topics_had_ids_gets_them() -> None:
    assert verdict(replace(HELD, source_id=NOWHERE, destination_id=NOWHERE)) == Verdict(HELD)


def test_a_new_partition_begins_at_its_place_in_an_empty_copy() -> None:
    first = Position(*IDS, *BEGIN, copy_end=CopyEnd(0, 3, 4000, 7))
    assert verdict(None, end=0) == Verdict(first)
    assert verdict(None, BUSY) == Verdict(wait=BUSY)
    assert verdict(None, end=0, begins=Begins(unknown={REPLICA.source: BUSY})) == Verdict(wait=BUSY)


def test_a_copy_with_records_and_no_position_stops_and_the_reason_is_remembered_once() -> None:  # invariant H
    position, stop, _ = verdict(None)
    assert "orders.copy-0 ends at offset 11, and no position says how far orders-0 is copied there" in str(stop)
    assert position == Position(*IDS, *NO_PLACE).stop(str(stop), 5)
    again = verdict(position)
    assert (again.position, str(again.stop)) == (None, str(stop))


def test_a_shared_copy_with_records_of_others_is_written_to_unless_the_link_has_begun_it() -> None:
    first = Position(*IDS, *BEGIN, tail=OffsetTail.begin(4, 0))
    assert verdict(None, shared=True) == Verdict(first)
    assert verdict(None, shared=True, begun={REPLICA.copy}).stop is not None
    assert verdict(None, end=0, shared=True, begun={REPLICA.copy}) == Verdict(first)


def test_a_shared_copy_that_has_stopped_stays_stopped_though_what_was_found_is_deleted() -> None:
    stopped = Position(*IDS, *NO_PLACE).stop("holds records", 1)
    position, stop, _ = verdict(stopped, end=0, shared=True)
    assert (position, str(stop)) == (None, "holds records")


@pytest.mark.parametrize(
    ("copy", "reason"),
    [
        (replace(COPY, id=uuid.UUID(int=9)), "orders.copy was deleted and made anew"),
        (replace(COPY, leaders=(-1,), in_sync=(0,)), "orders.copy-0 of the destination cluster has no leader now"),
        (replace(COPY, in_sync=(0,)), "orders.copy-0 has 0 of 1 replicas in sync: NOT_ENOUGH_REPLICAS"),
    ],
)
def test_a_copy_that_takes_nothing_now_waits_whatever_else_is_known(copy: Topic, reason: str) -> None:
    metadata = replace(FACTS.metadata, topics={copy.name: copy})
    for held in (None, HELD, OF_ANOTHER_COPY):
        assert str(verdict(held, metadata=metadata).wait) == reason


def test_a_copy_of_unknown_limits_waits() -> None:
    assert verdict(HELD, unlimited={COPY.name: BUSY}, limits={}) == Verdict(wait=BUSY)


ZERO, ONE = (Replica("orders", number, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2)) for number in range(2))


def test_a_partition_that_fails_again_and_again_is_tried_less_and_less_often() -> None:
    held, now, pauses = HeldBack(), 100.0, []
    for _ in range(12):
        held.add(ZERO, now)
        pauses.append(held.pause(now))
        assert held.due(now) == []
        now += held.pause(now)
        assert held.due(now) == [ZERO]
        held.note_try(ZERO)
        assert held.due(now) == []
    assert pauses == sorted(pauses)
    assert pauses[0] < 1
    assert pauses[-1] == pauses[-2] == 30


def test_a_new_partition_is_due_now_and_a_waiting_one_goes_on_waiting() -> None:
    held = HeldBack()
    held.add(ZERO, 100.0)
    held.add_due([ZERO, ONE])
    assert held.due(100.0) == [ONE]
    assert held.pause(100.0) == 0.0


def test_a_partition_that_went_well_begins_anew() -> None:
    held = HeldBack()
    held.add(ZERO, 0.0)
    first = held.pause(0.0)
    held.add(ZERO, 10.0)
    assert held.went_well(ZERO)
    assert not held.went_well(ZERO)
    assert held.pause(10.0) == math.inf
    held.add(ZERO, 20.0)
    assert held.pause(20.0) == pytest.approx(first)


def test_a_partition_that_is_no_longer_copied_is_forgotten() -> None:
    held = HeldBack()
    held.add(ZERO, 0.0)
    held.add(ONE, 0.0)
    held.keep([ONE])
    assert not held.went_well(ZERO)
    assert held.went_well(ONE)
