"""The offset at which a partition goes on that MirrorMaker 2 has copied, and the refusals."""

import uuid

import pytest

from appliance.commands.adoption.model.alignment import Aligned, Originals
from appliance.commands.adoption.model.newest import KeyedRecord, NewestCopies, newest_held
from appliance.commands.adoption.model.plan import Allowed, Beginning, Logs, of_compared, of_newest, without_reading
from appliance.link.model.replicas import Replica
from appliance.logs.model.span import Span

REPLICA = Replica("orders", 0, "orange.orders", uuid.UUID(int=7), uuid.UUID(int=8))
NOTHING = Allowed()
LOSS, DOUBLES = Allowed(loss=True), Allowed(doubles=True)


def logs(source: tuple[int, int], copy: tuple[int, int], committed: int | None) -> Logs:
    return Logs(REPLICA, Span(*source), Span(*copy), committed)


def window(first: int, end: int) -> Originals:
    found = Originals()
    for offset in range(first, end):
        found.add(offset, b"%d" % offset)
    return found


@pytest.mark.parametrize("committed", [None, 40])
def test_an_empty_copy_gets_all_that_the_source_has(committed: int | None) -> None:
    decided = without_reading(logs((7, 50), (0, 0), committed), NOTHING)
    assert decided is not None
    assert decided.offset == 7


def test_where_retention_has_emptied_the_copy_it_goes_on_after_what_was_committed() -> None:
    decided = without_reading(logs((7, 50), (90, 90), 40), NOTHING)
    assert decided is not None
    assert decided.offset == 40


def test_a_source_that_ends_before_what_was_committed_is_refused() -> None:
    decided = without_reading(logs((0, 30), (0, 90), 40), Allowed(True, True))
    assert decided is not None
    assert "was the source topic made anew" in decided.refusal


def test_nothing_committed_and_nothing_left_in_the_copy_is_refused_unless_doubles_are_allowed() -> None:
    facts = logs((7, 50), (90, 90), None)
    refused, allowed = without_reading(facts, NOTHING), without_reading(facts, DOUBLES)
    assert refused is not None
    assert allowed is not None
    assert refused.refusal
    assert allowed.offset == 7


def test_what_the_source_has_deleted_before_it_was_copied_is_refused_unless_a_loss_is_allowed() -> None:
    facts = logs((60, 80), (0, 40), 40)
    refused = of_compared(facts, window(60, 80), Aligned(0, 0), NOTHING)
    assert refused.refusal == (
        "the source has deleted offsets 40 to 59 before they were copied: --allow-loss goes on after them"
    )
    allowed = of_compared(facts, window(60, 80), Aligned(0, 0), LOSS)
    assert (allowed.offset, allowed.missing) == (60, (Span(40, 60),))


def test_a_gap_that_mirror_maker_has_passed_itself_is_none() -> None:
    passed = of_compared(logs((60, 80), (0, 40), 40), window(60, 80), Aligned(0, 5), NOTHING)
    assert (passed.offset, passed.missing) == (65, ())


def test_a_copy_of_something_else_is_refused() -> None:
    refused = of_compared(logs((0, 80), (0, 40), 40), window(10, 80), Aligned(0, 0), LOSS)
    assert "orange.orders-0 holds none of the records from offset 10 on" in refused.refusal


def test_records_missing_amid_the_copy_are_refused_left_out_or_copied_with_those_after_them() -> None:
    facts, found = logs((0, 80), (0, 40), 10), Aligned(0, 20, missing=(20, 21, 25), ahead_to=30)
    refused = of_compared(facts, window(0, 80), found, NOTHING)
    assert refused.refusal == (
        "the copy lacks source offsets 20 to 21, 25 to 25, and holds 7 records after them: "
        "--allow-loss leaves them out, --allow-doubles goes on from offset 20"
    )
    lossy = of_compared(facts, window(0, 80), found, LOSS)
    assert (lossy.offset, lossy.missing) == (30, (Span(20, 22), Span(25, 26)))
    doubling = of_compared(facts, window(0, 80), found, DOUBLES)
    assert (doubling.offset, doubling.again) == (20, 7)


def test_a_copy_that_begins_after_what_was_committed_lacks_what_lies_between() -> None:
    refused = of_compared(logs((0, 80), (0, 40), 10), window(0, 80), Aligned(15, 5), NOTHING)
    assert "the copy lacks source offsets 10 to 14" in refused.refusal


def test_a_copy_that_has_lost_its_end_gets_it_again() -> None:
    found = of_compared(logs((0, 80), (0, 40), 40), window(0, 80), Aligned(0, 30), NOTHING)
    assert found.offset == 30
    assert "it has lost offsets 30 to 39, which were committed" in found.how


def newest(source: str, copy: str, committed: int | None = None) -> Beginning:
    """Records like ``a1 b1 a2``: a key and a version each, ``-`` for a tombstone."""
    originals = [
        KeyedRecord(offset, each[:1].encode(), each.encode(), each.endswith("-"))
        for offset, each in enumerate(source.split())
    ]
    copies = NewestCopies()
    for each in copy.split():
        copies.feed(each[:1].encode(), each.encode())
    found = newest_held(originals, copies)
    return of_newest(logs((0, len(originals)), (0, 9), committed), originals, found, NOTHING)


@pytest.mark.parametrize(
    ("source", "copy", "offset", "again"),
    [
        ("a1 b1 a2 c1", "a1 b1 a2", 3, 0),
        ("a1 b1 a2 c1", "b1 a2", 3, 0),  # compacted
        ("b1 a2 c1", "a1 b1 a2", 2, 0),  # compacted at the source
        ("a1 b1 a2 c1 d1", "a1 b1 a2 c1 a1 b1", 2, 2),  # it went back, and a1 is the newest in the copy
        ("a1 b1 a2 c1 d1", "a1 b1 a2 c1 a1 b1 a2", 4, 0),
        ("a1 b1 a2 a3", "a1 b1 b1", 2, 0),
        ("a1 a- b1", "b1", 3, 0),  # the tombstone is gone as well
    ],
)
def test_a_compacted_copy_goes_on_where_its_newest_records_are_the_sources(
    source: str, copy: str, offset: int, again: int
) -> None:
    found = newest(source, copy)
    assert (found.offset, found.again) == (offset, again)
