"""What the end of a copy says about whether it has lost anything (invariant J)."""

from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from appliance.errors import BrokerBusy
from appliance.kafka.client.fetch import Fetched
from appliance.kafka.records.committed import Aborted
from appliance.link.model.position import CopyEnd
from appliance.replicator.write.copies import is_intact
from tests.support.batches import control, made

ABORT, COMMIT = 0, 1
TRANSACTIONAL = 0x10
OURS = CopyEnd(offset=11, leader_epoch=3, producer_id=4000, producer_epoch=7)
"""Records at offsets 0 to 9, and their marker at 10."""


def written(first: int, count: int, producer_id: int = 4000, epoch: int = 7) -> bytes:
    records = [(1_700_000_000_000, None, b"value %d" % number, []) for number in range(count)]
    return made(records, first, attributes=TRANSACTIONAL, producer_id=producer_id, producer_epoch=epoch)


def fetched(*batches: bytes, aborted: tuple[Aborted, ...] = ()) -> Fetched:
    return Fetched(("orders.copy", 0), ErrorCode.none, memoryview(b"".join(batches)), aborted, 100, None)


def test_a_copy_that_ends_with_our_last_batch_is_intact() -> None:
    assert is_intact(fetched(written(0, 10), control(10, 4000, COMMIT)), OURS)


def test_a_copy_whose_last_batch_compaction_took_is_intact() -> None:
    assert is_intact(fetched(written(20, 5)), OURS)


@pytest.mark.parametrize(
    "batches",
    [
        (written(0, 10, producer_id=4001), control(10, 4001, COMMIT)),
        (written(0, 10, epoch=8), control(10, 4000, COMMIT)),
        (written(5, 10), control(15, 4000, COMMIT)),
        (written(0, 5), written(5, 6), control(11, 4000, COMMIT)),
    ],
    ids=["another's batch", "a later epoch's batch", "a longer batch", "two batches"],
)
def test_a_copy_that_ends_with_something_else_has_lost_what_was_there(batches: tuple[bytes, ...]) -> None:
    assert not is_intact(fetched(*batches), OURS)


def test_a_copy_that_ends_with_a_batch_like_ours_that_was_aborted_has_lost_what_was_there() -> None:
    aborted = (Aborted(4000, 0),)
    assert not is_intact(fetched(written(0, 10), control(10, 4000, ABORT), aborted=aborted), OURS)


@pytest.mark.parametrize("stable_end", [0, 9])
def test_nothing_is_said_of_an_end_below_which_a_transaction_is_open(stable_end: int) -> None:
    with pytest.raises(BrokerBusy, match="open transaction below offset 10"):
        is_intact(replace(fetched(), stable_end=stable_end), OURS)
