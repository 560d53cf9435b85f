"""The admission of partitions to a lane: the facts that were read of both sides, the verdicts, and those that wait.

Each is judged alone: a leader that does not answer, or a copy that must not be written, delays no other partition.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeGuard

from appliance.errors import ApplianceError, BrokerBusy, CopyShortened, GapFound, PartitionStopped
from appliance.kafka.client.configs import WriteLimits
from appliance.kafka.client.transactions import Producer
from appliance.kafka.protocol.metadata import NOBODY, NOWHERE, Metadata, Partition, is_another
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import NO_PLACE, UNKNOWN, CopyEnd, Position, SourcePlace
from appliance.link.model.replicas import Replica
from appliance.program import topic_option

_FIRST, _GROWTH, _LONGEST = 0.1, 2.0, 30.0
"""Pause of a partition that is held back, in seconds: it doubles each time."""


@dataclass(frozen=True, slots=True)
class CopyEnds:
    """``ends`` of the copies that may be written to, and the reasons against the others."""

    ends: Mapping[Partition, int] = field(default_factory=dict)
    refused: Mapping[Partition, ApplianceError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Begins:
    """The ``places`` at the source where copying begins, or goes on after a gap, and the errors of unknown ones."""

    places: Mapping[Partition, SourcePlace] = field(default_factory=dict)
    unknown: Mapping[Partition, ApplianceError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """The known facts of some partitions at the time ``now``, in ms, by ``metadata`` of the destination.

    ``producer`` is the lane's epoch, ``positions`` are those that it remembers, and ``limits`` those of the copies'
    topics, if they are not ``unlimited``. Others write to ``shared`` copies too; ``begun`` are those that the link may
    have written to before.
    """

    metadata: Metadata
    producer: Producer
    positions: Mapping[Partition, Position]
    limits: Mapping[str, WriteLimits]
    unlimited: Mapping[str, ApplianceError] = field(default_factory=dict)
    shared: bool = False
    begun: Collection[Partition] = ()
    copies: CopyEnds = field(default_factory=CopyEnds)
    begins: Begins = field(default_factory=Begins)
    now: int = 0


class Verdict(NamedTuple):
    """The verdict on one partition: read it, unless it has to ``stop``, or to ``wait`` for another admission.

    The ``position`` must be committed before anything is read.
    """

    position: Position | None = None
    stop: PartitionStopped | None = None
    wait: ApplianceError | None = None


def judge(replica: Replica, facts: Facts) -> Verdict:
    """The verdict on a partition."""
    if error := unwritable(replica, facts):
        return Verdict(wait=error)
    position = facts.positions.get(replica.source)
    return judge_known(replica, position, facts) if is_known(position) else judge_new(replica, position, facts)


def judge_known(replica: Replica, position: Position, facts: Facts) -> Verdict:
    """The verdict on a partition that is copied up to a position."""
    refusal = facts.copies.refused.get(replica.copy)
    if fault := identity_fault(replica, position):
        if refusal is None and (unknown := facts.begins.unknown.get(replica.source)):
            return Verdict(wait=unknown)
        return _recreated(fault, refusal)
    if refusal is not None:
        return _refused(refusal)
    if NOWHERE in (position.source_id, position.destination_id):
        identified = replace(position, source_id=replica.source_id, destination_id=replica.destination_id)
        return Verdict(identified if identified != position else None)
    return Verdict()


def _recreated(fault: GapFound, refusal: ApplianceError | None) -> Verdict:
    """Stop at a recreated topic; no gap explains the records that its copy has lost, or holds already (G, H and J)."""
    if isinstance(refusal, CopyShortened):
        return Verdict(stop=CopyShortened(f"{fault}; {refusal}", refusal.end, refusal.is_known))
    if isinstance(refusal, PartitionStopped):
        return Verdict(stop=PartitionStopped(f"{fault}; {refusal}"))
    return Verdict(wait=refusal) if refusal else Verdict(stop=fault)


def _refused(refusal: ApplianceError) -> Verdict:
    return Verdict(stop=refusal) if isinstance(refusal, PartitionStopped) else Verdict(wait=refusal)


def judge_new(replica: Replica, position: Position | None, facts: Facts) -> Verdict:
    """The verdict on a partition without a known position.

    Where the link has begun a copy, one that ever held records is left alone (invariant H): retention may have deleted
    ours. In a shared copy others' may be there, but nothing of ours, as its map of offsets says.
    """
    refusal = facts.begins.unknown.get(replica.source) or facts.copies.refused.get(replica.copy)
    if facts.shared and position and position.stopped and position.destination_id == replica.destination_id:
        # What was found may be deleted by now, but only the operator can say where copying goes on.
        refusal = PartitionStopped(position.stopped)
    has_begun = not facts.shared or replica.copy in facts.begun
    if refusal is None and has_begun and (end := facts.copies.ends[replica.copy]) > 0:
        refusal = _without_position(replica, end)
    if isinstance(refusal, PartitionStopped):
        unknown = position or Position(replica.source_id, replica.destination_id, *NO_PLACE)
        stopped = unknown.stop(str(refusal), facts.now)
        return Verdict(stopped if stopped is not position else None, stop=refusal)
    if refusal is not None:
        return Verdict(wait=refusal)
    first = _first_position(replica, facts)
    return Verdict(first if first != position else None)


def _first_position(replica: Replica, facts: Facts) -> Position:
    begin, producer = facts.begins.places[replica.source], facts.producer
    ids = replica.source_id, replica.destination_id
    if facts.shared:
        return Position(*ids, *begin, tail=OffsetTail.begin(begin.offset, 0))
    empty = CopyEnd(0, facts.metadata.leader_epoch(*replica.copy), producer.id, producer.epoch)
    return Position(*ids, *begin, copy_end=empty)


def _without_position(replica: Replica, end: int) -> PartitionStopped:
    return PartitionStopped(
        f"{replica.copy} ends at offset {end}, and no position says how far "
        f"{replica.name} is copied there: choose by `appliance resume {topic_option(replica.source_topic)} "
        f"--partition {replica.partition} --from` earliest, latest or an offset of the source"
    )


def unwritable(replica: Replica, facts: Facts) -> ApplianceError | None:
    """The reason why a copy takes nothing now."""
    if error := recreated_copy(replica, facts.metadata) or facts.unlimited.get(replica.destination_topic):
        return error
    return too_few_replicas(replica, facts.metadata, facts.limits)


def recreated_copy(replica: Replica, metadata: Metadata) -> ApplianceError | None:
    """The error of a copy that is a different topic by now: the next discovery finds it."""
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


def is_known(position: Position | None) -> TypeGuard[Position]:
    """True unless nothing is known of the progress of a copy."""
    return position is not None and position.next_offset != UNKNOWN


@dataclass(slots=True)
class HeldBack:
    """Partitions that are not copied now, each tried at growing intervals, so that others lose little.

    Times are seconds of any monotonic clock.
    """

    _due: dict[Replica, float] = field(default_factory=dict)
    _pauses: dict[Replica, float] = field(default_factory=dict)

    def add(self, replica: Replica, now: float) -> None:
        """Retry it after a pause, twice as long as the one before."""
        pause = min(_GROWTH * self._pauses[replica], _LONGEST) if replica in self._pauses else _FIRST
        self._pauses[replica] = pause
        self._due[replica] = now + pause

    def add_due(self, replicas: Iterable[Replica]) -> None:
        """Try these now; those that wait already keep waiting."""
        for replica in replicas:
            self._due.setdefault(replica, -math.inf)

    def due(self, now: float) -> list[Replica]:
        """Those that may be tried now."""
        return [replica for replica, at in self._due.items() if at <= now]

    def note_try(self, replica: Replica) -> None:
        """Count a new try; if it fails, the partition is added again and waits longer."""
        self._due.pop(replica, None)

    def pause(self, now: float) -> float:
        """Seconds until the next one may be tried; infinite when none waits."""
        return max(0.0, min(self._due.values(), default=math.inf) - now)

    def went_well(self, replica: Replica) -> bool:
        """Forget a partition that is copyable again; True when it was held back."""
        self._due.pop(replica, None)
        return self._pauses.pop(replica, None) is not None

    def keep(self, replicas: Collection[Replica]) -> None:
        """Forget all others."""
        for replica in {*self._due, *self._pauses}.difference(replicas):
            self.went_well(replica)
