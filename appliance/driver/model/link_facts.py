"""The facts of a link at its start, the decision that follows, and the link that may continue. Pure."""

import enum
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.errors import LayoutChanging, LinkRefused
from appliance.kafka.protocol.metadata import Partition, Topic
from appliance.link.model.checkpoint import OPERATOR, LaneCheckpoint, LinkRecord, Owner, StartOffsets
from appliance.link.model.claims import Claim, Copy
from appliance.link.model.layout import Layout
from appliance.link.model.link_check import (
    PositionsTopic,
    layout_fault,
    link_fault,
    policy_fault,
    producers_fault,
    was_deleted,
)
from appliance.link.model.link_sql import LinkSql
from appliance.link.model.naming import PRODUCERS, REGISTRY, Naming


class Step(enum.Enum):
    """The next step of a start."""

    CONTINUE = enum.auto()
    MAKE = enum.auto()
    END_CHANGE = enum.auto()


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """A link as both clusters show it now.

    The policies are the effective ``cleanup.policy`` of each topic, empty if it is unknown. ``own_copies`` are the
    link's copies in the registry; ``source_producers`` is the source's topic of producers.
    """

    positions: PositionsTopic
    registry_policy: str
    deletion: Claim | None
    producers_policies: Sequence[str]
    own_copies: Collection[Copy]
    source_cluster: str
    source_producers: Topic | None

    def fault(self, naming: Naming) -> str:
        """The reason that the link must not continue; empty when it may."""
        faults = (
            policy_fault(REGISTRY, self.registry_policy),
            was_deleted(naming.replicator, self.deletion) if self.deletion else "",
            *(policy_fault(PRODUCERS, policy) for policy in self.producers_policies),
            link_fault(self.positions, self.source_cluster, self.own_copies, naming),
            producers_fault(self.positions.link, self.source_producers, naming),
        )
        return next(filter(None, faults), "")

    def next_step(self, naming: Naming) -> Step:
        """The next step of a start; LinkRefused if there is none, LayoutChanging while a command changes the layout."""
        if changing := layout_fault(self.positions):
            if self.positions.link is None or not is_left_by_a_replicator(self.positions.checkpoints):
                raise LayoutChanging(changing)
            return Step.END_CHANGE
        if fault := self.fault(naming):
            raise LinkRefused(fault)
        return Step.MAKE if self.positions.link is None else Step.CONTINUE


def is_left_by_a_replicator(checkpoints: Sequence[LaneCheckpoint]) -> bool:
    """True when a replicator has begun a change of the layout that has not ended."""
    return any(each.layout is not None and each.layout.changing and each.layout.run for each in checkpoints)


@dataclass(frozen=True, slots=True)
class Established:
    """A link that may continue: its layout, the number of this run, and the beginnings of partitions.

    ``producers`` is the id of the source's topic of producers, if the link has to know who wrote at the source.
    ``owners`` are those of the lanes, and ``copied`` are the bytes ever copied of each partition. ``sql`` is the SQL of
    this run.
    """

    layout: Layout
    generation: int
    starts: Mapping[str, StartOffsets] = field(default_factory=dict)
    producers: uuid.UUID | None = None
    owners: Sequence[Owner] = ()
    copied: Mapping[Partition, int] = field(default_factory=dict)
    sql: LinkSql = field(default_factory=LinkSql)

    @classmethod
    def of(cls, topic: PositionsTopic, link: LinkRecord, sql: LinkSql) -> "Established":
        """The link of this record, by its positions topic."""
        producers = uuid.UUID(link.producers) if link.producers else None
        owners = [each.owner for each in topic.checkpoints if each.owner]
        copied = {key: position.bytes for key, position in topic.positions.items()}
        return cls(topic.layout, topic.generation, topic.checkpoints[0].starts, producers, owners, copied, sql)

    def predecessors(self, run: str) -> list[Owner]:
        """The owners of the newest other run that has left its name in lanes; none before the first run."""
        runs = [each for each in self.owners if each.run not in (OPERATOR, run)]
        newest = max(runs, key=lambda each: (each.generation, each.run), default=None)
        return [each for each in runs if newest and each.run == newest.run]

    def newer_owner(self, run: str, generation: int) -> Owner | None:
        """The owner of a lane by whom a newer replicator than this run has taken over; None if there is none."""
        own = Owner(run, "driver", "", 0, generation)
        others = [each for each in self.owners if each.run not in (OPERATOR, run) and each.is_newer_than(own)]
        return max(others, key=lambda each: each.generation, default=None)

    def copied_since(self, earlier: "Established") -> Mapping[Partition, int]:
        """The bytes of each partition that were copied since then; all that were ever copied if none were."""
        copied = {key: number - earlier.copied.get(key, 0) for key, number in self.copied.items()}
        return copied if any(copied.values()) else self.copied
