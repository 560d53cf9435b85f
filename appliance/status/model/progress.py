"""The progress of a link between two snapshots, in the shape of Structured Streaming's StreamingQueryProgress.

A source of the progress is a topic, and a row is a record. Offsets are the committed ones: ``startOffset`` and
``endOffset`` are those at which copying goes on, ``latestOffset`` is the source's last stable one.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from appliance.link.model.checkpoint import Owner
from appliance.status.model.messages import utc
from appliance.status.model.snapshot import PartitionStatus, Snapshot, TopicStatus

Json = dict[str, object]

PARTITIONS_SHOWN = 1000
"""Number of partitions from which on only topics that have moved are listed: a log line has to stay readable."""


def identity(snapshot: Snapshot) -> Json:
    """The ids of the link and of its present run, and its name; without an owner of a lane the run is unknown.

    ``id`` stays the same for ever, as that of a query with a checkpoint does.
    """
    link = f"kafka:{snapshot.source.cluster_id}/{snapshot.destination.cluster_id}/{snapshot.replicator}"
    owners = [lane.owner for lane in snapshot.lanes if lane.owner]
    run = max(owners, key=_age).run if owners else ""
    ids = str(uuid.uuid5(uuid.NAMESPACE_URL, link)), str(uuid.uuid5(uuid.NAMESPACE_URL, f"{link}/{run}"))
    return {"id": ids[0], "runId": ids[1], "name": snapshot.replicator}


def _age(owner: Owner) -> tuple[int, int]:
    return owner.generation, owner.since


def is_known(snapshot: Snapshot) -> bool:
    """True of a snapshot that can begin or end a progress: both clusters have answered, and a run has the lanes."""
    unknown = snapshot.source.unknown or snapshot.destination.unknown
    return not unknown and any(lane.owner for lane in snapshot.lanes)


def progress(before: Snapshot, now: Snapshot, number: int) -> Json:
    """The progress from one snapshot to a later one, both known; ``number`` counts those of a run from 0 on."""
    milliseconds = max(1, now.at - before.at)
    earlier = {topic.name: topic for topic in before.topics}
    moves = [_Move(earlier.get(topic.name), topic, milliseconds / 1000) for topic in now.topics]
    every = sum(len(topic.partitions) for topic in now.topics) <= PARTITIONS_SHOWN
    rows = sum(move.rows for move in moves)
    return {
        **identity(now),
        "timestamp": utc(before.at),
        "batchId": number,
        "batchDuration": milliseconds,
        "numInputRows": rows,
        "inputRowsPerSecond": sum(move.arrived for move in moves) / (milliseconds / 1000),
        "processedRowsPerSecond": rows / (milliseconds / 1000),
        "durationMs": {"triggerExecution": milliseconds},
        "eventTime": {},
        "stateOperators": [],
        "sources": [move.source(now.source.cluster_id) for move in moves if every or move.rows or move.arrived],
        "sink": {"description": f"Kafka[{now.destination.cluster_id}]", "numOutputRows": rows},
        "observedMetrics": {},
    }


@dataclass(frozen=True, slots=True)
class _Move:
    """A topic, and what it was ``seconds`` before; None if it was not there."""

    before: TopicStatus | None
    now: TopicStatus
    seconds: float

    @property
    def rows(self) -> int:
        """Number of copied records."""
        return sum(max(0, (now.copied or 0) - (old.copied or 0)) for old, now in self._pairs() if old)

    @property
    def arrived(self) -> int:
        """Number of offsets that the source's partitions have grown by."""
        return sum(max(0, (now.end_offset or 0) - (old.end_offset or 0)) for old, now in self._pairs() if old)

    def _pairs(self) -> Iterator[tuple[PartitionStatus | None, PartitionStatus]]:
        known = {partition.partition: partition for partition in self.before.partitions} if self.before else {}
        return ((known.get(partition.partition), partition) for partition in self.now.partitions)

    def source(self, cluster: str) -> Json:
        """The entry of the topic."""
        behind = [each.lag_records for each in self.now.partitions if each.lag_records is not None]
        before = self.before.partitions if self.before else ()
        return {
            "description": f"Kafka[{cluster}, {self.now.name}]",
            "startOffset": self._offsets([(each.partition, each.next_offset) for each in before]),
            "endOffset": self._offsets([(each.partition, each.next_offset) for each in self.now.partitions]),
            "latestOffset": self._offsets([(each.partition, each.end_offset) for each in self.now.partitions]),
            "numInputRows": self.rows,
            "inputRowsPerSecond": self.arrived / self.seconds,
            "processedRowsPerSecond": self.rows / self.seconds,
            "metrics": {
                "avgOffsetsBehindLatest": str(sum(behind) / len(behind)),
                "maxOffsetsBehindLatest": str(max(behind)),
                "minOffsetsBehindLatest": str(min(behind)),
            }
            if behind
            else {},
        }

    def _offsets(self, offsets: Sequence[tuple[int, int | None]]) -> Json:
        """The known offsets, as Spark's Kafka source writes them."""
        return {self.now.name: {str(number): offset for number, offset in offsets if offset is not None}}
