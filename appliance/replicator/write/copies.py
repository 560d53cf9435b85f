"""The ends of a lane's copies: they hold what was written to them, and no more (invariants H and J), or are refused.

A copy that an unclean election, or a lost disk, has shortened ends below the end that is remembered; but by the time
it is looked at markers, or records of a transaction that was aborted, may have filled the hole. So the leader is asked
how far it holds what was written up to the epoch of that time (KIP-101); where that is too little, or not known, the
batch that lies at the end is looked at, since leaders may have changed, without any loss, before it was written.

A copy that holds committed records of this lane past the remembered end shows that positions have been lost; so does
one of which retention has deleted more than is remembered. A copy in which a transaction is open is not written to: it
may be a late batch of an earlier epoch of this lane, which the next commit would make visible (KAFKA-14402).

Others may have written past the remembered end too, and much: all of it has to be looked through for records of this
lane, but not at once. A look reads up to some megabytes, and the next one goes on from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from appliance.errors import ApplianceError, BrokerBusy, CopyShortened, PartitionStopped
from appliance.kafka.client.fetch import Fetched, FetchLimits
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, epoch_ends, list_offsets, try_offsets, undecided
from appliance.kafka.client.partition_reader import fetch_partition
from appliance.kafka.protocol.metadata import UNKNOWN_EPOCH, Metadata, Partition
from appliance.kafka.records import batch
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.committed import committed
from appliance.link.model.position import ANYBODY, LOST, NOBODY, UNACCOUNTED, CopyEnd

NEVER_WRITTEN = CopyEnd(0, UNKNOWN_EPOCH, ANYBODY, UNKNOWN_EPOCH)
"""The end of a copy that was made anew: whatever it holds is not what was written to the one before (invariant H)."""

_LIMITS = FetchLimits(1024 * 1024, wait=0)
_FETCHES_MAX = 64
"""Fetches of that size that a look at a copy takes, at most."""

UNFINISHED = "LOOK_UNFINISHED"
"""The code of a copy that another look has to go on with; no broker's."""

LookedTo = dict[tuple[Partition, int, CopyEnd, frozenset[int]], int]
"""Offsets up to which unfinished looks have found nothing: by the copy, its leader's epoch, its end, and producers."""


def as_found(offset: int, metadata: Metadata, copy: Partition) -> CopyEnd:
    """The end of a copy of which nothing is remembered, as its leader says it."""
    return CopyEnd(offset, metadata.leader_epoch(*copy), NOBODY, UNKNOWN_EPOCH)


@dataclass(frozen=True, slots=True)
class CopyEnds:
    """``ends`` of the copies that may be written to, and why the others may not be."""

    ends: Mapping[Partition, int]
    refused: Mapping[Partition, ApplianceError] = field(default_factory=dict)


async def examine_copies(
    cluster: Cluster,
    metadata: Metadata,
    copies: Mapping[Partition, CopyEnd | None],
    producer_id: int,
    looked_to: LookedTo,
) -> CopyEnds:
    """Find where each copy ends, given its remembered end; refused are those that hold less, or more.

    The caller, whose producer has that id, has fenced whoever wrote there before, so nothing is under way.
    ``looked_to`` is kept from look to look.
    """
    ends, refused = await try_offsets(cluster, metadata, copies, Bound.END)
    stable_ends, unknown = await try_offsets(cluster, metadata, ends, Bound.STABLE_END)
    refused |= unknown
    for copy, stable_end in stable_ends.items():
        if stable_end < ends[copy]:
            refused[copy] = undecided(copy, ends[copy])
    remembered = {copy: end for copy, end in copies.items() if copy in ends and end is not None}
    asked = {copy: end.leader_epoch for copy, end in remembered.items() if end.leader_epoch >= 0}
    held, unanswered = await epoch_ends(cluster, metadata, asked)
    refused |= unanswered
    for copy, end in remembered.items():
        if copy in refused:
            continue
        examined = _Examined(cluster, metadata, copy, end, ends[copy], looked_to)
        try:
            if not await examined.is_whole(held.get(copy)):
                refused[copy] = _lost(copy, end, min(ends[copy], max(held.get(copy, ends[copy]), 0)))
            elif (
                unaccounted := await examined.first_past_the_end(frozenset({end.producer_id, producer_id}))
            ) is not None:
                what = f"holds records from offset {unaccounted} on"
                left = end.producer_id == ANYBODY and end != NEVER_WRITTEN
                refused[copy] = _written_after_failback(copy, what) if left else _unaccounted(copy, what)
        except ApplianceError as error:
            refused[copy] = error
    return CopyEnds({copy: end for copy, end in ends.items() if copy not in refused}, refused)


