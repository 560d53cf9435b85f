"""The plan of one group: its commits at the destination, and its progress there. Pure.

- **a** A commit never moves backwards; except one of a sync, to where another link that writes the copy has unread
  records, and past what the copy has lost (invariant O).
- **b** Nothing is committed while the group has a member at the destination.
- **c** A consumer's own commit at the destination is never overwritten. It carries the leader epoch of a record that it
  has read; ours carries none, so that nobody needs to remember which are ours.
- **d** The metadata of a commit are those of the source.
- **e** An unknown offset is never committed, and its lag is not 0.
- **f** The plan depends only on the current state of both clusters, not on a process's memory: a kill between two
  commits, or the same commits by two processes, change nothing. What links remember of a group's places is at the
  destination.
"""

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from appliance.kafka.client.group_offsets import Commit, Commits
from appliance.kafka.client.groups import Group
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.mirror_records import MirrorCheckpoint
from appliance.link.model.translation import Translation, TranslationState

CopyOf = Callable[[str], str]
"""The name of a source topic's copy."""

Translate = Callable[[Partition, int], Translation]

Places = Mapping[str, MirrorCheckpoint]
"""A group's place in a copy as each link remembers it; the metadata are the sync's next commit, and the one before.

The place is -1 where a link does not sync the group any more."""

PlacesOf = Callable[[Partition], Places]


class GroupState(enum.StrEnum):
    """The state of a group, or of one of its partitions; the first of these that matches."""

    REFUSED = "refused"
    BOTH = "consumed on both sides"
    UNKNOWN = "unknown"
    THERE = "consumed at the destination"
    FURTHER = "further at the destination"
    BEHIND = "behind"
    SYNCED = "synced"

    @property
    def follows(self) -> bool:
        """True when only the copy's own lag keeps the group from its position at the source."""
        return self in (GroupState.BEHIND, GroupState.SYNCED)


_ORDER = {state: number for number, state in enumerate(GroupState)}


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """One source partition of a group: the commit at the source, its translation, and the commit at the destination.

    ``places`` are those that the links remember in the copy; ``link`` is this one, empty if it remembers nothing.
    """

    source: Partition
    copy: Partition
    upstream: Commit
    translation: Translation
    committed: Commit | None = None
    places: Places = field(default_factory=dict)
    link: str = ""

    @property
    def target(self) -> Commit | None:
        """The commit that matches the source's; None while it is unknown."""
        offset = self.translation.offset
        if offset is None or self.unknown:
            return None
        return Commit(offset, self.upstream.metadata)

    @property
    def ours(self) -> bool:
        """True when the commit at the destination is one that a sync remembers as its own."""
        offsets = {offset for each in self.places.values() for offset in each.metadata.split()}
        return self.committed is not None and self.committed.leader_epoch < 0 and str(self.committed.offset) in offsets

    @property
    def place(self) -> int | None:
        """The place by this link's map; as remembered if the group was reset at the source since."""
        own, target = self.places.get(self.link), self.target
        if own and target and self.ours and self.upstream.offset < own.upstream:
            return max(own.downstream, target.offset)
        return target and target.offset

    @property
    def held(self) -> tuple[int, str] | None:
        """The lowest place of another link that writes the copy, within the copy's log, and the link."""
        others = ((each.downstream, link) for link, each in self.places.items() if link != self.link)
        offset, link = min((each for each in others if each[0] >= 0), default=(-1, ""))
        return (max(offset, self.translation.start), link) if link else None

    @property
    def goal(self) -> int | None:
        """The lowest place of all links that write the copy; None if this one's is unknown."""
        return min(self.place, self.held[0]) if self.held and self.place is not None else self.place

    @property
    def due(self) -> Commit | None:
        """The commit to make; None if it is made already, or must not be made."""
        there = self.committed
        if self.goal is None:
            return None
        goal = Commit(self.goal, self.upstream.metadata)
        if there and (
            there.leader_epoch >= 0 or there[:2] == goal[:2] or (there.offset > goal.offset and not self.ours)
        ):
            return None
        return goal

    @property
    def goes_back(self) -> bool:
        """True while the commit at the destination passes unread records, and is about to go back."""
        return bool(self.due and self.committed and self.due.offset < self.committed.offset)

    def news(self, group: str) -> MirrorCheckpoint | None:
        """The place to remember before the commit; None if there is none, or it is remembered already.

        So it is while another link's lower place holds the group back: else other writers' records would move it on.
        """
        own, place, upstream = self.places.get(self.link), self.place, self.upstream.offset
        if place is None or not self.link:
            return None
        upstream = max(upstream, own.upstream) if own and self.ours else upstream
        same_goal = own and own.upstream == upstream and own.metadata.split()[:1] == [str(self.goal)]
        waits = own and self.held and self.held[0] < own.downstream < place
        if same_goal and own and (own.downstream == place or waits):
            return None
        before = str(self.committed.offset) if self.committed and self.ours else ""
        return MirrorCheckpoint(group, self.copy, upstream, place, f"{self.goal} {before}".strip())

    @property
    def lag(self) -> int | None:
        """The lag of a consumer that began at the destination now, in offsets; None if unknown."""
        target = self.target
        if target is None or self.committed is None or self.goes_back:
            return None
        return max(0, target.offset - self.committed.offset) + self.translation.behind

    @property
    def unknown(self) -> bool:
        """True when the offset's place in the copy is unknown."""
        return self.translation.state is TranslationState.UNKNOWN

    @property
    def state(self) -> GroupState:
        """The partition in a few words."""
        target, there = self.target, self.committed
        if self.unknown:
            return GroupState.UNKNOWN
        if target and there and there.offset > target.offset and not self.goes_back:
            return GroupState.THERE if there.leader_epoch >= 0 else GroupState.FURTHER
        if target and there and there.offset < target.offset and there.leader_epoch >= 0:
            return GroupState.BOTH
        return GroupState.SYNCED if self.lag == 0 else GroupState.BEHIND

    @property
    def reason(self) -> str:
        """The reason that the offset is unknown, or not committed; empty if the state says it all."""
        if self.held and self.target and self.held[0] < self.target.offset:
            return f"{self.held[1]} knows unread records from offset {self.held[0]} of {self.copy} on"
        return self.translation.reason if self.unknown else ""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One group with its copied partitions; ``here`` and ``there`` say on which sides it has members.

    ``refused`` is the reason that nothing, or not all, can be committed.
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
        """The reason that nothing, or not all, can be committed; empty if the state says it all."""
        return self.refused or next((each.reason for each in self.partitions if each.reason), "")

    @property
    def lag(self) -> int | None:
        """The group's lag at the destination over all partitions, in offsets; None if one is unknown."""
        lags = [partition.lag for partition in self.partitions]
        return None if None in lags else sum(filter(None, lags))

    @property
    def commits(self) -> dict[Partition, Commit]:
        """The commits to make at the destination now."""
        if self.there or self.refused:
            return {}
        return {partition.copy: due for partition in self.partitions if (due := partition.due) is not None}

    @property
    def news(self) -> list[MirrorCheckpoint]:
        """The places to remember before the commits."""
        return [news for partition in self.partitions if (news := partition.news(self.name))]

    def done(self) -> "GroupPlan":
        """The same after these commits."""
        partitions = (replace(p, committed=due) if (due := p.due) else p for p in self.partitions)
        return replace(self, partitions=tuple(partitions))


