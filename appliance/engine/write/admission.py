"""Admission of partitions to a lane: the facts to find and remember before the first record is read.

Each is checked alone: a leader that does not answer, or a copy that must not be written, delays no other partition.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from appliance.clock import now_ms
from appliance.engine.write.copies import NEVER_WRITTEN, OTHERS_ONLY, CopyEnds, LookedTo, examine_copies
from appliance.engine.write.lane import Lane
from appliance.errors import ApplianceError, BrokerBusy, CopyShortened, GapFound, PartitionStopped
from appliance.kafka.client.configs import WriteLimits, write_limits
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.client.transactions import Producer
from appliance.kafka.protocol.metadata import NOBODY, NOWHERE, Metadata, Partition, is_another
from appliance.link.client.origins import Origins
from appliance.link.client.registry import Registry
from appliance.link.client.source_places import try_places
from appliance.link.model.checkpoint import StartOffsets, start_place
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import NO_PLACE, UNKNOWN, CopyEnd, Position, SourcePlace
from appliance.link.model.producers import link_of
from appliance.link.model.replicas import Replica
from appliance.program import topic_option


@dataclass(slots=True)
class Admission:
    """The outcome of an admission, by the destination's metadata at that time.

    ``positions`` must be committed before anything is read; ``stops`` are partitions that must not be read, ``waiting``
    those with unknown facts, or with copies that take nothing now. ``ends`` are the ends of the copies, ``limits`` the
    largest batches of their topics, and ``begins`` the places where copying begins, or continues after a gap.
    """

    metadata: Metadata
    positions: dict[Replica, Position] = field(default_factory=dict)
    stops: dict[Replica, PartitionStopped] = field(default_factory=dict)
    waiting: dict[Replica, ApplianceError] = field(default_factory=dict)
    ends: Mapping[Partition, int] = field(default_factory=dict)
    limits: Mapping[str, WriteLimits] = field(default_factory=dict)
    begins: dict[Partition, SourcePlace] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Admitting:
    """The questions of an admission, and its inputs. The questions change nothing: they may be cut off.

    ``starts`` are those of REPLICA_TOPICS_START; with ``records_gaps`` no gap stops a partition.
    """

    source: Cluster
    destination: Cluster
    lane: Lane
    starts: Mapping[str, StartOffsets]
    records_gaps: bool
    looked_to: LookedTo

    async def admit(self, replicas: Collection[Replica], metadata: Metadata, producer: Producer) -> Admission:
        """Check these partitions on both sides, by metadata of the destination and for the lane's newest epoch.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused: no broker answers a question that any can answer.
        """
        known = {r: held for r in replicas if _is_known(held := self.lane.checkpoint.positions.get(r.source))}
        limits, untold = await write_limits(self.destination, {replica.destination_topic for replica in replicas})
        admission = Admission(metadata, limits=limits)
        for replica in replicas:
            refusal = made_anew_since(replica, metadata) or untold.get(replica.destination_topic)
            if refusal := refusal or too_few_replicas(replica, metadata, limits):
                admission.waiting[replica] = refusal
        fit = [replica for replica in replicas if replica not in admission.waiting]
        remembered = self._remembered_ends(fit, known)
        shared = self.lane.shares_copies
        former_ids, registry = frozenset[int](), Registry(self.destination, link_of(producer.transactional_id))
        if shared and any(replica not in known for replica in fit):
            former_ids = await self._former_ids(producer)
            await registry.refresh()
            new = {replica.copy: OTHERS_ONLY for replica in fit if replica not in known}
            remembered |= new if former_ids else {}
        copies = await examine_copies(
            self.destination, metadata, remembered, producer.id, self.looked_to, shared, former_ids
        )
        admission.ends = copies.ends
        failures = await self._find_begins(admission, fit, known)
        for replica in fit:
            failure = failures.get(replica.source)
            if replica in known:
                _admit_known(admission, replica, known[replica], copies)
                if failure and isinstance(admission.stops.get(replica), GapFound):
                    admission.waiting[replica] = failure
                continue
            refusal = failure or copies.refused.get(replica.copy)
            held = self.lane.checkpoint.positions.get(replica.source)
            if shared and held is not None and held.stopped and held.destination_id == replica.destination_id:
                # What was found may be deleted by now, but only the operator can say where copying goes on.
                refusal = PartitionStopped(held.stopped)
            if isinstance(refusal, PartitionStopped):
                _stop_new(admission, replica, held, refusal)
            elif refusal:
                admission.waiting[replica] = refusal
            else:
                empty = (
                    None if shared else CopyEnd(0, metadata.leader_epoch(*replica.copy), producer.id, producer.epoch)
                )
                begun = not shared or registry.has_begun((replica.destination_topic, replica.destination_id))
                _admit_new(admission, replica, admission.begins[replica.source], held, empty, begun)
        return admission

    async def _former_ids(self, producer: Producer) -> frozenset[int]:
        """The producer ids under which this link may have written to a copy before; none if the lane is in its first
        epoch: only a lane writes the copies of its partitions.
        """
        origins = Origins(self.destination)
        await origins.refresh()
        lane = [each.producer_id for each in origins.producers.of(producer.transactional_id)]
        if producer.epoch == 0 and lane == [producer.id]:
            return frozenset()
        return frozenset(origins.producers.of_link(link_of(producer.transactional_id)))

    async def _find_begins(
        self, admission: Admission, replicas: Iterable[Replica], known: Mapping[Replica, Position]
    ) -> Mapping[Partition, ApplianceError]:
        """Find where copying of new partitions begins, and where others continue after a gap; and the errors."""
        begins: dict[Partition, SourcePlace | None] = {}
        for replica in replicas:
            if replica not in known:
                begins[replica.source] = start_place(*replica.source, replica.source_id, self.starts)
            elif self.records_gaps and identity_fault(replica, known[replica]):
                begins[replica.source] = None
        admission.begins = {partition: begin for partition, begin in begins.items() if begin is not None}
        asked = begins.keys() - admission.begins.keys()
        if not asked:
            return {}
        at_source = await self.source.metadata(sorted({topic for topic, _ in asked}))
        anew = {
            replica.source: BrokerBusy(f"{replica.source_topic} was deleted and made anew", "UNKNOWN_TOPIC_ID")
            for replica in replicas
            if (topic := at_source.topics.get(replica.source_topic)) and is_another(topic.id, replica.source_id)
        }
        found, failures = await try_offsets(self.source, at_source, sorted(asked - anew.keys()), Bound.START)
        starts, untold = await try_places(self.source, at_source, found)
        admission.begins |= starts
        return {**failures, **untold, **{partition: anew[partition] for partition in asked & anew.keys()}}

    def _remembered_ends(
        self, replicas: Iterable[Replica], known: Mapping[Replica, Position]
    ) -> dict[Partition, CopyEnd | None]:
        """The remembered ends of copies, without those that this epoch of the lane has written to."""
        remembered: dict[Partition, CopyEnd | None] = {}
        for replica in replicas:
            held = known.get(replica)
            same = held is not None and held.destination_id in (replica.destination_id, NOWHERE)
            if held is None or not same or not self.lane.knows_end(replica.copy):
                remembered[replica.copy] = None if held is None else held.copy_end if same else NEVER_WRITTEN
        return remembered


def made_anew_since(replica: Replica, metadata: Metadata) -> ApplianceError | None:
    """The error of a copy that is a different topic by now: the next look at topics finds it."""
    topic = metadata.topics.get(replica.destination_topic)
    if topic is None or not is_another(topic.id, replica.destination_id):
        return None
    return BrokerBusy(f"{topic.name} was deleted and made anew", "UNKNOWN_TOPIC_ID")


def too_few_replicas(replica: Replica, metadata: Metadata, limits: Mapping[str, WriteLimits]) -> ApplianceError | None:
    """The error of a copy that takes nothing, found before a write.

    A transaction that has touched such a copy cannot end, not even by an abort, before its marker can be written; until
    then the whole lane waits.
    """
    topic, minimum = metadata.topics.get(replica.destination_topic), limits[replica.destination_topic].in_sync
    if topic is None or not topic.lacks_replicas(replica.partition, minimum):
        return None
    name = f"{topic.name}-{replica.partition}"
    if topic.leaders[replica.partition] == NOBODY:
        return BrokerBusy(f"{name} of the destination cluster has no leader now", "LEADER_NOT_AVAILABLE")
    what = f"{name} has {topic.in_sync[replica.partition]} of {minimum} replicas in sync"
    return BrokerBusy(f"{what}: NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS")


def _admit_known(admission: Admission, replica: Replica, held: Position, copies: CopyEnds) -> None:
    refusal = copies.refused.get(replica.copy)
    if fault := identity_fault(replica, held):
        _admit_another(admission, replica, fault, refusal)
    elif isinstance(refusal, PartitionStopped):
        admission.stops[replica] = refusal
    elif refusal is not None:
        admission.waiting[replica] = refusal
    elif NOWHERE in (held.source_id, held.destination_id):
        known = replace(held, source_id=replica.source_id, destination_id=replica.destination_id)
        admission.positions |= {replica: known} if known != held else {}


def _admit_another(admission: Admission, replica: Replica, fault: GapFound, refusal: ApplianceError | None) -> None:
    """Stop at a recreated topic; no gap explains the records that its copy has lost, or holds already (G, H and J)."""
    if refusal is None:
        admission.stops[replica] = fault
    elif isinstance(refusal, CopyShortened):
        admission.stops[replica] = CopyShortened(f"{fault}; {refusal}", refusal.end, refusal.is_known)
    elif isinstance(refusal, PartitionStopped):
        admission.stops[replica] = PartitionStopped(f"{fault}; {refusal}")
    else:
        admission.waiting[replica] = refusal


def _admit_new(
    admission: Admission,
    replica: Replica,
    begin: SourcePlace,
    held: Position | None,
    empty: CopyEnd | None,
    begun: bool,
) -> None:
    """Remember where a new copy begins, and that it is ``empty``; None for a shared one: others' may be there, but
    nothing of ours, as its map of offsets says.

    Where the link has ``begun`` a copy, one without a position that ever held records is left alone (invariant H):
    retention may have deleted ours.
    """
    tail = None if empty else OffsetTail.begin(begin.offset, 0)
    position = Position(replica.source_id, replica.destination_id, *begin, copy_end=empty, tail=tail)
    end = admission.ends[replica.copy]
    if end > 0 and begun:
        stop = PartitionStopped(
            f"{replica.copy} ends at offset {end}, and no position says how far "
            f"{replica.name} is copied there: choose by `appliance resume {topic_option(replica.source_topic)} "
            f"--partition {replica.partition} --from` earliest, latest or an offset of the source"
        )
        _stop_new(admission, replica, held, stop)
    elif position != held:
        admission.positions[replica] = position


def _stop_new(admission: Admission, replica: Replica, held: Position | None, stop: PartitionStopped) -> None:
    """Remember that nothing is known of the progress of a copy, and why it stops."""
    unknown = held or Position(replica.source_id, replica.destination_id, *NO_PLACE)
    admission.stops[replica] = stop
    if (position := unknown.stop(str(stop), now_ms())) is not held:
        admission.positions[replica] = position


def identity_fault(replica: Replica, position: Position) -> GapFound | None:
    """The fault of a position that does not belong to the current topics (invariant G).

    A topic without an id when the position was written is not recreated when the cluster gives it one.
    """
    if is_another(position.source_id, replica.source_id):
        what = f"source topic {replica.source_topic}"
    elif is_another(position.destination_id, replica.destination_id):
        what = f"destination topic {replica.destination_topic}"
    else:
        return None
    cause = f"{what} was deleted and made anew"
    return GapFound(f"{replica.name}: {cause} since it was copied", position.next_offset, *NO_PLACE, cause)


def _is_known(position: Position | None) -> TypeGuard[Position]:
    return position is not None and position.next_offset != UNKNOWN
