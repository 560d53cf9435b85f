"""Where the copies of a lane end, and whether they still hold what was written to them (invariant J).

A copy that an unclean election, or a lost disk, has shortened ends below the end that is remembered; but by the time
it is looked at markers, or records of a transaction that was aborted, may have filled the hole. So the leader is asked
how far it holds what was written up to the epoch of that time (KIP-101); only where that is too little the batch that
lies at the end is looked at, since leaders may have changed, without any loss, before it was written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from appliance.errors import ApplianceError, PartitionStopped
from appliance.kafka import batch
from appliance.kafka.answer import failure
from appliance.kafka.batch import Batch
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.committed import committed
from appliance.kafka.fetch import Fetched, FetchLimits, Wanted, fetch
from appliance.kafka.leader_epochs import epoch_ends
from appliance.kafka.metadata import Metadata
from appliance.kafka.offsets import Bound, Partition, try_offsets
from appliance.replicator.position import LOST, CopyEnd

_BATCH_BYTES = 1024 * 1024
_LIMITS = FetchLimits(_BATCH_BYTES, wait=0)


@dataclass(frozen=True, slots=True)
class CopyEnds:
    """``ends`` of the copies that may be written to, and why the others may not be."""

    ends: Mapping[Partition, int]
    refused: Mapping[Partition, ApplianceError] = field(default_factory=dict)


async def examine_copies(
    cluster: KafkaCluster, metadata: Metadata, copies: Mapping[Partition, CopyEnd | None]
) -> CopyEnds:
    """Where each copy ends, given where it is remembered to; refused are those that have lost something.

    The caller has fenced whoever wrote there before, so nothing is under way.
    """
    ends, refused = await try_offsets(cluster, metadata, copies, Bound.END)
    remembered = {copy: end for copy, end in copies.items() if copy in ends and end is not None}
    asked = {copy: end.leader_epoch for copy, end in remembered.items() if end.leader_epoch >= 0}
    held, unanswered = await epoch_ends(cluster, metadata, asked)
    refused |= unanswered
    for copy, end in remembered.items():
        if copy not in refused and not (ends[copy] >= end.offset and held.get(copy, end.offset) >= end.offset):
            try:
                if not await _holds(cluster, metadata, copy, end, ends[copy]):
                    refused[copy] = _lost(copy, end, min(ends[copy], max(held.get(copy, ends[copy]), 0)))
            except ApplianceError as error:
                refused[copy] = error
    return CopyEnds({copy: end for copy, end in ends.items() if copy not in refused}, refused)


async def _holds(cluster: KafkaCluster, metadata: Metadata, copy: Partition, end: CopyEnd, found: int) -> bool:
    """Whether the last batch that was written is there, and committed; one that was deleted by now counts as there."""
    last = end.offset - 2
    if found < end.offset:
        return False
    starts, failures = await try_offsets(cluster, metadata, [copy], Bound.START)
    for error in failures.values():
        raise error
    if starts[copy] > last:
        return True
    topic = metadata.topics[copy[0]]
    connection = await cluster.broker(metadata.leader(*copy), "positions")
    (answer,) = await fetch(connection, [Wanted(copy, topic.id, last, _BATCH_BYTES)], _LIMITS)
    return is_intact(answer, end)


def is_intact(fetched: Fetched, end: CopyEnd) -> bool:
    """Whether what was fetched, from the last offset before the marker on, begins with what was written there.

    Raises:
        BrokerBusy, BrokerRefused: the Fetch was answered with an error.
    """
    last = end.offset - 2
    if fetched.error is not ErrorCode.none:
        raise failure(fetched.error, f"fetch {fetched.partition[0]}-{fetched.partition[1]} from offset {last}")
    batches = list(batch.split(fetched.records))
    there = [each for each in batches if each.header.base_offset <= last <= each.header.last_offset]
    if not there:
        return True  # compaction alone leaves holes
    visible = list(committed(batches, fetched.aborted))
    return there[0] in visible and _is_of(there[0], end)


def _is_of(found: Batch, end: CopyEnd) -> bool:
    header = found.header
    writer = header.producer_id, header.producer_epoch
    return header.last_offset == end.offset - 2 and writer == (end.producer_id, end.producer_epoch)


def _lost(copy: Partition, end: CopyEnd, found: int) -> PartitionStopped:
    name = f"{copy[0]}-{copy[1]}"
    return PartitionStopped(
        f"{name} {LOST}, offsets {found} to {end.offset - 1} of the copy: copy it again by "
        "`appliance resume --from` an offset of the source, or go on after the loss by `appliance resume` alone"
    )