def plan(
    source: Group,
    upstream: Commits,
    destination: Group | None,
    committed: Commits,
    copy_of: CopyOf,
    translate: Translate,
    places: PlacesOf = lambda _: {},
    link: str = "",
) -> GroupPlan:
    """The plan of a group that has consumed copied topics; ``destination`` is None if it does not exist there."""
    there = destination is not None and destination.has_members
    refused = ""
    if destination is not None and destination.shares != source.shares:
        refused = f"a {destination.kind} group at the destination has the name of this {source.kind} group"
    partitions = []
    for at, commit in sorted(upstream.items()):
        copy, translation = Partition(copy_of(at.topic), at.number), _translated(at, commit.offset, translate)
        partitions.append(PartitionPlan(at, copy, commit, translation, committed.get(copy), places(copy), link))
    return GroupPlan(source.name, source.kind, tuple(partitions), source.has_members, there, refused)


def _translated(source: Partition, offset: int, translate: Translate) -> Translation:
    """The translation; an offset past the copied ones becomes the copy's end, so that nothing below is read again."""
    translation = translate(source, offset)
    if translation.state is TranslationState.AHEAD and translation.offset is None:
        return replace(translation, offset=translate(source, offset - translation.behind).offset)
    return translation


def not_synced(plans: Iterable[GroupPlan]) -> dict[str, str]:
    """The groups that are not synced, each with its state and the reason."""
    others = (plan for plan in plans if plan.state is not GroupState.SYNCED)
    return {plan.name: f"{plan.state}: {plan.reason}" if plan.reason else str(plan.state) for plan in others}


def checkpoints(plans: Iterable[GroupPlan]) -> Iterator[MirrorCheckpoint]:
    """A checkpoint for each offset with a known place in its copy.

    If the copy lags behind the group, the checkpoint has the copy's end, and the source's offset there.
    """
    for plan in plans:
        for partition in plan.partitions:
            if (target := partition.target) is not None:
                upstream = partition.upstream.offset - partition.translation.behind
                yield MirrorCheckpoint(plan.name, partition.copy, upstream, target.offset, target.metadata)
