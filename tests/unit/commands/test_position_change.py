import uuid
from dataclasses import replace

import pytest

from appliance.commands.model.position_change import Change, Kind, Place, moved
from appliance.commands.model.reset_report import ResetReport
from appliance.errors import SettingsError
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import LOST, UNACCOUNTED, UNKNOWN, CopyEnd, Position, SourcePlace
from appliance.link.model.replicas import Replica

SOURCE, COPY = uuid.UUID(int=1), uuid.UUID(int=2)
REPLICA = Replica("orders", 3, "orders.copy", SOURCE, COPY)
END = CopyEnd(40, 2, 7, 1)
HELD = Position(SOURCE, COPY, 30, 2, records=25, copy_end=END, tail=OffsetTail.begin(20, 33)._replace(copy_to=40))


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        ("earliest", Kind.EARLIEST, -1),
        ("latest", Kind.LATEST, -1),
        ("17", Kind.OFFSET, 17),
        ("1764057600000ms", Kind.TIME, 1764057600000),
        ("2025-11-25T08:00:00Z", Kind.TIME, 1764057600000),
        ("2025-11-25T09:00:00+01:00", Kind.TIME, 1764057600000),
        ("2025-11-25T08:00:00", Kind.TIME, 1764057600000),
        ("2025-11-25", Kind.TIME, 1764028800000),
        ("1969-01-01", Kind.TIME, 0),
    ],
)
def test_a_place_is_read_as_it_is_written(text: str, kind: Kind, number: int) -> None:
    assert Place.parse("--to", text) == Place(text, kind, number)


@pytest.mark.parametrize("text", ["", "soon", "-1", "ms", "12s", "2025-13-01"])
def test_what_is_no_place_is_refused_with_what_is_expected(text: str) -> None:
    with pytest.raises(SettingsError, match=f"--to {text}: expected earliest, latest, a source offset"):
        Place.parse("--to", text)


@pytest.mark.parametrize("text", [f"{1 << 63}ms", f"{1 << 63}"])
def test_case_228_a_number_that_the_protocol_cannot_carry_is_refused(text: str) -> None:
    # The request could not be written: the command ended with a traceback.
    with pytest.raises(SettingsError, match=f"--to {text}: expected earliest, latest, a source offset"):
        Place.parse("--to", text)


def test_a_position_that_is_moved_keeps_its_counts_and_the_end_of_its_copy() -> None:
    change = moved(REPLICA, HELD, SourcePlace(10, 3))
    assert (change.copied_again, change.left_out, change.anew) == (20, 0, False)
    assert (change.after.next_offset, change.after.records, change.after.copy_end) == (10, 25, END)
    assert change.after.tail == OffsetTail.begin(10, 40)
    assert change.after.leader_epoch == 3


def test_case_489_a_resume_after_a_stop_for_the_source_hides_no_loss_of_the_copy() -> None:
    # The end of the copy was found out anew after any stop: what the copy had lost meanwhile was never noticed.
    change = moved(REPLICA, replace(HELD, stopped="offsets 30 to 39 are gone from the source"), SourcePlace(40, 3))
    assert (change.after.copy_end, change.after.stopped) == (END, "")
    unaccounted = moved(REPLICA, replace(HELD, stopped=f"the copy holds records {UNACCOUNTED}"), SourcePlace(40, 3))
    assert (unaccounted.after.copy_end, unaccounted.after.tail) == (None, None)


@pytest.mark.parametrize("held", [None, replace(HELD, stopped=f"the copy {LOST}"), replace(HELD, next_offset=UNKNOWN)])
def test_what_has_stopped_or_is_unknown_has_its_copys_end_found_out(held: Position | None) -> None:
    assert moved(REPLICA, held, SourcePlace(10, 3)).after.copy_end is None
    assert not moved(REPLICA, held, SourcePlace(10, 3)).after.stopped


def test_what_is_left_out_is_a_gap_and_of_another_topic_nobody_knows_how_much() -> None:
    forward = moved(REPLICA, HELD, SourcePlace(35, 3))
    found = forward.gap(9)
    assert found is not None
    assert (found.first, found.next, found.found) == (30, 35, 9)
    anew = replace(HELD, source_id=uuid.UUID(int=9))
    change = moved(REPLICA, anew, SourcePlace(35, 3))
    found = change.gap(9)
    assert found is not None
    assert (found.source_id, found.first, found.next) == (anew.source_id, 30, -1)
    assert not change.is_known
    assert moved(REPLICA, None, SourcePlace(35, 3)).gap(9) is None


