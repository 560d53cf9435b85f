"""The plan of one group: what to commit for it at the destination, and how far it is there. Pure.

- **a** A commit never moves backwards.
- **b** Nothing is committed while the group has a member at the destination.
- **c** What a consumer has committed itself at the destination is never overwritten. Its commit carries the leader
  epoch of a record that it has read; ours carries none, and nobody needs to remember which are ours.
- **d** The metadata of a commit are those of the source.
- **e** What is not known is never committed, and its lag is not 0.
- **f** The plan depends on what both clusters hold now, and on nothing that a process remembers: whoever was killed
  between two commits, or made the same ones beside another, changes nothing.
"""

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from appliance.kafka.client.group_offsets import Commit, Commits
from appliance.kafka.client.groups import Group
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.mirror_records import MirrorCheckpoint
from appliance.link.model.translation import Translation, TranslationState

CopyOf = Callable[[str], str]
"""The name of a source topic's copy."""

Translate = Callable[[Partition, int], Translation]


class GroupState(enum.StrEnum):
    """The state of a group, or of one of its partitions; of several that fit, the first of these."""

    REFUSED = "refused"
    BOTH = "consumed on both sides"
    UNKNOWN = "unknown"
    THERE = "consumed at the destination"
    FURTHER = "further at the destination"
    BEHIND = "behind"
    SYNCED = "synced"

    @property
    def follows(self) -> bool:
        """True when nothing but the copy's own lag keeps the group from being where it is at the source."""
        return self in (GroupState.BEHIND, GroupState.SYNCED)


_ORDER = {state: number for number, state in enumerate(GroupState)}


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """One source partition of a group: the commit at the source, its translation, and the commit at the destination."""

    source: Partition
    copy: Partition
    upstream: Commit
    translation: Translation
    committed: Commit | None = None

    @property
    def target(self) -> Commit | None:
        """The commit that fits the source's; None while nobody knows it."""
        offset = self.translation.offset
        if offset is None or self.unknown:
            return None
        return Commit(offset, self.upstream.metadata)

    @property
    def due(self) -> Commit | None:
        """The commit to make; None where it is made already, or must not be made."""
        target, there = self.target, self.committed
        if there is None or target is None:
            return target
        if there.leader_epoch >= 0 or there.offset > target.offset or there[:2] == target[:2]:
            return None
        return target

    @property
    def lag(self) -> int | None:
        """The offsets that a consumer which began at the destination now would be behind; None when not known."""
        target = self.target
        if target is None or self.committed is None:
            return None
        return max(0, target.offset - self.committed.offset) + self.translation.behind

    @property
    def unknown(self) -> bool:
        """True when it is not known where in the copy the offset lies."""
        return self.translation.state is TranslationState.UNKNOWN

    @property
    def state(self) -> GroupState:
        """The partition in a few words."""
        target, there = self.target, self.committed
        if self.unknown:
            return GroupState.UNKNOWN
        if target and there and there.offset > target.offset:
            return GroupState.THERE if there.leader_epoch >= 0 else GroupState.FURTHER
        if target and there and there.offset < target.offset and there.leader_epoch >= 0:
            return GroupState.BOTH
        return GroupState.SYNCED if self.lag == 0 else GroupState.BEHIND


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One group with its partitions that are copied; ``here`` and ``there`` say on which sides it has members.

    ``refused`` is the reason for which nothing, or not all, can be committed.
    """

    name: str
    kind: str
    partitions: tuple[PartitionPlan, ...]
    here: bool = False
    there: bool = False
    refused: str = ""

    @property
    def state(self) -> GroupState:
        """The group in a few words."""
        if self.refused:
            return GroupState.REFUSED
        if self.there:
            return GroupState.BOTH if self.here else GroupState.THERE
        return min((partition.state for partition in self.partitions), key=_ORDER.__getitem__)

    @property
    def reason(self) -> str:
        """Why nothing, or not all, can be committed; empty where there is no more to say than the state does."""
        return self.refused or next((each.translation.reason for each in self.partitions if each.unknown), "")

    @property
    def lag(self) -> int | None:
        """The offsets of all partitions that the group is behind at the destination; None when one is not known."""
        total = 0
        for partition in self.partitions:
            if (lag := partition.lag) is None:
                return None
            total += lag
        return total

    @property
    def commits(self) -> dict[Partition, Commit]:
        """The commits to make at the destination now."""
        if self.there or self.refused:
            return {}
        return {partition.copy: due for partition in self.partitions if (due := partition.due) is not None}

    def done(self) -> "GroupPlan":
        """The same once these commits are made."""
        made = (replace(p, committed=due) if (due := p.due) else p for p in self.partitions)
        return replace(self, partitions=tuple(made))


def plan(
    source: Group,
    upstream: Commits,
    destination: Group | None,
    committed: Commits,
    copy_of: CopyOf,
    translate: Translate,
) -> GroupPlan:
    """The plan of a group that has consumed what is copied; ``destination`` is None where it is not there."""
    there = destination is not None and destination.has_members
    refused = ""
    if destination is not None and destination.shares != source.shares:
        refused = f"a {destination.kind} group at the destination has the name of this {source.kind} group"
    partitions = tuple(_partitions(upstream, committed, copy_of, translate))
    return GroupPlan(source.name, source.kind, partitions, source.has_members, there, refused)


def _partitions(
    upstream: Commits, committed: Commits, copy_of: CopyOf, translate: Translate
) -> Iterator[PartitionPlan]:
    for source, commit in sorted(upstream.items()):
        copy = copy_of(source[0]), source[1]
        yield PartitionPlan(source, copy, commit, _translated(source, commit.offset, translate), committed.get(copy))


def _translated(source: Partition, offset: int, translate: Translate) -> Translation:
    """The translation; of an offset past what is copied, that of the copy's end: nothing below is to be read again."""
    found = translate(source, offset)
    if found.state is TranslationState.AHEAD and found.offset is None:
        return replace(found, offset=translate(source, offset - found.behind).offset)
    return found


def checkpoints(plans: Iterable[GroupPlan]) -> Iterator[MirrorCheckpoint]:
    """A checkpoint for each offset that is known in its copy.

    Where the copy lags behind the group, it is a checkpoint of the copy's end, and of the source's offset there.
    """
    for plan in plans:
        for partition in plan.partitions:
            if (target := partition.target) is not None:
                upstream = partition.upstream.offset - partition.translation.behind
                yield MirrorCheckpoint(plan.name, partition.copy, upstream, target.offset, target.metadata)
