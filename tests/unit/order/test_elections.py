"""Votes in an order: which promises count, and when older memberships do no longer."""

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.order import Epoch, OrderRecord, Promise
from appliance.order.model.beats import SILENCE, LaneBeat, Watch
from appliance.order.model.elections import is_accepted_everywhere

OLD, NEW = ("grape", "lemon", "orange"), ("grape", "lemon", "melon")
EPOCH = Epoch(2, "melon")
KEY, OTHER = Partition("orders", 0), Partition("orders", 1)


def _lane(promise: Promise, *keys: Partition) -> LaneCheckpoint:
    return LaneCheckpoint(promise=promise, orders=dict.fromkeys(keys, OrderRecord(Epoch(1, "orange"), 5)))


def test_case_1353_an_older_membership_counts_until_its_clusters_have_told_all_partitions_that_they_have() -> None:
    # Partition 1 was opened by orange and lemon. Melon knew of partition 0 alone, and then of no older membership.
    promise = Promise(EPOCH, NEW, (NEW, OLD), 0)
    mine = {KEY: OrderRecord(EPOCH, 9)}
    grape, lemon = _lane(promise, KEY), _lane(promise, KEY, OTHER)
    assert not is_accepted_everywhere(promise, "melon", mine, {"grape": grape, "lemon": LaneCheckpoint()})
    assert not is_accepted_everywhere(promise, "melon", mine, {"grape": grape, "lemon": lemon})
    mine[OTHER] = OrderRecord(EPOCH, 5)
    assert is_accepted_everywhere(promise, "melon", mine, {"grape": grape, "lemon": lemon})
    older = _lane(Promise(Epoch(1, "orange"), OLD, (OLD,), 0), KEY)
    assert not is_accepted_everywhere(promise, "melon", mine, {"grape": grape, "lemon": older})


def test_case_1354_who_was_declared_lost_seconds_no_later_suspicion() -> None:
    # Orange was declared lost, and is back. Lemon alone suspected the home, which only it could not reach.
    promise = Promise(Epoch(2, "grape"), OLD, (OLD,), 0, lost=("orange",))
    watch = Watch("lemon", 0, 0.0)
    watch.promised(promise.epoch, 0.0)
    watch.hear("orange", LaneBeat(promise.epoch, works=True), SILENCE + 4)
    assert watch.suspects(SILENCE + 4)
    assert not any(watch.stands(promise, now, 0.0) for now in (SILENCE + 4, SILENCE + 5))
    watch.hear("orange", LaneBeat(promise.epoch, suspects=True), SILENCE + 5)
    assert watch.stands(promise, SILENCE + 5, 0.0)
