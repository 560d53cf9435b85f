"""Results of copies by SQL: a record on which it fails, and its changes during the verification."""

import re
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from appliance.errors import BrokerBusy
from appliance.kafka.client.fetch import FetchedPartition
from appliance.kafka.protocol.metadata import Partition
from appliance.link.handle import Link
from appliance.link.model.checkpoint import Gap, LaneCheckpoint
from appliance.link.model.link_sql import LinkSql, SqlChange
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Suffix
from appliance.link.model.position import Position
from appliance.logs import reader
from appliance.logs.model.span import CopyState, Span
from appliance.logs.reader import LogReader
from appliance.logs.side import Side
from appliance.verify import sql_results
from appliance.verify.model.report import NEWEST_RECORDS, PartitionResult
from appliance.verify.sql_results import changed_from, with_failure, with_letters, without_doubtful
from appliance.verify.verification import Plan, Verification
from appliance.verify.work import joined

ORDERS = Partition("orders", 0)
SOURCE, COPY = uuid.UUID(int=1), uuid.UUID(int=2)
FAILING = PartitionResult("orders", "orders.copy", 0, CopyState.EQUAL, source=Span(0, 60), failed_at=40)
FOUND = PartitionResult("orders", "orders.copy", 0, CopyState.DIFFERS, "value", records=60, differs_at=60)
BEHIND = PartitionResult("orders", "orders.copy", 0, CopyState.BEHIND, "", source=Span(0, 60), behind=40)


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


class Cluster:
    """Both clusters, of which only the names of topics are asked."""

    settings = SimpleNamespace(side="destination")

    async def metadata(self, topics: list[str]) -> Any:
        return SimpleNamespace(topics=dict.fromkeys(topics))


CLUSTER: Any = Cluster()


async def test_case_918_dead_letters_that_cannot_be_read_take_no_other_result(monkeypatch: pytest.MonkeyPatch) -> None:
    # The whole verification ended with that error, after hours, and printed no result.
    async def spans(*_: Any) -> Any:
        raise BrokerBusy("orders.copy.dead-letter-0 has no leader now", "LEADER_NOT_AVAILABLE")

    monkeypatch.setattr(sql_results, "spans", spans)
    lanes = [LaneCheckpoint({ORDERS: replace(lane(60).positions[ORDERS], dead_letters=3)})]
    other = PartitionResult("other", "other.copy", 1, CopyState.DIFFERS, "lost")
    found = await with_letters([FAILING, other], lanes, CLUSTER, None)
    assert [each.state for each in found] == [CopyState.NOT_COMPARED, CopyState.DIFFERS]
    assert found[0].detail == "its 3 dead letters cannot be read: orders.copy.dead-letter-0 has no leader now"


async def test_case_919_what_the_link_has_passed_is_looked_at_once_more_after_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # "the link has not passed it", by lanes that were read when the verification began, hours ago.
    naming = Naming("replicator-orange", Suffix(after=".copy"), re.compile(".*"), re.compile("(?!)"), target="grape")
    run = Verification(Link(CLUSTER, CLUSTER, naming))
    run._lanes = [lane(40)]

    async def look(self: Verification) -> None:
        self._lanes = [lane(60)]

    monkeypatch.setattr(Verification, "_refresh", look)
    (found,) = await run.ended(Plan([], []), [FAILING], 0.0)
    assert found.state is CopyState.EQUAL, found.detail


async def test_case_920_counting_ends_where_a_log_was_truncated_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    # It asked for what is gone again and again, for ever.
    asked = []

    async def fetch(*_: Any) -> FetchedPartition:
        asked.append(1)
        return FetchedPartition(ORDERS, ErrorCode.none, memoryview(b""), (), 50, None)

    async def twice(attempt: Callable[[], Awaitable[Any]], *_: Any) -> Any:
        try:
            return await attempt()
        except BrokerBusy:
            return await attempt()

    monkeypatch.setattr(reader, "fetch_partition", fetch)
    monkeypatch.setattr(reader, "retry_while_busy", twice)
    side = Side(LogReader(CLUSTER, ORDERS, "test", 50), Span(0, 60))
    with pytest.raises(BrokerBusy, match="orders-0 ended at offset 60, and its leader has it end at 50 now"):
        await side.count_between(50, 60)
    assert len(asked) == 2


async def test_case_931_results_are_not_lost_where_the_lanes_cannot_be_read_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    naming = Naming("replicator-orange", Suffix(after=".copy"), re.compile(".*"), re.compile("(?!)"), target="grape")
    run = Verification(Link(CLUSTER, CLUSTER, naming))
    run._lanes = [lane(40)]

    async def look(_: Verification) -> None:
        raise BrokerBusy("replicator-orange.positions-0 has no leader now", "LEADER_NOT_AVAILABLE")

    monkeypatch.setattr(Verification, "_refresh", look)
    other = PartitionResult("other", "other.copy", 1, CopyState.DIFFERS, "lost")
    found = await run.ended(Plan([], []), [FAILING, other], 0.0)
    assert [each.state for each in found] == [CopyState.BEHIND, CopyState.DIFFERS]


def test_an_entry_of_the_ledger_without_offsets_is_no_difference_of_a_copy_that_was_compared() -> None:
    # "source offsets 30 to 30 were skipped", of a copy that is equal.
    assert with_failure(FAILING, [lane(60, "", Gap(ORDERS, SOURCE, 30, 30, "has lost", 9))]) == FAILING


def change(number: int, text: str, offset: int) -> SqlChange:
    return SqlChange(LinkSql(number, text), "run", number, 0, {ORDERS: offset})


def test_the_first_offset_of_another_statement_is_found() -> None:
    one, two = change(1, "SELECT 1", 10), change(2, "SELECT 2", 50)
    assert changed_from([], [], ORDERS) is None
    assert changed_from([], [one], ORDERS) == 10
    assert changed_from([one], [one, two], ORDERS) == 50
    assert changed_from([one], [one, change(1, "SELECT 1", 30)], ORDERS) is None
    assert changed_from([], [change(0, "", 30)], ORDERS) is None
    assert changed_from([one, two], [one, two, change(2, "SELECT 2", 20)], ORDERS) == 20


def test_case_499_a_difference_where_the_sql_changed_during_the_verification_is_no_result() -> None:
    # The copies were compared with what the older statement makes, and differed.
    for found in (FOUND, BEHIND):
        (result,) = without_doubtful([found], [], [change(1, "SELECT 1", 60)])
        assert (result.state, result.differs_at, result.behind) == (CopyState.NOT_COMPARED, None, 0)
        assert "the link's SQL was changed while this was compared: run this again" in result.detail


def test_a_difference_before_the_offset_where_the_sql_changed_stays_one() -> None:
    for found in (FOUND, BEHIND):
        assert without_doubtful([found], [], [change(1, "SELECT 1", 61)]) == [found]
        assert without_doubtful([found], [], []) == [found]


def test_case_542_a_key_that_only_newer_sql_has_copied_again_is_no_difference_of_its_older_record() -> None:
    # A record at 150, which older SQL leaves out, is copied by that of offset 100 on: the source's newest was at 50.
    for found in (FOUND, BEHIND):
        newest = replace(found, compared=NEWEST_RECORDS)
        (result,) = without_doubtful(
            [newest], [change(1, "SELECT 1", 0)], [change(1, "SELECT 1", 0), change(2, "", 100)]
        )
        assert result.state is CopyState.NOT_COMPARED
        assert without_doubtful([newest], [change(1, "SELECT 1", 0)], [change(1, "SELECT 1", 0)]) == [newest]
