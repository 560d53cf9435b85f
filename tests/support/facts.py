"""Facts of two small clusters for the console: one topic, ``payments``, with two partitions, copied by one run."""

import uuid
from collections.abc import Mapping
from dataclasses import replace

from appliance.groups.model.group_plan import GroupPlan, PartitionPlan
from appliance.kafka.client.group_offsets import Commit
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.link.model.agreement import CopyLog
from appliance.link.model.checkpoint import LaneCheckpoint, LinkRecord, Owner
from appliance.link.model.link_check import PositionsTopic
from appliance.link.model.link_sql import SqlChange
from appliance.link.model.mirror_records import Heartbeat
from appliance.link.model.position import Position
from appliance.link.model.problems import Fault
from appliance.link.model.standby import Assignment, Member, Members
from appliance.link.model.translation import Translation, TranslationState
from appliance.settings.parse import parse
from appliance.settings.role import EVERY_ROLE
from appliance.settings.values import Settings
from appliance.status.model.compose import Composer
from appliance.status.model.facts import DestinationFacts, Log, Observation, SourceFacts
from appliance.status.model.snapshot import AuditStatus, Snapshot
from appliance.status.model.topic_status import PartitionStatus
from tests.support.settings import REQUIRED

NOW = 1_800_000_000_000
SOURCE_ID, COPY_ID = uuid.UUID(int=1), uuid.UUID(int=2)
RUN = Owner("1a2b3c", "worker", "grape-vm", NOW - 60_000)
SILENT = "no broker answers"
COPIED_TO_THE_END = {
    Partition("payments", n): Position(SOURCE_ID, COPY_ID, 100, 0, 90, 9000, NOW - 5000) for n in range(2)
}
ENDS_AT_100 = {Partition("payments", n): Log(-1, 100, 100) for n in range(2)}


def settings(**changed: str) -> Settings:
    return parse(REQUIRED | changed, EVERY_ROLE)


def metadata(*topics: Topic) -> Metadata:
    return Metadata("cluster", 1, {}, {topic.name: topic for topic in topics})


PAYMENTS = Topic("payments", SOURCE_ID, False, (1, 1))
SOURCE = SourceFacts(metadata(PAYMENTS), ENDS_AT_100)
LINK = LinkRecord("cluster", 3, 3, NOW - 60_000)


def positions_topic(lanes: int = 3, partitions: int = 3) -> PositionsTopic:
    """The positions topic of some lanes; the first lane holds the link record."""
    link = replace(LINK, lanes=lanes, partitions=partitions)
    return PositionsTopic(
        "positions", "compact", [LaneCheckpoint(link=link), *(LaneCheckpoint() for _ in range(lanes - 1))]
    )


ACTIVE = Member("1a2b3c", "grape-vm", NOW - 70_000, "grape-vm-0", "0.3.0", ready=True)
STANDBY = Member("4d5e6f", "grape-vm-2", NOW - 30_000, "grape-vm-2-0", "0.3.0", ready=True)
HANDED_OVER = Assignment(3, ACTIVE.run, ACTIVE.host, ACTIVE.place, NOW - 60_000, "grape-vm-3", "grape-vm-3 was stopped")
MEMBERS = Members([ACTIVE, STANDBY], HANDED_OVER)

DESTINATION = DestinationFacts(
    metadata(Topic("payments.copy", COPY_ID, False, (1, 1))),
    positions_topic(),
    positions=COPIED_TO_THE_END,
    owners=(RUN, RUN, RUN),
    copies={Partition("payments", n): CopyLog(Partition("payments.copy", n), COPY_ID) for n in range(2)},
    members=Observation(MEMBERS),
)


def with_sql(*changes: SqlChange) -> DestinationFacts:
    """Those of a link whose first lane has these changes of its SQL."""
    topic = positions_topic()
    for change in changes:
        topic.checkpoints[0].add(change)
    return replace(DESTINATION, topic=topic)


def snapshot(
    source: SourceFacts | str = SOURCE,
    destination: DestinationFacts | str = DESTINATION,
    previous: Snapshot | None = None,
    now: int = NOW,
    **changed: str,
) -> Snapshot:
    """The snapshot of these facts; a text in place of facts is the reason for a cluster's silence."""
    return Composer(
        settings(**changed),
        Observation(SOURCE, source) if isinstance(source, str) else Observation(source),
        Observation(DESTINATION, destination) if isinstance(destination, str) else Observation(destination),
        previous,
        now,
    ).snapshot()


def with_logs(logs: Mapping[Partition, Log]) -> SourceFacts:
    """The source with other offsets."""
    return replace(SOURCE, logs={**ENDS_AT_100, **logs})


def with_position(partition: int = 0, **changed: object) -> DestinationFacts:
    """The destination with another position."""
    key = Partition("payments", partition)
    held = replace(COPIED_TO_THE_END[key], **changed)
    return replace(DESTINATION, positions={**COPIED_TO_THE_END, key: held})


def first(snapshot: Snapshot) -> PartitionStatus:
    """``payments-0``."""
    return snapshot.topics[0].partitions[0]


def group(name: str, committed: int | None, translated: int | None = 70, **changed: object) -> GroupPlan:
    """A group that has consumed up to offset 50 of one partition."""
    state = TranslationState.UNKNOWN if translated is None else TranslationState.EXACT
    there = None if committed is None else Commit(committed)
    own = PartitionPlan(
        Partition("payments", 0), Partition("payments.copy", 0), Commit(50), Translation(translated, state), there
    )
    return replace(GroupPlan(name, "classic", (own,)), **changed)


def complete() -> Snapshot:
    """A snapshot that has a sample of every metric; a partition and the topic are stopped, and the rate is bounded."""
    destination = replace(
        with_position(stopped="too large", stopped_at=NOW), heartbeat=Heartbeat("orange", "grape", NOW - 500, 17)
    )
    taken = snapshot(destination=destination, MAX_BYTES_PER_SECOND="5000")
    (topic,) = taken.topics
    partitions = tuple(replace(partition, latency_ms=40) for partition in topic.partitions)
    stopped = replace(topic, stopped=Fault("claimed", NOW), partitions=partitions)
    known = {"groups": (group("behind", 60),), "problems": {"lane 0": Fault("no right", NOW - 90_000)}}
    return replace(taken, topics=(stopped,), audit=AuditStatus("/audit", 5.0), **known)  # type: ignore[arg-type]
