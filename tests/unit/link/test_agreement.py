"""How far two logs agree, by leader epochs: each case is a position and both logs, with what may be said of them."""

import uuid
from dataclasses import replace

import pytest

from appliance.errors import BrokerBusy
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.agreement import Agreement, CopyLog, SourceLog, agree
from appliance.link.model.position import ANYBODY, NOBODY, CopyEnd, Loss, Position

SOURCE, COPY, OTHER = uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=9)
WRITTEN = CopyEnd(12, 3, 7, 1)
HELD = Position(SOURCE, COPY, 10, leader_epoch=5, copy_end=WRITTEN)
HERE = SourceLog(SOURCE, 10, leader_epoch=5)
THERE = CopyLog(Partition("T.copy", 0), COPY, 12, leader_epoch=3)
"""A position at 10, with both logs as they were at its last write."""


def judged(held: Position = HELD, source: SourceLog | None = HERE, copy: CopyLog = THERE) -> Agreement:
    return agree("T", held, source, copy)


@pytest.mark.parametrize(
    ("held", "source", "expected"),
    [
        (HELD, HERE, Agreement(10, 0, 0)),
        (HELD, replace(HERE, end=14), Agreement(10, 4, 0)),
        (HELD, replace(HERE, end=9), Agreement(10, 0, 0)),
        (HELD, SourceLog(SOURCE, 14, 6, epochs_end=10), Agreement(10, 4, 0)),
        (HELD, SourceLog(SOURCE, 14, 6, epochs_end=12), Agreement(10, 4, 0)),
        (HELD, SourceLog(SOURCE, 14, 6, epochs_end=6), Agreement(6, 8, 4, lost="from 6")),
        (HELD, SourceLog(SOURCE, 6, 6, epochs_end=6), Agreement(6, 0, 4, lost="from 6")),
        (HELD, SourceLog(SOURCE, 10, 6, epochs_end=6), Agreement(6, 4, 4, lost="from 6")),
        (HELD, SourceLog(SOURCE, None, 6, epochs_end=6), Agreement()),
        (HELD, SourceLog(SOURCE, 14, 4), Agreement()),
        (HELD, SourceLog(SOURCE, 14, 6), Agreement(10, 4, 0, by_ends=True)),
        (HELD, SourceLog(SOURCE, 14, 6, epochs_end=-1), Agreement(10, 4, 0, by_ends=True)),
        (replace(HELD, leader_epoch=-1), SourceLog(SOURCE, 14, 6), Agreement(10, 4, 0, by_ends=True)),
        (replace(HELD, leader_epoch=-1), SourceLog(SOURCE, 6, 6), Agreement(6, None, 4, by_ends=True, lost="some")),
        (HELD, None, Agreement()),
    ],
    ids=[
        "copied to its end",
        "behind",
        "an end that was asked for a moment before the position",
        "another leader that has lost nothing",
        "another leader, and records of the old one past the position",
        "truncated and written on past the position",
        "truncated",
        "truncated and written on to the position",
        "a leader that does not tell its end",
        "metadata that name a former leader",
        "brokers without the request",
        "a leader that knows no epoch as old",
        "a position without an epoch",
        "a position without an epoch, and a shorter log",
        "a silent source",
    ],
)
def test_a_source_agrees_as_far_as_its_leader_epochs_say(
    held: Position, source: SourceLog | None, expected: Agreement
) -> None:
    found = judged(held, source)
    what = "the source has lost records that were copied"
    texts = {"": "", "some": what, "from 6": f"{what}: offsets 6 to 9"}
    assert found == replace(expected, lost=texts[expected.lost])


LOST_FROM_8 = "T.copy-0 has lost what it had acknowledged, offsets 8 to 11 of the copy"


@pytest.mark.parametrize(
    ("copy", "reason"),
    [
        (replace(THERE, topic_id=None), "destination topic T.copy is not there any more"),
        (replace(THERE, topic_id=OTHER), "destination topic T.copy was deleted and made anew"),
        (replace(THERE, end=8, leader_epoch=4, epochs_end=8), LOST_FROM_8),
        (replace(THERE, end=20, leader_epoch=4, epochs_end=8, last_batch=False), LOST_FROM_8),
        (replace(THERE, end=11, leader_epoch=4, epochs_end=8), LOST_FROM_8),
        (
            replace(THERE, end=20, leader_epoch=4, epochs_end=-1, last_batch=False),
            "offsets up to 11, its leader does not know which, of the copy",
        ),
        (replace(THERE, end=None, error=BrokerBusy("silence", "NOT_LEADER")), "nobody knows what T.copy-0 holds"),
        (replace(THERE, end=11, leader_epoch=2), "nobody knows what T.copy-0 holds: metadata name a former leader"),
    ],
    ids=["deleted", "made anew", "shortened", "filled", "filled to the end", "filled somewhere", "silent", "deposed"],
)
@pytest.mark.parametrize("source", [HERE, None], ids=["with its source", "without"])
def test_of_a_copy_that_is_not_what_was_written_no_loss_is_called_a_number(
    source: SourceLog | None, copy: CopyLog, reason: str
) -> None:
    found = judged(HELD, source, copy)
    assert reason in found.unrelated + found.lost + found.unknown
    assert found.uncopied is None


@pytest.mark.parametrize(
    "copy",
    [
        THERE,
        replace(THERE, end=30),
        replace(THERE, end=11),
        replace(THERE, end=30, leader_epoch=4, epochs_end=12),
        replace(THERE, end=30, leader_epoch=4, epochs_end=8, last_batch=True),
        replace(THERE, end=12, leader_epoch=4, last_batch=True),
    ],
    ids=[
        "as written",
        "written to by others",
        "whose last marker is on its way",
        "another leader",
        "a leader that changed without a loss right before the write",
        "brokers without the request",
    ],
)
def test_a_copy_that_holds_what_was_written_is_whole(copy: CopyLog) -> None:
    assert judged(copy=copy) == Agreement(10, 0, 0)


def test_case_760_of_a_marker_that_is_on_its_way_to_a_new_leader_nobody_says_that_it_is_lost() -> None:
    assert judged(copy=replace(THERE, end=11, leader_epoch=4, epochs_end=11)).lost == ""


def test_a_copy_that_was_not_written_by_a_lane_is_judged_by_ends_and_epochs_alone() -> None:
    for producer in (NOBODY, ANYBODY):
        written = replace(WRITTEN, producer_id=producer)
        moved = replace(THERE, end=20, leader_epoch=4)
        assert moved.is_decided(written)
        assert moved.loss(written) is None
        assert replace(moved, epochs_end=8).loss(written) == Loss(8)


def test_both_logs_may_have_lost_something_and_a_topic_made_anew_has_nothing_to_compare() -> None:
    both = judged(HELD, SourceLog(SOURCE, 14, 6, epochs_end=6), replace(THERE, end=8, leader_epoch=4, epochs_end=8))
    assert both.lost == f"{LOST_FROM_8}; the source has lost records that were copied: offsets 6 to 9"
    assert (both.uncopied, both.lost_at_source) == (None, 4)
    anew = judged(HELD, replace(HERE, topic_id=OTHER))
    assert anew == Agreement(unrelated="source topic T was deleted and made anew since it was copied")