async def lost_from(cluster: Cluster, metadata: Metadata, copies: Mapping[Partition, CopyEnd]) -> dict[Partition, int]:
    """The offsets from which on copies have lost what was written up to these ends; whole copies are left out.

    Others may have written in its place since.

    Raises:
        ApplianceError: it cannot be told.
    """
    ends = await list_offsets(cluster, metadata, copies, Bound.END)
    epochs = {copy: end.leader_epoch for copy, end in copies.items() if end.leader_epoch >= 0}
    held, unanswered = await epoch_ends(cluster, metadata, epochs)
    for error in unanswered.values():
        raise error
    lost = {}
    for copy, end in copies.items():
        if not await _Examined(cluster, metadata, copy, end, ends[copy], {}).is_whole(held.get(copy)):
            lost[copy] = min(ends[copy], max(held.get(copy, ends[copy]), 0))
    return lost


@dataclass(frozen=True, slots=True)
class _Examined:
    """A copy that is remembered to ``end``, and ends at ``found``."""

    cluster: Cluster
    metadata: Metadata
    copy: Partition
    end: CopyEnd
    found: int
    looked_to: LookedTo

    async def is_whole(self, held: int | None) -> bool:
        """True when the last batch that was written is there, and committed; one that was deleted counts as there.

        ``held`` is how far the leader holds what was written up to that epoch, None where it is not known.
        """
        if self.found < self.end.offset:
            return False
        if held is not None and held >= self.end.offset:
            return True
        if self.end.producer_id in (NOBODY, ANYBODY):
            return held is None  # of the last batch nothing is known
        last = self.end.offset - 2
        return await self._start() > last or is_intact(await self._fetch(last), self.end)

    async def first_past_the_end(self, producer_ids: frozenset[int]) -> int | None:
        """The offset of the first committed batch past the end that one of these producers wrote.

        Raises:
            PartitionStopped: retention has deleted what lay there, and nobody can tell any more who wrote it.
            BrokerBusy: there is more than a look reads; the next one goes on.
        """
        key = self.copy, self.metadata.leader_epoch(*self.copy), self.end, producer_ids
        at = self.looked_to.pop(key, self.end.offset)
        if at < self.found and at < (start := await self._start()):
            raise _unaccounted(self.copy, f"held records from offset {at} to {start - 1}, deleted by now,")
        for _ in range(_FETCHES_MAX):
            if at >= self.found:
                return None
            fetched = await self._fetch(at)
            _require_decided(fetched, at)
            batches = list(batch.split(fetched.records))
            for each in committed(batches, fetched.aborted):
                if ANYBODY in producer_ids or each.header.producer_id in producer_ids:
                    return each.header.base_offset
            at = batches[-1].header.last_offset + 1 if batches else self.found
        self.looked_to[key] = at
        text = f"{self.copy[0]}-{self.copy[1]} is looked through for records of this lane past offset {self.end.offset}"
        raise BrokerBusy(text, UNFINISHED)

    async def _start(self) -> int:
        return (await list_offsets(self.cluster, self.metadata, [self.copy], Bound.START))[self.copy]

    async def _fetch(self, offset: int) -> Fetched:
        return await fetch_partition(self.cluster, self.metadata, self.copy, offset, "positions", _LIMITS)


def is_intact(fetched: Fetched, end: CopyEnd) -> bool:
    """True when the fetched, from the last offset before the marker on, begins with what was written there.

    Raises:
        BrokerBusy: it cannot be told, as somebody's transaction is open below that.
    """
    last = end.offset - 2
    _require_decided(fetched, last)
    batches = list(batch.split(fetched.records))
    there = [each for each in batches if each.header.base_offset <= last <= each.header.last_offset]
    if not there:
        return True  # compaction alone leaves holes
    return there[0] in committed(batches, fetched.aborted) and _is_of(there[0], end)


def _require_decided(fetched: Fetched, offset: int) -> None:
    if fetched.stable_end <= offset:
        raise undecided(fetched.partition, offset + 1)


def _is_of(found: Batch, end: CopyEnd) -> bool:
    header = found.header
    writer = header.producer_id, header.producer_epoch
    return header.last_offset == end.offset - 2 and writer == (end.producer_id, end.producer_epoch)


def _lost(copy: Partition, end: CopyEnd, found: int) -> CopyShortened:
    name = f"{copy[0]}-{copy[1]}"
    return CopyShortened(
        f"{name} {LOST}, offsets {found} to {end.offset - 1} of the copy: copy it again by "
        "`appliance resume --from` an offset of the source, or go on after the loss by `appliance resume` alone",
        found,
    )


def _unaccounted(copy: Partition, what: str) -> PartitionStopped:
    return PartitionStopped(
        f"{copy[0]}-{copy[1]} {what} {UNACCOUNTED}: the positions topic lost its end, or somebody else "
        "wrote there; choose by `appliance resume --from` an offset of the source"
    )


def _written_after_failback(copy: Partition, what: str) -> PartitionStopped:
    return PartitionStopped(
        f"{copy[0]}-{copy[1]} {what} {UNACCOUNTED}: a producer wrote there after the failback: stop it, and bring that "
        "back by `appliance failover` and `appliance failback` with --topic, or choose by `appliance resume --from` an "
        "offset of the source"
    )
