"""The detection of losses from the end of a copy (invariant J)."""

import uuid
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from appliance.engine.write import copies
from appliance.engine.write.copies import NEVER_WRITTEN, CopyExaminer
from appliance.errors import ApplianceError, BrokerBusy, CopyShortened
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.fetch import FetchedPartition
from appliance.kafka.client.offsets import Bound
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.kafka.records.committed import AbortedTransaction
from appliance.link.client import log_ends
from appliance.link.client.log_ends import copy_losses, is_intact
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import CopyEnd, Loss, Position
from tests.support.batches import control, made

COPY = Partition("orders.copy", 0)
ABORT, COMMIT = 0, 1
TRANSACTIONAL = 0x10
OURS = CopyEnd(offset=11, leader_epoch=3, producer_id=4000, producer_epoch=7)
"""Records at offsets 0 to 9, and their marker at 10."""


def written(first: int, count: int, producer_id: int = 4000, epoch: int = 7) -> bytes:
    records = [(1_700_000_000_000, None, b"value %d" % number, []) for number in range(count)]
    return made(records, first, attributes=TRANSACTIONAL, producer_id=producer_id, producer_epoch=epoch)


def fetched(*batches: bytes, aborted: tuple[AbortedTransaction, ...] = ()) -> FetchedPartition:
    return FetchedPartition(
        Partition("orders.copy", 0), ErrorCode.none, memoryview(b"".join(batches)), aborted, 100, None
    )


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
    aborted = (AbortedTransaction(4000, 0),)
    assert not is_intact(fetched(written(0, 10), control(10, 4000, ABORT), aborted=aborted), OURS)


class Log:
    """A copy's log as its leader reports it, through the functions that are called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, start: int, end: int, stable_end: int | None = None) -> None:
        self._offsets = {
            Bound.START: start,
            Bound.END: end,
            Bound.STABLE_END: end if stable_end is None else stable_end,
        }
        for name in ("try_offsets", "list_offsets", "epoch_ends", "fetch_partition"):
            for module in (copies, log_ends):
                monkeypatch.setattr(module, name, getattr(self, name))

    async def try_offsets(self, *asked: Any) -> tuple[dict[Partition, int], dict[Partition, ApplianceError]]:
        return await self.list_offsets(*asked), {}

    async def list_offsets(self, *asked: Any) -> dict[Partition, int]:
        return dict.fromkeys(asked[2], self._offsets[asked[3]])

    async def epoch_ends(self, *asked: Any) -> tuple[dict[Partition, int], dict[Partition, ApplianceError]]:
        return dict.fromkeys(asked[2], self._offsets[Bound.END]), {}

    async def fetch_partition(self, *_: Any) -> FetchedPartition:
        raise AssertionError("nothing is left that could be read")


class Destination(KafkaCluster):
    """A cluster that only has brokers to connect to."""

    def __init__(self) -> None:
        pass


async def refusal(end: CopyEnd | None) -> str:
    """The reason why the copy must not be written to; empty if it may be."""
    found = await CopyExaminer(Destination(), Metadata("", 0, {}, {}), 4000, {}).examine({COPY: end})
    assert (COPY in found.ends) is not (COPY in found.refused)
    return str(found.refused.get(COPY, ""))


async def test_a_copy_that_retention_has_emptied_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    Log(monkeypatch, start=11, end=11)
    assert await refusal(OURS) == ""


async def test_case_36_a_copy_of_which_retention_has_deleted_more_than_is_remembered_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Before, it was read from its remembered end, which its leader does not have, and waited for ever without a remedy.
    Log(monkeypatch, start=25, end=25)
    text = await refusal(OURS)
    assert "held records from offset 11 to 24, deleted by now, that no position accounts for" in text
    assert "appliance resume --from" in text


async def test_a_copy_that_was_never_written_to_may_be_empty_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    Log(monkeypatch, start=0, end=0)
    assert await refusal(NEVER_WRITTEN) == ""
    Log(monkeypatch, start=3, end=3)
    assert "that no position accounts for" in await refusal(NEVER_WRITTEN)


async def test_a_copy_in_which_a_transaction_is_open_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    Log(monkeypatch, start=0, end=3, stable_end=2)
    assert "open transaction below offset 3" in await refusal(None)


@pytest.mark.parametrize("stable_end", [0, 9])
def test_nothing_is_said_of_an_end_below_which_a_transaction_is_open(stable_end: int) -> None:
    with pytest.raises(BrokerBusy, match="open transaction below offset 10"):
        is_intact(replace(fetched(), stable_end=stable_end), OURS)


async def test_case_68_what_others_appended_is_looked_through_for_our_records_a_part_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Before, one check read all of it, in any amount.
    Log(monkeypatch, start=0, end=311)
    fetches: list[int] = []

    async def fetch_partition(*asked: Any) -> FetchedPartition:
        fetches.append(asked[3])
        data = written(asked[3], 1, producer_id=4000 if asked[3] == 310 else 4001, epoch=8)
        return replace(fetched(data), stable_end=311)

    monkeypatch.setattr(copies, "fetch_partition", fetch_partition)
    search_ends: copies.SearchEnds = {}
    looks = []
    while len(fetches) < 300:
        before = len(fetches)
        found = await CopyExaminer(Destination(), Metadata("", 0, {}, {}), 4000, search_ends).examine({COPY: OURS})
        looks.append(str(found.refused[COPY]))
        assert len(fetches) - before <= copies.FETCHES_MAX
    assert fetches == list(range(11, 311))
    assert "is looked through for records of this lane past offset 11" in looks[0]
    assert "holds records from offset 310 on that no position accounts for" in looks[-1]
    assert search_ends == {}


@pytest.mark.parametrize("is_asked", [True, False])
async def test_case_490_a_loss_whose_place_no_leader_knows_is_told_without_one(
    is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It was told to begin at the copy's end, far past the remembered one, and the map was not cut.
    Log(monkeypatch, start=0, end=15)
    others = written(0, 10, producer_id=4001), control(10, 4001, COMMIT), written(11, 4, producer_id=4001)

    async def epoch_ends(*_: Any) -> tuple[dict[Partition, int], dict[Partition, ApplianceError]]:
        return {COPY: -1} if is_asked else {}, {}

    async def fetch_partition(*_: Any) -> FetchedPartition:
        return fetched(*others)

    for module in (copies, log_ends):
        monkeypatch.setattr(module, "epoch_ends", epoch_ends)
        monkeypatch.setattr(module, "fetch_partition", fetch_partition)
    topic = Topic("orders.copy", uuid.uuid4(), False, (1,), epochs=(4,))
    metadata = Metadata("", 0, {}, {topic.name: topic})
    found = await CopyExaminer(Destination(), metadata, 4000, {}).examine({COPY: OURS})
    error = found.refused[COPY]
    assert isinstance(error, CopyShortened)
    assert "has lost what it had acknowledged, offsets up to 10, its leader does not know which, of the copy" in str(
        error
    )
    assert await copy_losses(Destination(), metadata, {COPY: OURS}) == {COPY: Loss(15, is_known=False)}
    held = Position(uuid.uuid4(), uuid.uuid4(), 9, 0, copy_end=OURS, tail=OffsetTail.begin(9, 11))
    stopped = held.stop_shortened(str(error), 1, Loss(error.end, error.is_known))
    assert stopped.tail == OffsetTail.begin(9, 15)
    assert stopped.stop_shortened(str(error), 2, Loss(17, is_known=False)) is stopped
