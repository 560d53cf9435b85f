"""What the end of a copy says about whether it has lost anything (invariant J)."""

import pytest
from kio.schema.errors import ErrorCode

from appliance.errors import BrokerBusy
from appliance.kafka.committed import Aborted
from appliance.kafka.fetch import Fetched
from appliance.replicator.copies import is_intact
from appliance.replicator.position import CopyEnd
from tests.support.batches import control, made

ABORT, COMMIT = 0, 1
TRANSACTIONAL = 0x10
OURS = CopyEnd(offset=11, leader_epoch=3, producer_id=4000, producer_epoch=7)
"""Records at offsets 0 to 9, and their marker at 10."""


def written(first: int, count: int, producer_id: int = 4000, epoch: int = 7) -> bytes:
    records = [(1_700_000_000_000, None, b"value %d" % number, []) for number in range(count)]
    return made(records, first, attributes=TRANSACTIONAL, producer_id=producer_id, producer_epoch=epoch)


def fetched(*batches: bytes, aborted: tuple[Aborted, ...] = (), error: ErrorCode = ErrorCode.none) -> Fetched:
    return Fetched(("orders.copy", 0), error, memoryview(b"".join(batches)), aborted, 100, None)


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


def test_a_leader_that_does_not_tell_is_asked_again() -> None:
    with pytest.raises(BrokerBusy):
        is_intact(fetched(error=ErrorCode.not_leader_or_follower), OURS)
