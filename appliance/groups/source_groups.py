"""The source's groups with their offsets, as they were last read.

They are kept: after the loss of the source, the copies may still reach the groups' offsets.
"""

import functools
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import UUID

from appliance.errors import ApplianceError
from appliance.grouping import grouped
from appliance.groups.group_io import ReadGroups, read_groups, topic_ids
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.log_ends import EpochEnds


class TopicNames(Protocol):
    """The names of the topics that groups are synced from, and of those that they are synced to."""

    def copies(self, topic: str, internal: bool, others: Container[str], /) -> bool:
        """True when a topic is copied, beside ``others`` in its cluster."""

    def destination(self, topic: str) -> str:
        """The name of a topic's copy."""


@dataclass(slots=True)
class SourceGroups:
    """The groups whose names are taken; ``ids`` are those of their topics, as old as their offsets or newer."""

    cluster: Cluster
    naming: TopicNames
    takes: Callable[[str], bool]
    newest: ReadGroups = field(default_factory=ReadGroups)
    ids: dict[str, Mapping[str, UUID]] = field(default_factory=dict)
    epoch_ends: dict[int, EpochEnds] = field(default_factory=dict)

    async def refresh(self) -> dict[str, ApplianceError]:
        """Read them; the failures of what stays as it was. The source must have answered once, now or before."""
        try:
            read = await self.until_truncation(await read_groups(self.cluster, self.takes))
            topics = {topic for offsets in read.offsets.values() for topic, _ in offsets}
            self._keep(read, await topic_ids(self.cluster, topics))
        except ApplianceError as error:
            if not self.newest.groups:
                raise
            return {"the source": error}
        return dict(self.newest.failures)

    async def until_truncation(self, read: ReadGroups) -> ReadGroups:
        """The groups in copied topics, taken back to where the source has lost what they had read.

        Nobody has read what is there now. Their consumers do the same once they read on (KIP-320). What no leader tells
        is left out.
        """
        commits = {(commit.leader_epoch, at) for own in read.offsets.values() for at, commit in own.items()}
        metadata = await self.cluster.metadata(None)
        copied = functools.cache(lambda topic: self.naming.copies(topic, False, metadata.topics))
        ends: dict[tuple[Partition, int], int] = {}
        unknown: dict[Partition, ApplianceError] = {}
        # Any client writes any epoch into a commit: those that no leader has had before are not asked for.
        former = grouped((e, at) for e, at in commits if 0 <= e < metadata.leader_epoch(*at) and copied(at[0]))
        self.epoch_ends = {epoch: self.epoch_ends.get(epoch) or EpochEnds(self.cluster) for epoch in former}
        for epoch, partitions in former.items():
            answers, failures = await self.epoch_ends[epoch].read(metadata, dict.fromkeys(partitions, epoch))
            ends |= {(at, epoch): end for at, end in answers.items() if end >= 0}
            unknown |= failures
        offsets = {
            name: {
                at: commit._replace(offset=min(commit.offset, ends.get((at, commit.leader_epoch), commit.offset)))
                for at, commit in own.items()
                if at not in unknown and copied(at[0])
            }
            for name, own in read.offsets.items()
        }
        lost = {f"{partition} at the source": error for partition, error in unknown.items()}
        return replace(read, offsets=offsets, failures={**read.failures, **lost})

    def _keep(self, read: ReadGroups, ids: Mapping[str, UUID]) -> None:
        """Keep the read state of copied source topics; unreadable parts stay as they were."""
        kept = {**(self.newest.offsets if read.failures else {}), **read.offsets}
        groups = {**self.newest.groups, **read.groups} if read.failures else read.groups
        self.newest = ReadGroups(groups, {name: offsets for name, offsets in kept.items() if offsets}, read.failures)
        all_ids = self.ids | dict.fromkeys(read.offsets, ids)
        self.ids = {name: all_ids[name] for name in self.newest.offsets}
