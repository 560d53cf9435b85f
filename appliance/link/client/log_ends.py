"""The logs of source partitions and of their copies, as their leaders tell them now: by a few requests to each leader.

``appliance/link/model/agreement.py`` judges them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from appliance.errors import ApplianceError, BrokerBusy
from appliance.kafka.client.fetch import FetchedPartition, FetchLimits, fetch_partition
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, epoch_ends, list_offsets, try_offsets, undecided
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.committed import committed
from appliance.link.model.agreement import CopyLog
from appliance.link.model.naming import Naming
from appliance.link.model.position import CopyEnd, Loss, Position

_LIMITS = FetchLimits(1024 * 1024, wait=0)


@dataclass(slots=True)
class EpochEnds:
    """The ends of leaders' epochs; those of former ones are asked for once: they do not move while one leader leads."""

    cluster: Cluster
    _known: dict[Partition, tuple[tuple[UUID, int, int], int]] = field(default_factory=dict)

    async def read(
        self, metadata: Metadata, epochs: Mapping[Partition, int], current: Collection[Partition] = ()
    ) -> tuple[dict[Partition, int], dict[Partition, ApplianceError]]:
        """The known ends of logs up to epochs older than their leaders'; and the errors of the others.

        Of ``current`` partitions also those up to the present leader's own epoch, which is the log's end.
        """
        keys = {
            p: (metadata.topics[p[0]].id, leads, epoch)
            for p, epoch in epochs.items()
            if 0 <= epoch < (leads := metadata.leader_epoch(*p)) or (0 <= epoch == leads and p in current)
        }
        requests = {p: key[2] for p, key in keys.items() if key[1] == key[2] or self._known.get(p, ((), 0))[0] != key}
        answers, failures = await epoch_ends(self.cluster, metadata, requests)
        self._known |= {p: (keys[p], end) for p, end in answers.items()}
        return {p: self._known[p][1] for p in keys if p not in requests or p in answers}, failures


async def log_ends(cluster: Cluster, metadata: Metadata, partitions: Collection[Partition]) -> dict[Partition, int]:
    """The known ends of logs, also above the high watermark: with acks=1 a producer takes what is there for written.

    A leader tells it as the end of its own epoch; if it lacks that request, its high watermark has to do.
    """
    ends, _ = await try_offsets(cluster, metadata, partitions, Bound.END)
    epochs = {p: epoch for p in ends if (epoch := metadata.leader_epoch(*p)) >= 0}
    epochs_ends, refused = await epoch_ends(cluster, metadata, epochs)
    return {p: max(end, epochs_ends.get(p, -1)) for p, end in ends.items() if p not in refused}


async def copy_logs(
    epochs: EpochEnds, metadata: Metadata, naming: Naming, positions: Mapping[Partition, Position]
) -> dict[Partition, CopyLog]:
    """The logs of the copies with these positions, by source partition."""
    names = {topic: naming.destination(topic) for topic, _ in positions}
    copies = {each: Partition(names[each.topic], each.number) for each in positions}
    logs = await _copy_logs(epochs, metadata, {copies[each]: position.copy_end for each, position in positions.items()})
    return {each: logs[copy] for each, copy in copies.items()}


async def copy_losses(
    cluster: Cluster, metadata: Metadata, written: Mapping[Partition, CopyEnd]
) -> dict[Partition, Loss]:
    """The places from which copies have lost records up to these ends; complete copies are left out."""
    logs = await _copy_logs(EpochEnds(cluster), metadata, written)
    for copy, log in logs.items():
        if doubt := log.doubt(written[copy]):
            raise log.error or BrokerBusy(f"nobody knows what {copy} holds: {doubt}", "NOT_LEADER_OR_FOLLOWER")
    return {copy: loss for copy, end in written.items() if (loss := logs[copy].loss(end))}


async def _copy_logs(
    epochs: EpochEnds, metadata: Metadata, written: Mapping[Partition, CopyEnd | None]
) -> dict[Partition, CopyLog]:
    """The log of each copy, given the end of what was written to it; an error of one affects no other."""
    ends, failures = await try_offsets(epochs.cluster, metadata, written, Bound.END)
    epochs_written = {copy: end.leader_epoch for copy in ends if (end := written[copy])}
    ends_of_epochs, unanswered = await epochs.read(metadata, epochs_written)
    failures |= unanswered
    logs = {}
    for copy, end in written.items():
        topic, epoch, error = metadata.topics.get(copy[0]), metadata.leader_epoch(*copy), failures.get(copy)
        log = CopyLog(copy, topic.id if topic else None, ends.get(copy), epoch, ends_of_epochs.get(copy), error=error)
        try:
            logs[copy] = await with_last_batch(epochs.cluster, metadata, log, end) if end and not error else log
        except ApplianceError as unknown:
            logs[copy] = replace(log, error=unknown)
    return logs


async def with_last_batch(cluster: Cluster, metadata: Metadata, log: CopyLog, written: CopyEnd) -> CopyLog:
    """The same, and unless ends and epochs decide, whether the last written batch is there; a deleted one is."""
    if log.is_decided(written):
        return log
    copy, last = log.partition, written.offset - 2
    if (await list_offsets(cluster, metadata, [copy], Bound.START))[copy] > last:
        return replace(log, last_batch=True)
    fetched = await fetch_partition(cluster, metadata, copy, last, "positions", _LIMITS)
    return replace(log, last_batch=is_intact(fetched, written))


def is_intact(fetched: FetchedPartition, end: CopyEnd) -> bool:
    """True when the fetched bytes, from the last offset before the marker on, begin with the written batch.

    Raises:
        BrokerBusy: unknown, since a transaction is open below that offset.
    """
    last = end.offset - 2
    require_decided(fetched, last)
    batches = list(fetched.batches())
    there = [each for each in batches if each.header.base_offset <= last <= each.header.last_offset]
    if not there:
        return True  # only compaction leaves holes
    return there[0] in committed(batches, fetched.aborted) and _is_of(there[0], end)


def require_decided(fetched: FetchedPartition, offset: int) -> None:
    """Refuse an offset below which a transaction is open."""
    if fetched.stable_end <= offset:
        raise undecided(fetched.partition, offset + 1)


def _is_of(batch: Batch, end: CopyEnd) -> bool:
    header = batch.header
    writer = header.producer_id, header.producer_epoch
    return header.last_offset == end.offset - 2 and writer == (end.producer_id, end.producer_epoch)