def test_a_report_has_the_sums_and_counts_what_is_unknown_apart() -> None:
    changes: list[Change] = [
        moved(REPLICA, HELD, SourcePlace(10, 3)),
        moved(REPLICA, HELD, SourcePlace(35, 3)),
        moved(REPLICA, None, SourcePlace(0, 3)),
        moved(REPLICA, replace(HELD, source_id=uuid.UUID(int=9)), SourcePlace(0, 3)),
    ]
    report = ResetReport("replicator-orange", changes=changes)
    assert list(report.lines()) == [
        "orders-3 goes on from offset 10; it had stopped at 30: 20 offsets are copied again",
        "orders-3 goes on from offset 35; it had stopped at 30: 5 offsets are left out",
        "orders-3 goes on from offset 0 behind what orders.copy-3 holds",
        "orders-3 goes on from offset 0; it had stopped at 30 of a topic that was made anew since",
        "changed: 4 partitions, 20 offsets copied again, 5 offsets left out, unknown for 2 partitions",
    ]
    assert (report.document()["copied_again"], report.document()["left_out"]) == (20, 5)
    assert list(ResetReport("replicator-orange").lines()) == ["nothing is to be done: every partition is there already"]


def test_case_205_a_position_that_is_moved_keeps_the_end_of_its_copy_by_which_a_loss_is_noticed() -> None:
    # ``resume --from`` looked the end up again: a copy that had lost records was taken for whole, and its map for true.
    change = moved(REPLICA, HELD, SourcePlace(4, 3))
    assert change.after.copy_end == HELD.copy_end
    assert change.after.copy_end is not None


def test_case_911_what_a_record_says_hides_no_loss_of_the_copy_and_makes_none() -> None:
    # The end of the copy was found out anew where the value of a record that the SQL failed on spoke of a loss.
    quoted = replace(HELD, stopped=f"orders-3 offset 30 fails in the SQL of REPLICA_TRANSFORM_SQL_FILE: {LOST}")
    change = moved(REPLICA, quoted, SourcePlace(31, 3))
    assert (change.after.copy_end, change.lost_end) == (END, None)
    (entry,) = filter(None, [change.gap(9)])
    assert entry.cause == "the operator went on from offset 31"


RECREATED = replace(HELD, destination_id=uuid.UUID(int=9))
SHORTER = replace(HELD, stopped=f"orders.copy-3 {LOST}, offsets 10 to 39 of the copy")
UNTOLD = replace(HELD, next_offset=UNKNOWN, stopped="no position says how far")


@pytest.mark.parametrize(
    ("held", "start", "gap", "words"),
    [
        (UNTOLD, 35, (35, 35), "nobody knows which ones below it are copied"),
        (RECREATED, 20, (20, 20), "orders.copy was deleted and made anew"),
        (RECREATED, 35, (30, 35), "went on from offset 35; destination topic orders.copy was deleted"),
        (SHORTER, 20, (20, 20), LOST),
        (SHORTER, 30, (30, 30), LOST),
        (SHORTER, 35, (30, 35), f"went on from offset 35; orders.copy-3 {LOST}"),
        (replace(SHORTER, source_id=uuid.UUID(int=9)), 0, (30, -1), f"went on from offset 0; orders.copy-3 {LOST}"),
    ],
)
def test_case_912_what_no_copy_holds_any_more_goes_to_the_ledger(
    held: Position, start: int, gap: tuple[int, int], words: str
) -> None:
    # Where a copy was made anew or shorter, and the source's retention had passed, nothing was left in the ledger.
    found = moved(REPLICA, held, SourcePlace(start, 3)).gap(9)
    assert found is not None
    assert (found.first, found.next) == gap
    assert words in found.cause


@pytest.mark.parametrize("held", [RECREATED, SHORTER])
def test_where_all_is_copied_again_there_is_no_gap(held: Position) -> None:
    assert moved(REPLICA, held, SourcePlace(0, 3)).gap(9) is None
    assert moved(REPLICA, UNTOLD, SourcePlace(20, 3), from_first=True).gap(9) is None


def test_case_929_what_an_adopted_copy_or_one_failed_back_to_had_lost_is_in_the_ledger() -> None:
    # Their positions count no records, and their copies hold some.
    assert moved(REPLICA, replace(RECREATED, records=0), SourcePlace(20, 3)).gap(9) is not None
    empty = replace(RECREATED, records=0, copy_end=replace(END, offset=0))
    assert moved(REPLICA, empty, SourcePlace(20, 3)).gap(9) is None
