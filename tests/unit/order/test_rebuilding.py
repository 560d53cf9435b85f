"""What two T-globals share, and what a cluster that is rebuilt answers for."""

import uuid

import pytest

from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.order import Digest, Epoch, HiddenLog, OrderRecord, Origin, Promise
from appliance.order.model.elections import Facts, voters
from appliance.order.model.rebuilding import REBUILD, REBUILDING, Maps, Shared, begun_again, is_stopped, shared
from appliance.order.names import aside_topic, order_naming

ORANGE, GRAPE = Origin("orange", 0), Origin("grape", 0)
EPOCH = Epoch(2, "grape")
PROMISE = Promise(EPOCH, ("grape", "orange"), (("grape", "orange"),), 1)


def maps(*runs: tuple[Origin, int, int, int]) -> Maps:
    """The maps of these runs: the origin, the first offset there and in T-global, and the number of records."""
    tails: dict[Origin, OffsetTail] = {}
    for origin, source, copy, length in runs:
        tails[origin] = tails.get(origin, OffsetTail.begin(0, 0)).with_run(source, copy, length)
    return {origin: [Segment(uuid.uuid4(), uuid.uuid4(), tail)] for origin, tail in tails.items()}


def test_the_shared_beginning_does_not_depend_on_how_runs_are_split_nor_on_offsets_in_t_global() -> None:
    own = maps((ORANGE, 0, 0, 6), (GRAPE, 0, 7, 4))
    theirs = maps((ORANGE, 0, 0, 2), (ORANGE, 2, 3, 4), (GRAPE, 0, 9, 4))
    assert shared(own, theirs) == Shared(10, None, 10, 10)


def test_what_follows_the_shared_beginning_begins_within_a_run() -> None:
    own = maps((ORANGE, 0, 0, 6), (GRAPE, 0, 7, 4))
    theirs = maps((ORANGE, 0, 0, 3), (GRAPE, 0, 4, 4), (ORANGE, 3, 9, 2))
    assert shared(own, theirs) == Shared(3, 3, 10, 9)
    assert shared(theirs, own) == Shared(3, 4, 9, 10)


def test_the_longer_one_parts_where_the_other_one_ends() -> None:
    own = maps((ORANGE, 0, 0, 6), (GRAPE, 0, 7, 4))
    assert shared(own, maps((ORANGE, 0, 0, 6), (GRAPE, 0, 7, 1))) == Shared(7, 8, 10, 7)
    assert shared(own, {}) == Shared(0, 0, 10, 0)
    assert shared({}, own) == Shared(0, None, 0, 10)


@pytest.mark.parametrize(
    ("before", "owes"),
    [
        (OrderRecord(), 9),
        (OrderRecord(Epoch(1, "orange"), 20), 9),
        (OrderRecord(EPOCH, 12), 12),
        (OrderRecord(EPOCH, 3, owes=15), 15),
    ],
)
def test_a_rebuilt_cluster_has_no_vote_below_all_that_it_may_have_acknowledged(before: OrderRecord, owes: int) -> None:
    home = Facts(PROMISE, OrderRecord(EPOCH, 5, hidden=HiddenLog(EPOCH, 0, 0, 0, 9, Digest(), {})))
    record = begun_again(home, before)
    assert (record.accepted, record.rank, record.owes, record.hidden, record.end) == (EPOCH, 0, owes, None, None)
    assert not is_stopped(record)
    assert is_stopped(OrderRecord(stopped=f"it was shortened: {REBUILD}"))
    assert record.stopped == REBUILDING
    assert voters(PROMISE, {"orange": Facts(PROMISE, record)}) == {}


def test_what_was_set_aside_is_no_topic_of_the_order() -> None:
    naming = order_naming(".*")
    assert naming.copies("orders", internal=False)
    assert not naming.copies(aside_topic("orders-global", 2), internal=False)
    assert not naming.copies("orders-global", internal=False)
