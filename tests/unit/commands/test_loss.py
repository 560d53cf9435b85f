import uuid
from dataclasses import replace

from appliance.commands.model.loss import BothLogs, losses, total
from appliance.commands.model.report import Report
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.agreement import CopyLog, SourceLog
from appliance.link.model.checkpoint import StartOffsets
from appliance.link.model.copy_states import LINK, CopyState, StateRecord
from appliance.link.model.position import UNKNOWN, CopyEnd, Position, SourcePlace

KEY = Partition("orders", 0)
POSITION = Position(uuid.UUID(int=1), uuid.UUID(int=2), 100, 0)
COPIES = {Partition("orders", n): CopyLog(Partition("orders.copy", n), uuid.UUID(int=2)) for n in range(2)}
LOG = SourceLog(uuid.UUID(int=1), 130)
SOURCE = BothLogs({"orders": uuid.UUID(int=1)}, {KEY: 40}, {KEY: LOG}, copies=COPIES)
SILENT = BothLogs(copies=COPIES, answers=False)


def takes(_: str) -> bool:
    return True


def test_the_loss_is_what_the_source_has_past_the_position() -> None:
    (loss,) = losses({KEY: POSITION}, SOURCE, takes)
    assert (loss.position, loss.source_end, loss.behind, loss.fault) == (100, 130, 30, "")


def test_of_a_partition_that_was_never_copied_all_is_lost_that_the_source_holds() -> None:
    (loss,) = losses({}, SOURCE, takes)
    assert (loss.position, loss.behind) == (None, 90)


def test_what_nobody_tells_is_unknown() -> None:
    silent = losses({KEY: POSITION}, SILENT, takes)
    half = losses({KEY: POSITION, Partition("orders", 1): POSITION}, SOURCE, takes)
    assert [loss.behind for loss in silent] == [None]
    assert [loss.behind for loss in half] == [30, None]
    assert total(silent) is None
    assert total(half) is None
    assert total(losses({KEY: POSITION}, SOURCE, takes)) == 30


def test_a_position_that_says_nothing_of_this_log_gives_no_number() -> None:
    for held in (replace(POSITION, next_offset=UNKNOWN), replace(POSITION, source_id=uuid.UUID(int=9))):
        (loss,) = losses({KEY: held}, SOURCE, takes)
        assert loss.behind is None
        assert loss.fault
    (loss,) = losses({KEY: replace(POSITION, next_offset=200)}, SOURCE, takes)
    assert (loss.behind, loss.fault) == (None, "the source has lost records that were copied")


def test_a_partition_that_has_stopped_has_a_number_and_a_fault() -> None:
    (loss,) = losses({KEY: POSITION.stop("too large", 1)}, SOURCE, takes)
    assert (loss.behind, loss.fault) == (30, "too large")
    assert str(loss) == "orders-0: copied up to offset 100, the source ends at 130: 30 behind (too large)"


def test_a_report_names_the_numbers_and_never_calls_unknown_0() -> None:
    state = StateRecord(LINK, CopyState.PROMOTED, 1, "me@host")
    known = Report("replicator-orange", False, (state,), {}, tuple(losses({KEY: POSITION}, SOURCE, takes)), ())
    assert list(known.lines())[:2] == ["the link: promoted", "records behind in 1 partition: 30"]
    unknown = Report("replicator-orange", False, (state,), {}, tuple(losses({KEY: POSITION}, SILENT, takes)), None)
    assert "records behind in 1 partition: unknown" in list(unknown.lines())
    assert unknown.document()["behind"] is None
    assert unknown.document()["groups_not_synced"] is None


def test_a_report_of_nothing_says_so() -> None:
    assert list(Report("replicator-orange").lines()) == ["nothing is to be done"]


def test_case_127_of_a_partition_that_is_not_copied_yet_nothing_is_lost_before_the_offset_chosen_to_begin_at() -> None:
    starts = {"orders": StartOffsets("orders", uuid.UUID(int=1), (SourcePlace(120, 0),) * (KEY[1] + 1))}
    (loss,) = losses({}, SOURCE, lambda _: True, starts)
    assert (loss.source_end, loss.behind) == (130, 10)
    (former,) = losses({}, SOURCE, lambda _: True, {"orders": replace(starts["orders"], source_id=uuid.UUID(int=2))})
    assert former.behind == 90


def test_case_602_what_a_source_has_no_copy_of_is_counted_from_where_the_logs_diverge() -> None:
    # Of a source that came back from an unclean election "4 behind" was said where 8 had no copy, and "0" where 4 were
    # lost: only the ends were compared.
    held = replace(POSITION, leader_epoch=2)
    for end, behind in ((104, 8), (96, 0)):
        logs = replace(SOURCE, sources={KEY: SourceLog(LOG.topic_id, end, 3, epochs_end=96)})
        (loss,) = losses({KEY: held}, logs, takes)
        assert (loss.behind, loss.lost_at_source) == (behind, 4)
        assert loss.fault == "the source has lost records that were copied: offsets 96 to 99"


def test_case_603_of_a_copy_that_is_gone_or_not_whole_the_loss_is_unknown_and_the_fault_named() -> None:
    # "promoted; behind 0" was said of copies that were deleted, or made anew and empty.
    shortened = CopyLog(Partition("orders.copy", 0), uuid.UUID(int=2), 8, 4, epochs_end=8)
    for copy, fault in (
        (replace(COPIES[KEY], topic_id=None), "destination topic orders.copy is not there any more"),
        (replace(COPIES[KEY], topic_id=uuid.UUID(int=9)), "destination topic orders.copy was deleted and made anew"),
        (shortened, "orders.copy-0 has lost what it had acknowledged, offsets 8 to 11 of the copy"),
    ):
        held = replace(POSITION, copy_end=CopyEnd(12, 3, 7, 1))
        for logs in (SOURCE, SILENT):
            (loss,) = losses({KEY: held}, replace(logs, copies={KEY: copy}), takes)
            assert loss.behind is None
            assert fault in loss.fault
            report = Report("replicator-orange", losses=(loss,))
            assert "records behind in 1 partition: unknown" in list(report.lines())
            assert str(loss) in list(report.lines())


def test_a_partition_that_was_judged_by_ends_alone_is_named() -> None:
    report = Report("replicator-orange", losses=tuple(losses({KEY: POSITION}, SOURCE, takes)))
    assert "judged by the ends of the logs alone, as no leader epoch is known: orders-0" in list(report.lines())
