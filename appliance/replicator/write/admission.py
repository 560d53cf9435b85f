"""Admission of partitions to a lane: what has to be known and remembered of them before the first record is read.

Each is looked at alone: one whose leader does not answer, or whose copy must not be written, keeps no other waiting.
"""

import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from appliance.errors import ApplianceError, BrokerBusy, GapFound, PartitionStopped
from appliance.kafka.client.configs import WriteLimits, write_limits
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.protocol.metadata import NOWHERE, Metadata, Partition, is_another
from appliance.link.model.checkpoint import StartOffsets, start_offset
from appliance.link.model.position import UNKNOWN, CopyEnd, Position
from appliance.link.model.replicas import Replica
from appliance.replicator.write.copies import NEVER_WRITTEN, CopyEnds, examine_copies
from appliance.replicator.write.lane import Lane


@dataclass(slots=True)
class Admission:
    """The outcome of an admission, by the metadata of the destination that it had.

    ``positions`` have to be remembered before anything is read; ``stops`` are partitions that must not be read,
    ``waiting`` those of which something is not known, or whose copies take nothing now. ``ends`` says where the copies
    end, and ``limits`` what their topics take.
    """

    metadata: Metadata
    positions: dict[Replica, Position] = field(default_factory=dict)
    stops: dict[Replica, PartitionStopped] = field(default_factory=dict)
    waiting: dict[Replica, ApplianceError] = field(default_factory=dict)
    ends: dict[Partition, int] = field(default_factory=dict)
    limits: dict[str, WriteLimits] = field(default_factory=dict)


async def admit(
    source: Cluster,
    destination: Cluster,
    lane: Lane,
    replicas: Collection[Replica],
    starts: Mapping[str, StartOffsets],
) -> Admission:
    """Look at these partitions on both sides; ``starts`` are those of REPLICA_TOPICS_START=latest.

    Raises:
        Unreachable, BrokerBusy, BrokerRefused: a cluster does not tell who leads what.
    """
    metadata = await lane.learn({replica.destination_topic for replica in replicas})
    positions = lane.checkpoint.positions
    known = {r: positions[r.source] for r in replicas if _is_known(positions.get(r.source))}
    new = [replica for replica in replicas if replica not in known]
    copies = await _copies(destination, metadata, lane, replicas, known)
    limits, untold = await write_limits(destination, {replica.destination_topic for replica in replicas})
    admission = Admission(metadata, ends=dict(copies.ends), limits=limits)
    for replica, held in known.items():
        _admit_known(admission, replica, held, copies)
    begins = {replica.source: start_offset(*replica.source, replica.source_id, starts) for replica in new}
    asked = [partition for partition, begin in begins.items() if begin is None]
    at_source = await source.metadata(sorted({topic for topic, _ in asked})) if asked else None
    found, failures = await try_offsets(source, at_source, asked, Bound.START) if at_source else ({}, {})
    for replica in new:
        failure = failures.get(replica.source) or copies.refused.get(replica.copy)
        if failure is not None:
            admission.waiting[replica] = failure
        else:
            begin = begins[replica.source]
            begin = found[replica.source] if begin is None else begin
            empty = CopyEnd(0, metadata.leader_epoch(*replica.copy), lane.producer_id, lane.producer_epoch)
            _admit_new(admission, replica, begin, positions.get(replica.source), empty)
    for replica in [replica for replica in replicas if replica not in admission.waiting]:
        refusal = made_anew_since(replica, metadata) or untold.get(replica.destination_topic)
        if refusal := refusal or too_few_replicas(replica, metadata, limits):
            admission.waiting[replica] = refusal
    for replica in admission.waiting:
        admission.positions.pop(replica, None)
    return admission


def made_anew_since(replica: Replica, metadata: Metadata) -> ApplianceError | None:
    """The error of a copy that is another topic by now than the one found: the next look at topics finds it."""
    topic = metadata.topics.get(replica.destination_topic)
    if topic is None or not is_another(topic.id, replica.destination_id):
        return None
    return BrokerBusy(f"{topic.name} was deleted and made anew", "UNKNOWN_TOPIC_ID")


