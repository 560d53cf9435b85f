"""The records of a partition's origins, as they arrive at home."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.clock import loop_seconds, now_ms
from appliance.engine.model.chunk import Chunk
from appliance.engine.problem_log import ProblemLog
from appliance.engine.read.buffer import Limits, ReadyQueue
from appliance.engine.read.source_reader import SourceReader
from appliance.errors import GapFound, PartitionStopped
from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.kafka.records.outgoing import Outgoing
from appliance.link.model.checkpoint import Gap
from appliance.link.model.order import Origin, Place, Run, Vector, merged
from appliance.link.model.replicas import Replica
from appliance.order.model.view import made_anew

_PLACES_SECONDS = 1.0
"""Interval at which places are given without records, in seconds: retention may delete the markers before them."""


class WakingQueue(ReadyQueue):
    """A queue that wakes the lane, too."""

    def __init__(self, lane: asyncio.Event) -> None:
        super().__init__()
        self._lane = lane

    def set(self) -> None:
        """There is something to take."""
        super().set()
        self._lane.set()


@dataclass(eq=False)
class Arrivals:
    """The readings of the origins of a partition of T; with ``records_gaps`` one that lost records goes on after them.

    What stops an origin is told, and stops no other one.
    """

    key: Partition
    readers: Mapping[str, SourceReader]
    problems: ProblemLog
    wake: asyncio.Event
    records_gaps: bool
    _queue: WakingQueue = field(init=False)
    _places: dict[Origin, Place] = field(init=False, default_factory=dict)
    """Places past what was taken that have no records before them."""
    _given_at: float = field(init=False, default=float("-inf"))
    """The time of the last places that were given, in seconds of the event loop."""
    _reading: dict[Origin, Replica] = field(init=False, default_factory=dict)
    _resumed: dict[Origin, Place] = field(init=False, default_factory=dict)
    _gaps: list[Gap] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._queue = WakingQueue(self.wake)

    def restart(self) -> None:
        """Read nothing, and forget what was to be resumed."""
        self.stop()
        self._resumed.clear()
        self._gaps.clear()

    def stop(self) -> None:
        """Read nothing more."""
        for replica in self._reading.values():
            self.readers[replica.cluster].forget([replica])
        self._reading.clear()
        self._places.clear()

    def take(
        self, vector: Vector, replicas: Collection[Replica], limit: int, size: int
    ) -> tuple[Sequence[Outgoing], tuple[Run, ...], Vector] | None:
        """About ``size`` bytes of what has arrived: the batches, their runs, and the places after them; or None.

        Places alone are given if none were for a while. The origins are read from the places of the ``vector`` on;
        batches get no larger than ``limit``.
        """
        self._read(vector, replicas, limit)
        chunks = self._queue.take(size)
        self._end_some(vector, limit)
        for chunk in chunks:
            self.readers[chunk.replica.cluster].account(chunk)
            place = Place(chunk.replica.source_id, chunk.next_offset, chunk.leader_epoch)
            self._places[_origin(chunk.replica)] = place
        batches = [batch for chunk in chunks for batch in chunk.batches]
        now = loop_seconds()
        if not batches and (not self._places or now < self._given_at + _PLACES_SECONDS):
            return None
        after, self._given_at = {**vector, **self._places}, now
        self._places.clear()
        return batches, merged(_runs(chunks)), after

    def resume(self, origin: Origin, place: Place) -> None:
        """Take the records of an origin from a place on; those before it are left out."""
        self._resumed[origin] = place

    def resumed(self, vector: Vector) -> tuple[Vector, Sequence[Gap]] | None:
        """The places with those that were chosen since, and the gaps before them; None if none was."""
        if not self._resumed:
            return None
        for origin in self._resumed:
            if (replica := self._reading.pop(origin, None)) is not None:
                self.readers[replica.cluster].forget([replica])
            self._places.pop(origin, None)
        chosen = {origin: place for origin, place in self._resumed.items() if _is_further(place, vector.get(origin))}
        after, self._resumed = {**vector, **chosen}, {}
        gaps, self._gaps = self._gaps, []
        return after, gaps

    def _read(self, vector: Vector, replicas: Iterable[Replica], limit: int) -> None:
        """Read the origins that are not read yet, each from its place on."""
        for replica in replicas:
            origin = _origin(replica)
            if self._reading.get(origin) == replica or replica.cluster not in self.readers:
                continue
            if origin in self._reading:
                self.readers[replica.cluster].forget([self._reading[origin]])
            self._reading[origin] = replica
            place = vector.get(origin)
            if place is not None and is_another(place.topic_id, replica.source_id):
                self.problems.tell(replica.name, PartitionStopped(made_anew(origin, replica.source_topic)))
                continue
            offset, epoch = (place.next_offset, place.leader_epoch) if place else (0, -1)
            self.readers[replica.cluster].read(replica, offset, epoch, self._queue, Limits(limit))

    def _end_some(self, vector: Vector, limit: int) -> None:
        """Tell of the origins that cannot be read further; one that begins does so at its log's start."""
        for replica, reason in self._queue.take_stops():
            reader, origin = self.readers[replica.cluster], _origin(replica)
            reader.forget([replica])
            place = reason.next if isinstance(reason, GapFound) else -1
            if isinstance(reason, GapFound) and place >= 0 and origin not in vector:
                reader.read(replica, place, reason.leader_epoch, self._queue, Limits(limit))
                continue
            self.problems.tell(replica.name, reason)
            if isinstance(reason, GapFound) and place >= 0 and self.records_gaps:
                ids = origin.of(self.key.topic), replica.source_id
                self._gaps.append(Gap(*ids, reason.first, place, reason.cause, now_ms()))
                self.resume(origin, Place(replica.source_id, place, reason.leader_epoch))


def _is_further(place: Place, before: Place | None) -> bool:
    """True if nothing from this place on was taken."""
    return before is None or is_another(place.topic_id, before.topic_id) or place.next_offset > before.next_offset


def _origin(replica: Replica) -> Origin:
    return Origin(replica.cluster, replica.partition)


def _runs(chunks: Iterable[Chunk]) -> Iterable[Run]:
    for chunk in chunks:
        for batch in chunk.batches:
            for first, length in batch.runs or ((batch.first_offset, batch.records),):
                yield Run(_origin(chunk.replica), first, length)
