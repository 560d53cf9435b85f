"""Failing back begins at the link's end, and ends when all is copied back; otherwise it is refused."""

import uuid
from dataclasses import replace

import pytest

from appliance.commands.failback.model.failback_plan import (
    PromotedLogs,
    Refusal,
    Seed,
    divergence_offset,
    given_back,
    returned,
    seed,
)
from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_runs import Group, RunIndex, pack_group
from appliance.link.model.offset_tail import OffsetTail, unpack_tail
from appliance.link.model.position import ANYBODY, LOST, UNACCOUNTED, UNKNOWN, CopyEnd, Loss, Position
from appliance.link.model.replicas import Replica

SOURCE, COPY = uuid.uuid4(), uuid.uuid4()
REPLICA = Replica("T", 0, "T.copy", SOURCE, COPY)
FORWARD = Position(SOURCE, COPY, 10, 3, records=10, copy_end=CopyEnd(12, 3, 7, 1), tail=OffsetTail.begin(10, 12))
SOURCE_END = CopyEnd(14, 5, -1, -1)
LOGS = PromotedLogs(SOURCE_END, 4, epochs_end=14)
REVERSE = Position(COPY, SOURCE, 20, 4, records=7, copy_end=CopyEnd(23, 5, 9, 0))
COPY_END = CopyEnd(20, 4, -1, -1)


def refused(plan: object) -> str:
    """The text of a refusal."""
    assert isinstance(plan, Refusal)
    return str(plan)


def test_the_way_back_begins_past_the_links_last_transaction_and_names_what_never_came_over() -> None:
    planned = seed(REPLICA, FORWARD, LOGS)
    assert isinstance(planned, Seed)
    held = planned.position
    assert (held.source_id, held.destination_id, held.next_offset, held.leader_epoch) == (COPY, SOURCE, 12, 4)
    assert (held.copy_end, held.tail) == (SOURCE_END, OffsetTail.begin(12, 14))
    assert (held.records, held.stopped) == (0, "")
    assert planned.diverged == (10, 14)


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (None, "no position says how far it was copied"),
        (replace(FORWARD, next_offset=UNKNOWN), "no position says how far it was copied"),
        (replace(FORWARD, copy_end=None), "does not say where the link's last transaction"),
        (replace(FORWARD, stopped=f"T.copy-0 {LOST}"), LOST),
        (replace(FORWARD, source_id=uuid.uuid4()), "topic T was deleted and made anew"),
        (replace(FORWARD, destination_id=uuid.uuid4()), "topic T.copy was deleted and made anew"),
    ],
)
def test_a_partition_of_which_the_beginning_is_not_known_is_refused_by_name(
    forward: Position | None, reason: str
) -> None:
    text = refused(seed(REPLICA, forward, LOGS))
    assert text.startswith("T-0: ")
    assert reason in text


@pytest.mark.parametrize(
    ("logs", "offset"),
    [
        (PromotedLogs(replace(SOURCE_END, offset=9), 4), 9),
        (PromotedLogs(SOURCE_END, 4, epochs_end=8), 8),
        (PromotedLogs(SOURCE_END, 4, epochs_end=-1), 10),
        (PromotedLogs(SOURCE_END, 4, epochs_end=12), 10),
    ],
    ids=["shorter", "other records in the place of lost ones", "of no such epoch", "whole"],
)
def test_case_165_the_logs_part_where_the_source_has_lost_what_was_copied(logs: PromotedLogs, offset: int) -> None:
    # The lost records were in the copy alone, and what came in their place was said to be all that had diverged.
    assert divergence_offset(FORWARD, logs) == offset
    if offset == FORWARD.next_offset:
        return
    assert f"from offset {offset} on the source does not hold" in refused(seed(REPLICA, FORWARD, logs))
    planned = seed(REPLICA, FORWARD, logs, 11)
    assert isinstance(planned, Seed)
    assert (planned.position.next_offset, planned.diverged) == (11, (offset, logs.source_end.offset))


def test_what_retention_took_from_the_copy_is_told_and_a_new_partition_begins_at_its_beginning() -> None:
    planned = seed(REPLICA, FORWARD, replace(LOGS, copy_start=17))
    assert isinstance(planned, Seed)
    assert (planned.position.next_offset, planned.deleted) == (17, (12, 17))
    new = seed(REPLICA, None, PromotedLogs(replace(SOURCE_END, offset=3), 4), grown=True)
    assert isinstance(new, Seed)
    assert (new.position.next_offset, new.diverged, new.deleted) == (0, (0, 3), (0, 0))


