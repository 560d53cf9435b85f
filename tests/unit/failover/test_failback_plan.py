"""Failing back begins at the link's end, and ends when all is copied back; otherwise it is refused."""

import uuid
from dataclasses import replace

import pytest

from appliance.failover.model.failback_plan import Refusal, Seed, returned, seed
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import LOST, UNKNOWN, CopyEnd, Position
from appliance.link.model.replicas import Replica

SOURCE, COPY = uuid.uuid4(), uuid.uuid4()
REPLICA = Replica("T", 0, "T.copy", SOURCE, COPY)
FORWARD = Position(SOURCE, COPY, 10, records=10, copy_end=CopyEnd(12, 3, 7, 1), tail=OffsetTail.begin(10, 12))
SOURCE_END = CopyEnd(14, 5, -1, -1)
REVERSE = Position(COPY, SOURCE, 20, records=7, copy_end=CopyEnd(23, 5, 9, 0))
COPY_END = CopyEnd(20, 4, -1, -1)


def refused(plan: object) -> str:
    """The text of a refusal."""
    assert isinstance(plan, Refusal)
    return str(plan)


def test_the_way_back_begins_past_the_links_last_transaction_and_names_what_never_came_over() -> None:
    planned = seed(REPLICA, FORWARD, SOURCE_END)
    assert isinstance(planned, Seed)
    held = planned.position
    assert (held.source_id, held.destination_id, held.next_offset) == (COPY, SOURCE, 12)
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
    text = refused(seed(REPLICA, forward, SOURCE_END))
    assert text.startswith("T-0: ")
    assert reason in text


def test_a_source_that_has_lost_copied_records_is_refused() -> None:
    assert "has lost records" in refused(seed(REPLICA, FORWARD, replace(SOURCE_END, offset=9)))


def test_the_link_goes_on_where_the_way_back_has_ended_and_not_at_the_logs_end() -> None:
    stopped = FORWARD.stop("any reason", 1)
    after = returned(REPLICA, stopped, REVERSE, COPY_END, 20)
    assert isinstance(after, Position)
    assert (after.next_offset, after.copy_end, after.tail) == (23, COPY_END, OffsetTail.begin(23, 20))
    assert (after.stopped, after.records, after.leader_epoch) == ("", 10, -1)


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
    assert reason in refused(returned(REPLICA, FORWARD, reverse, replace(COPY_END, offset=end), open_from))