def too_few_replicas(replica: Replica, metadata: Metadata, limits: Mapping[str, WriteLimits]) -> ApplianceError | None:
    """The error of a copy that takes nothing, found before it is tried.

    A transaction that has touched such a copy cannot end, not even by being aborted, before its marker can be written;
    and as long as it has not ended the whole lane waits.
    """
    topic, minimum = metadata.topics.get(replica.destination_topic), limits[replica.destination_topic].in_sync
    if topic is None or not topic.lacks_replicas(replica.partition, minimum):
        return None
    what = f"{topic.name}-{replica.partition} has {topic.in_sync[replica.partition]} of {minimum} replicas in sync"
    return BrokerBusy(f"{what}: NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS")


async def _copies(
    destination: Cluster,
    metadata: Metadata,
    lane: Lane,
    replicas: Collection[Replica],
    known: Mapping[Replica, Position],
) -> CopyEnds:
    """Find where the copies end; one that was written to in this epoch of the lane need not be asked about."""
    remembered: dict[Partition, CopyEnd | None] = {}
    for replica in replicas:
        held = known.get(replica)
        same = held is not None and held.destination_id in (replica.destination_id, NOWHERE)
        if held is None or not same or not lane.knows_end(replica.copy):
            remembered[replica.copy] = None if held is None else held.copy_end if same else NEVER_WRITTEN
    return await examine_copies(destination, metadata, remembered, lane.producer_id)


def _admit_known(admission: Admission, replica: Replica, held: Position, copies: CopyEnds) -> None:
    refusal = copies.refused.get(replica.copy)
    if fault := identity_fault(replica, held):
        _admit_another(admission, replica, fault, refusal)
    elif isinstance(refusal, PartitionStopped):
        admission.stops[replica] = refusal
    elif refusal is not None:
        admission.waiting[replica] = refusal
    elif NOWHERE in (held.source_id, held.destination_id) and _ids(held) != (replica.source_id, replica.destination_id):
        admission.positions[replica] = replace(held, source_id=replica.source_id, destination_id=replica.destination_id)


def _admit_another(admission: Admission, replica: Replica, fault: GapFound, refusal: ApplianceError | None) -> None:
    """Stop at a topic that was made anew; no gap explains what its copy has lost, or holds already (G, H and J)."""
    if refusal is None:
        admission.stops[replica] = fault
    elif isinstance(refusal, PartitionStopped):
        admission.stops[replica] = PartitionStopped(f"{fault}; {refusal}")
    else:
        admission.waiting[replica] = refusal


def _admit_new(admission: Admission, replica: Replica, begin: int, held: Position | None, empty: CopyEnd) -> None:
    """Remember where a copy begins, and that it is empty.

    A copy that holds something, though nobody remembers how much of the source, is left alone (invariant H).
    """
    position = Position(replica.source_id, replica.destination_id, begin, copy_end=empty)
    end = admission.ends[replica.copy]
    if end > 0:
        stop = PartitionStopped(
            f"{replica.destination_topic}-{replica.partition} ends at offset {end}, and no position says how far "
            f"{replica.name} is copied there: choose by `appliance resume --topic {replica.source_topic} --partition "
            f"{replica.partition} --from` earliest, latest or an offset of the source"
        )
        admission.stops[replica] = stop
        position = (held or replace(position, next_offset=UNKNOWN, copy_end=None)).stop(
            str(stop), time.time_ns() // 1_000_000
        )
    if position is not held:
        admission.positions[replica] = position


def identity_fault(replica: Replica, position: Position) -> GapFound | None:
    """The fault of a position that does not belong to the topics of today (invariant G).

    A cluster that had no topic ids when the position was written has made no topic anew by giving it one.
    """
    changed: Mapping[str, bool] = {
        f"source topic {replica.source_topic}": is_another(position.source_id, replica.source_id),
        f"destination topic {replica.destination_topic}": is_another(position.destination_id, replica.destination_id),
    }
    for what, is_changed in changed.items():
        if is_changed:
            cause = f"{what} was deleted and made anew"
            text = f"{replica.name}: {cause} since it was copied"
            return GapFound(text, position.next_offset, -1, cause)
    return None


def _is_known(position: Position | None) -> bool:
    return position is not None and position.next_offset != UNKNOWN


def _ids(position: Position) -> tuple[uuid.UUID, uuid.UUID]:
    return position.source_id, position.destination_id
