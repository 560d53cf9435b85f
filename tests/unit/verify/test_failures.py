"""Records on which the link's SQL fails: the link must have passed each, and skipped none."""

import uuid
from dataclasses import replace

import pytest

from appliance.link.model.checkpoint import Gap, LaneCheckpoint
from appliance.link.model.position import Position
from appliance.verify.failures import with_failure
from appliance.verify.model.report import CopyState, PartitionResult, Span
from appliance.verify.work import joined

ORDERS = ("orders", 0)
SOURCE, COPY = uuid.UUID(int=1), uuid.UUID(int=2)
FAILING = PartitionResult("orders", "orders.copy", 0, CopyState.EQUAL, source=Span(0, 60), failed_at=40)


def lane(next_offset: int, stopped: str = "", *gaps: Gap) -> LaneCheckpoint:
    positions = {ORDERS: Position(SOURCE, COPY, next_offset, 0, stopped=stopped)}
    return LaneCheckpoint(positions, {(each.partition, each.first, each.found): each for each in gaps})


@pytest.mark.parametrize("stopped", ["orders-0 offset 40 fails in the SQL", ""])
def test_case_837_a_record_at_which_the_sql_has_stopped_the_link_is_no_part_of_an_equal_copy(stopped: str) -> None:
    # Before, it was left out of the comparison like one that the SQL filters: "equal", with exit code 0.
    for lanes in ([lane(40, stopped)], [LaneCheckpoint(), lane(7, stopped)]):
        found = with_failure(FAILING, lanes)
        assert (found.state, found.behind) == (CopyState.BEHIND, 1)
        assert "source offset 40, which is neither copied nor a dead letter: " in found.detail
        assert (stopped or "the link has not passed it") in found.detail
    found = with_failure(FAILING, [])
    assert found.state is CopyState.BEHIND


def test_case_837_a_record_that_the_link_has_passed_or_that_came_later_is_no_difference() -> None:
    assert with_failure(FAILING, [lane(41)]) == FAILING
    later = replace(FAILING, failed_at=70)
    assert with_failure(later, [lane(60)]) == later
    never = replace(FAILING, failed_at=None)
    assert with_failure(never, [lane(3)]) == never


def test_case_837_a_record_on_which_the_sql_fails_and_that_was_skipped_is_told() -> None:
    skipped = Gap(ORDERS, SOURCE, 40, 41, "skipped by the operator", 9)
    found = with_failure(FAILING, [lane(50, "", skipped)])
    assert (found.state, found.differs_at) == (CopyState.DIFFERS, 40)
    assert "source offsets 40 to 41 were skipped: skipped by the operator" in found.detail
    assert with_failure(FAILING, [lane(80, "", replace(skipped, first=60, next=61))]) == FAILING
    assert with_failure(FAILING, [lane(80, "", replace(skipped, source_id=COPY))]) == FAILING


def test_the_parts_of_a_partition_give_its_last_failure() -> None:
    parts = [
        replace(FAILING, source=span, destination=span, failed_at=at)
        for span, at in ((Span(0, 9), 3), (Span(9, 12), None))
    ]
    whole = joined(parts)
    assert whole is not None
    assert whole.failed_at == 3
