"""Results of a verification during which the link's SQL was changed."""

from dataclasses import replace

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.link_sql import LinkSql, SqlChange
from appliance.logs.model.span import CopyState, Span
from appliance.verify.model.report import NEWEST_RECORDS, PartitionResult
from appliance.verify.sql_results import changed_from, without_doubtful

ORDERS = Partition("orders", 0)
FOUND = PartitionResult("orders", "orders.copy", 0, CopyState.DIFFERS, "value", records=60, differs_at=60)
BEHIND = PartitionResult("orders", "orders.copy", 0, CopyState.BEHIND, "", source=Span(0, 60), behind=40)


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
