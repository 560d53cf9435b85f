"""Committed facts of both clusters, collected at one time, as frozen values."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.kafka.protocol.metadata import UNKNOWN_EPOCH, Metadata, Partition
from appliance.link.model.agreement import CopyLog
from appliance.link.model.checkpoint import Gap, Owner
from appliance.link.model.claims import Claim, Copy
from appliance.link.model.copy_states import States
from appliance.link.model.link_check import PositionsTopic
from appliance.link.model.mirror_records import Heartbeat
from appliance.link.model.position import Position
from appliance.link.model.standby import Members

_Facts_co = TypeVar("_Facts_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Observation(Generic[_Facts_co]):
    """The newest facts, if any; ``problem`` is the reason that they are old, empty if they are current."""

    facts: _Facts_co | None = None
    problem: str = ""

    @property
    def now(self) -> _Facts_co | None:
        """The facts, unless they are old."""
        return None if self.problem else self.facts


class Log(NamedTuple):
    """A partition's offsets: its first, -1 when it was not asked for; its last stable one; its high watermark.

    ``epochs_end`` is the end of its epochs up to ``asked_epoch``, that of a position, if a later leader leads now.
    """

    start: int
    stable_end: int
    end: int
    asked_epoch: int = UNKNOWN_EPOCH
    epochs_end: int | None = None


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The source's facts.

    ``unanswered`` are partitions whose leader did not answer, or whose topic may not be described, with the reason;
    ``holding`` the open transactions that have held a last stable offset since the last collection; ``unfit`` are
    topics that must not be copied, with the reason. ``written`` counts the records that links wrote to each partition;
    None if that is unknown, or without meaning since names are not identical.
    """

    metadata: Metadata
    logs: Mapping[Partition, Log] = field(default_factory=dict)
    unanswered: Mapping[Partition, str] = field(default_factory=dict)
    holding: Mapping[Partition, OpenTransaction] = field(default_factory=dict)
    unfit: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[Partition, int] | None = None

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """The id of an existing topic."""
        metadata = self.metadata.topics.get(topic)
        return metadata.id if metadata else None


@dataclass(frozen=True, slots=True)
class DestinationFacts:
    """The destination's facts; ``owners`` and ``holding`` are by lane, and there are no owners before the first lane.

    ``topic`` is the positions topic, None as long as there is none; ``claims`` names the link of each copy.
    ``heartbeat`` is the newest from the source, None if the link writes none. ``states`` are those of the link and of
    topics in the first lane. ``committed_at`` is the time at which a partition's position was committed, in
    milliseconds by the destination's clock. ``copies`` are the logs of the copies, by source partition. ``members`` are
    the link's replicators.
    """

    metadata: Metadata
    topic: PositionsTopic | None = None
    claims: Mapping[Copy, Claim] = field(default_factory=dict)
    positions: Mapping[Partition, Position] = field(default_factory=dict)
    gaps: Mapping[Partition, tuple[Gap, ...]] = field(default_factory=dict)
    owners: tuple[Owner | None, ...] = ()
    holding: Mapping[int, OpenTransaction] = field(default_factory=dict)
    heartbeat: Heartbeat | None = None
    states: States = field(default_factory=dict)
    committed_at: Mapping[Partition, int] = field(default_factory=dict)
    copies: Mapping[Partition, CopyLog] = field(default_factory=dict)
    members: Observation[Members] = field(default_factory=Observation)
