"""The ends of a lane's copies: each holds exactly what was written to it (invariants H and J), or is refused.

A copy shortened by an unclean election or a lost disk ends below the remembered end; but markers, or records of an
aborted transaction, may have filled the hole by the time of the check: ``link/model/agreement.py`` judges that.

Committed records of this lane past the remembered end show that positions were lost; so does retention that has deleted
beyond it. A copy with an open transaction is not written to: it may be a late batch of an earlier epoch of this lane,
which the next commit would make visible (KAFKA-14402).

Others may also have written past the remembered end, and much: all of it must be searched for records of this lane, but
not at once. A look reads some megabytes, and the next one continues from there.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from appliance.engine.model.admission import CopyEnds
from appliance.errors import ApplianceError, BrokerBusy, CopyShortened, PartitionStopped
from appliance.kafka.client.fetch import FetchedPartition, FetchLimits, fetch_partition
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, epoch_ends, list_offsets, try_offsets, undecided
from appliance.kafka.client.open_transactions import open_since
from appliance.kafka.protocol.metadata import UNKNOWN_EPOCH, Metadata, Partition
from appliance.kafka.records import batch
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.committed import committed
from appliance.link.client.log_ends import require_decided, with_last_batch
from appliance.link.model.agreement import CopyLog, lost_records
from appliance.link.model.position import ANYBODY, NOBODY, UNACCOUNTED, CopyEnd, Loss

NEVER_WRITTEN = CopyEnd(0, UNKNOWN_EPOCH, ANYBODY, UNKNOWN_EPOCH)
"""The end of a recreated copy: its records are not those written to the one before (invariant H)."""

OTHERS_ONLY = CopyEnd(0, UNKNOWN_EPOCH, NOBODY, UNKNOWN_EPOCH)
"""The end of a shared copy without a position: whatever it holds must be others'."""

_LIMITS = FetchLimits(1024 * 1024, wait=0)
FETCHES_MAX = 64
"""Most Fetches of that size in one look at a copy."""

UNFINISHED = "LOOK_UNFINISHED"
"""The code of a copy that needs another look; not a broker's."""

SearchEnds = dict[tuple[Partition, int, CopyEnd, frozenset[int]], int]
"""Offsets up to which unfinished searches have found nothing, by copy, its leader's epoch, its end, and producers."""


def as_found(offset: int, metadata: Metadata, copy: Partition) -> CopyEnd:
    """The end of a copy without a remembered end, from its leader."""
    return CopyEnd(offset, metadata.leader_epoch(*copy), NOBODY, UNKNOWN_EPOCH)