def test_case_177_what_a_copy_took_in_the_place_of_what_it_lost_goes_back_too() -> None:
    planned = seed(REPLICA, FORWARD, replace(LOGS, loss=Loss(7)))
    assert isinstance(planned, Seed)
    assert (planned.position.next_offset, planned.lost, planned.diverged) == (7, (7, 12), (10, 14))


def test_case_490_a_copy_with_a_loss_of_which_nobody_knows_the_place_is_not_brought_back() -> None:
    # What others had written in the hole was left behind, and no loss was told.
    reason = refused(seed(REPLICA, FORWARD, replace(LOGS, loss=Loss(20, is_known=False))))
    assert "T.copy-0 has lost what it had acknowledged below offset 12" in reason
    assert "its leader does not know from which offset on" in reason


def test_what_others_wrote_to_the_copy_after_a_failback_can_be_brought_back_by_the_next_one() -> None:
    stopped = FORWARD.stop(f"T.copy-0 holds records from offset 14 on {UNACCOUNTED}", 1)
    assert UNACCOUNTED in refused(seed(REPLICA, stopped, LOGS))
    left = replace(stopped, copy_end=CopyEnd(12, 3, ANYBODY, -1))
    planned = seed(REPLICA, left, LOGS)
    assert isinstance(planned, Seed)
    assert planned.position.next_offset == 12


def test_the_link_goes_on_where_the_way_back_has_ended_and_not_at_the_logs_end() -> None:
    stopped = FORWARD.stop("any reason", 1)
    after = returned(REPLICA, stopped, REVERSE, 6, COPY_END, 20)
    assert isinstance(after, Position)
    assert (after.next_offset, after.copy_end, after.tail) == (
        23,
        replace(COPY_END, producer_id=ANYBODY),
        OffsetTail.begin(23, 20),
    )
    assert (after.stopped, after.records, after.leader_epoch) == ("", 10, 6)


@pytest.mark.parametrize(
    ("reverse", "end", "open_from", "reason"),
    [
        (None, 20, 20, "nothing says how much"),
        (replace(REVERSE, copy_end=None), 20, 20, "nothing says how much"),
        (replace(REVERSE, source_id=uuid.uuid4()), 20, 20, "made anew"),
        (REVERSE.stop("too large", 1), 20, 20, "too large"),
        (REVERSE, 22, 20, "a transaction is open in T.copy-0 from offset 20 on"),
        (REVERSE, 21, 21, "stop the producers there"),
    ],
)
def test_a_failback_does_not_end_while_the_copy_may_hold_more_than_the_source(
    reverse: Position | None, end: int, open_from: int, reason: str
) -> None:
    assert reason in refused(returned(REPLICA, FORWARD, reverse, 6, replace(COPY_END, offset=end), open_from))


def test_the_map_of_what_was_copied_back_is_the_links_the_other_way() -> None:
    runs = Group(2, 0, 5, 3), Group(0, 1, 4)
    stretch = unpack_tail(12, 14, 37, 34, b"".join(map(pack_group, runs)))
    older = Segment(COPY, SOURCE, OffsetTail.begin(3, 4)._replace(source_to=8, copy_to=9))
    (segment,) = given_back([older, Segment(COPY, SOURCE, stretch)], 14)
    assert (segment.source_id, segment.destination_id) == (SOURCE, COPY)
    back, forth = RunIndex(stretch.packed, 12, 14), segment.index
    for offset in range(12, 37):
        found = back.at_source(offset)
        assert forth.at_copy(offset) == (found and found[::-1])
    for offset in range(14, 34):
        found = back.at_copy(offset)
        assert forth.at_source(offset) == (found and found[::-1])


def test_case_767_a_source_led_in_an_older_epoch_than_was_copied_is_not_said_to_have_lost_nothing() -> None:
    # Restored from a snapshot, or a former leader: records 6 to 9 were never brought back, and nothing said so.
    planned = seed(REPLICA, FORWARD, PromotedLogs(CopyEnd(6, 2, -1, -1), 4), 8)
    assert isinstance(planned, Refusal) or planned.position.next_offset <= 8