@dataclass(frozen=True, slots=True)
class CopyExaminer:
    """Finds where copies end, by metadata of the destination, and refuses those that hold less or more.

    Its user, whose producer has that id, has fenced all earlier writers, so no write is in flight, except others' in
    ``shared`` copies. ``search_ends`` are kept from search to search. ``former_ids`` are the link's further producer
    ids. ``remedy`` ends the reason of each refusal, in place of a link's.
    """

    cluster: Cluster
    metadata: Metadata
    producer_id: int
    search_ends: SearchEnds
    shared: bool = False
    former_ids: frozenset[int] = frozenset()
    remedy: str = ""

    async def examine(self, copies: Mapping[Partition, CopyEnd | None]) -> CopyEnds:
        """The end of each copy, given its remembered end."""
        cluster, metadata = self.cluster, self.metadata
        ends, refused = await try_offsets(cluster, metadata, copies, Bound.END)
        stable_ends, unknown = await try_offsets(cluster, metadata, ends, Bound.STABLE_END)
        refused |= unknown
        open_copies = {copy for copy, stable_end in stable_ends.items() if stable_end < ends[copy]}
        if self.shared and open_copies:
            open_copies, unknown_writers = await self._open_by_us(open_copies, copies)
            refused |= unknown_writers
        refused |= {copy: undecided(copy, ends[copy]) for copy in open_copies}
        remembered = {copy: end for copy, end in copies.items() if copy in ends and end is not None}
        epochs = {copy: end.leader_epoch for copy, end in remembered.items() if end.leader_epoch >= 0}
        leader_ends, unanswered = await epoch_ends(cluster, metadata, epochs)
        refused |= unanswered
        for copy, end in remembered.items():
            if copy not in refused:
                log = CopyLog(copy, end=ends[copy], epochs_end=leader_ends.get(copy))
                if refusal := await self._refusal(log, end, ends[copy]):
                    refused[copy] = refusal
        return CopyEnds({copy: end for copy, end in ends.items() if copy not in refused}, refused)

    async def _open_by_us(
        self, asked: Collection[Partition], remembered: Mapping[Partition, CopyEnd | None]
    ) -> tuple[set[Partition], Mapping[Partition, ApplianceError]]:
        """Those of the copies with an open transaction of this lane, and those of which it is not known."""
        openings, unknown = await open_since(self.cluster, self.metadata, asked)
        ours = set()
        for copy, since in openings.items():
            end = remembered.get(copy)
            if not since.keys().isdisjoint({self.producer_id, end.producer_id if end else self.producer_id}):
                ours.add(copy)
        return ours, unknown

    async def _refusal(self, log: CopyLog, end: CopyEnd, actual_end: int) -> ApplianceError | None:
        """The reason why a copy with that remembered end must not be written to."""
        copy = log.partition
        try:
            if loss := (await with_last_batch(self.cluster, self.metadata, log, end)).loss(end):
                return _copy_shortened(copy, end, loss, self.remedy)
            offset = await self.first_past_the_end(copy, end, actual_end)
        except ApplianceError as error:
            return error
        if offset is None:
            return None
        what = f"holds records from offset {offset} on"
        failed_back = end.producer_id == ANYBODY and end != NEVER_WRITTEN
        return _written_after_failback(copy, what) if failed_back else self._unaccounted(copy, what)

    async def first_past_the_end(self, copy: Partition, end: CopyEnd, actual_end: int) -> int | None:
        """The offset of the first committed batch past the end whose writer is not accounted for.

        Raises:
            PartitionStopped: retention has deleted the batches there, and their writer is unknown.
            BrokerBusy: there is more than a look reads; the next one continues.
        """
        writers = self._writers(end)
        key = copy, self.metadata.leader_epoch(*copy), end, writers
        at = self.search_ends.pop(key, end.offset)
        if at < actual_end:
            start = (await list_offsets(self.cluster, self.metadata, [copy], Bound.START))[copy]
            if at < start and not self.shared:
                raise self._unaccounted(copy, f"held records from offset {at} to {start - 1}, deleted by now,")
            at = max(at, start)
        for _ in range(FETCHES_MAX):
            if at >= actual_end:
                return None
            batches, following = await self._decided(copy, at, writers)
            for each in batches:
                if ANYBODY in writers or each.header.producer_id in writers:
                    return each.header.base_offset
            at = following if following and following > at else actual_end
        self.search_ends[key] = at
        text = f"{copy} is looked through for records of this lane past offset {end.offset}"
        raise BrokerBusy(text, UNFINISHED)

    def _writers(self, end: CopyEnd) -> frozenset[int]:
        """The producer ids whose records past the end are not accounted for; in a shared copy, only a lane's."""
        writers = {end.producer_id, self.producer_id}
        return frozenset(writers - {ANYBODY, NOBODY} if self.shared else writers) | self.former_ids

    def _unaccounted(self, copy: Partition, what: str) -> PartitionStopped:
        return PartitionStopped(
            f"{copy} {what} {UNACCOUNTED}: the positions topic lost its end, or somebody else "
            f"wrote there; {self.remedy or 'choose by `appliance resume --from` an offset of the source'}"
        )

    async def _decided(self, copy: Partition, at: int, writers: frozenset[int]) -> tuple[list[Batch], int | None]:
        """Some visible batches, and the offset to continue from; None at the end.

        All are decided, but others' in a shared copy.
        """
        if self.shared:
            fetched = await self._fetch(copy, at, replace(_LIMITS, committed=False))
            batches = list(fetched.batches())
            data = [each.header for each in batches if not each.header.attributes & batch.CONTROL]
            ours = [header.base_offset for header in data if header.producer_id in writers]
            if not ours:
                return [], batches[-1].header.last_offset + 1 if batches else None
            at = ours[0]
        fetched = await self._fetch(copy, at)
        require_decided(fetched, at)
        batches = list(fetched.batches())
        following = batches[-1].header.last_offset + 1 if batches else None
        return list(committed(batches, fetched.aborted)), following

    async def _fetch(self, copy: Partition, offset: int, limits: FetchLimits = _LIMITS) -> FetchedPartition:
        return await fetch_partition(self.cluster, self.metadata, copy, offset, "positions", limits)


def _copy_shortened(copy: Partition, end: CopyEnd, loss: Loss, remedy: str) -> CopyShortened:
    remedy = remedy or (
        "copy it again by "
        "`appliance resume --from` an offset of the source, or go on after the loss by `appliance resume` alone"
    )
    return CopyShortened(f"{lost_records(copy, end, loss)}: {remedy}", loss.end, loss.is_known)


def _written_after_failback(copy: Partition, what: str) -> PartitionStopped:
    return PartitionStopped(
        f"{copy} {what} {UNACCOUNTED}: a producer wrote there after the failback: stop it, and bring that "
        "back by `appliance failover` and `appliance failback` with --topic, or choose by `appliance resume --from` an "
        "offset of the source"
    )
