"""The sync of groups' offsets to the destination: rounds of reading, translating and committing.

A round writes only commits, each correct by itself, so it may be killed at any await: the next round, in any process,
sees the earlier commits and does the rest. Simultaneous rounds are harmless.

The destination's state is kept for some rounds, since most rounds bring nothing new for most groups; but a group is
read again there before a commit.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import UUID

from appliance.clock import loop_seconds
from appliance.errors import ApplianceError
from appliance.grouping import pieces
from appliance.groups.group_io import coordinated, of_brokers, read_offsets, set_offsets
from appliance.groups.group_places import GroupPlaces
from appliance.groups.model.group_plan import GroupPlan, GroupState, Translate, plan
from appliance.groups.source_groups import SourceGroups, TopicNames
from appliance.kafka.client.group_offsets import Commits, has_members
from appliance.kafka.client.groups import ListedGroups, find_coordinators, list_groups
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.protocol.metadata import NOWHERE, Partition
from appliance.link.model.translation import Translation, not_known
from appliance.settings.values import GroupSettings

PLACES = "the places of groups"
"""The name of a failure that keeps no commit from being made."""

_READ_AGAIN = 12
"""Rounds between complete reads of the destination: commits expire there, and operators delete them."""

_PLANS_AT_ONCE = 100
"""Number of plans made before the event loop gets its turn."""

_AT_ONCE = 250
_FRESH = 5.0
"""Number of groups read and committed together, and the seconds for which a read is fresh enough for its commits."""


class Translator(Protocol):
    """Translates offsets of the source to those of the copies."""

    async def refresh(self, wanted: Collection[Partition] | None = None, /) -> Mapping[str, ApplianceError]:
        """Read the newest maps; the failures of unknown ones, each with a name for it."""

    def translate(self, partition: Partition, offset: int, source_id: UUID, start: int, /) -> Translation:
        """The lowest offset in the copy, whose log begins at ``start``, of a record that a group has not read."""


Follows = Callable[[str], bool]
"""True of a source topic with groups synced to its copy."""


async def _always() -> Follows:
    return lambda _: True


@dataclass(slots=True)
class GroupSync:
    """The groups of one link; ``plans`` are those of the newest round, by group, and ``failures`` its failed reads.

    ``stale`` are the failures that may outdate any group's plan; the others only leave some translations unknown, as
    the plans say themselves. ``follows`` reads the topics that are synced now: groups of a promoted copy belong to its
    consumers. ``places`` are remembered, which a link that writes its copies alone can do without. With ``takes_over``
    the consumers' own commits at the destination count as the link's.
    """

    source: Cluster
    destination: Cluster
    naming: TopicNames
    settings: GroupSettings
    translator: Translator
    follows: Callable[[], Awaitable[Follows]] = _always
    places: GroupPlaces | None = None
    takes_over: bool = field(default=False, kw_only=True)
    plans: Mapping[str, GroupPlan] = field(default_factory=dict)
    failures: Mapping[str, ApplianceError] = field(default_factory=dict)
    stale: Mapping[str, ApplianceError] = field(default_factory=dict)
    _bounds: Mapping[Partition, tuple[int, int]] = field(default_factory=dict)
    _offsets: Mapping[str, Commits] = field(default_factory=dict)
    source_groups: SourceGroups = field(init=False)
    _committed: dict[str, Commits] = field(default_factory=dict)
    _rounds: int = 0

    def __post_init__(self) -> None:
        self.source_groups = SourceGroups(self.source, self.naming, self.settings.takes)

    async def preview(self) -> Mapping[str, GroupPlan]:
        """Read both sides and plan, but commit nothing. The source must have answered once, here or in a round."""
        self._committed.clear()
        return await self._round(commits=False)

    async def round(self) -> Mapping[str, GroupPlan]:
        """Read both sides, plan, and make the due commits."""
        if self._rounds % _READ_AGAIN == 0:
            self._committed.clear()
        self._rounds += 1
        return await self._round(commits=True)

    async def make_ours(self) -> Mapping[str, ApplianceError]:
        """Repeat the consumers' commits of memberless groups at the source as the link's own.

        A sync the other way may overwrite them then. Returns the reasons of failures, by group.
        """
        failures: dict[str, ApplianceError] = {}
        names = [name for name, each in self.plans.items() if each.lag == 0 and not each.here]
        for some in pieces(((name, 1) for name in names), _AT_ONCE):
            began, groups = loop_seconds(), {name: self.source_groups.newest.groups[name] for name in some}
            committed, unreadable = await read_offsets(self.source, groups.values())
            followed = {
                name: {at: commit for at, commit in commits.items() if at in self._offsets[name]}
                for name, commits in committed.items()
            }
            changed = {groups[name]: _ours(commits) for name, commits in followed.items() if _ours(commits) != commits}
            failures |= unreadable
            failures |= await set_offsets(self.source, changed, functools.partial(_is_fresh, began))
        return failures

    async def _round(self, *, commits: bool) -> Mapping[str, GroupPlan]:
        """Plan for all groups; while a broker at the destination does not list its own, for the listed ones."""
        there = await self._read_both()
        self._offsets = self._followed(await self.follows())
        if commits and self.places and not self.stale:
            await self._remember(self._withdraw(self.places))
        names = [name for name in self._offsets if name in there.groups or not there.failures]
        plans = await self._plans([name for name in names if name in self._committed], there)
        done = {name for name, each in plans.items() if each.state is GroupState.SYNCED and not each.news}
        unread = [name for name in names if name not in done]
        for some in pieces(((name, 1) for name in unread), _AT_ONCE):
            plans |= await self._follow(some, there, commits=commits)
        self.plans = {name: plans[name] for name in sorted(plans)}
        return self.plans

    async def _read_both(self) -> ListedGroups:
        """Read the source's groups with their offsets, and the destination's groups; returns the latter."""
        failures = await self.source_groups.refresh()
        there = await list_groups(self.destination)
        wanted = {partition for offsets in self.source_groups.newest.offsets.values() for partition in offsets}
        self.stale = {**failures, **of_brokers(self.destination, there)}
        copies = {self._copy(partition) for partition in wanted}
        metadata = await self.destination.metadata(sorted({topic for topic, _ in copies}))
        starts, _ = await try_offsets(self.destination, metadata, copies, Bound.START)
        ends, _ = await try_offsets(self.destination, metadata, copies, Bound.END)
        self._bounds = {copy: (start, ends[copy]) for copy, start in starts.items() if copy in ends}
        self.failures = {**self.stale, **await self.translator.refresh(wanted)}
        if self.places:
            await self._remember(self.places.refresh())
        return there

    def _copy(self, partition: Partition) -> Partition:
        return Partition(self.naming.destination(partition.topic), partition.number)

    async def _withdraw(self, places: GroupPlaces) -> None:
        """Withdraw the places of what is synced no more; a group whose coordinator is not there may come back."""
        copied = self.source_groups.newest.offsets.items()
        gone = {*places.own} - {(name, self._copy(partition)) for name, offsets in copied for partition in offsets}
        unlisted = {name for name, _ in gone if self.settings.takes(name)} - self.source_groups.newest.groups.keys()
        _, unknown = await find_coordinators(self.source, sorted(unlisted)) if unlisted else ({}, {})
        await places.withdraw([key for key in sorted(gone) if key[0] not in unknown])

    async def _remember(self, work: Awaitable[None]) -> None:
        """Read or write places; a link whose copies others write cannot do without."""
        try:
            await work
        except ApplianceError as error:
            if self.places and self.places.link.naming.sharing.others_write:
                raise
            self.failures = {**self.failures, PLACES: error}

    def _followed(self, states: Follows) -> dict[str, Commits]:
        """The commits of the groups in synced topics, by the current states of the copies."""
        follows = functools.cache(states)
        followed = {
            name: {partition: commit for partition, commit in offsets.items() if follows(partition[0])}
            for name, offsets in self.source_groups.newest.offsets.items()
        }
        return {name: offsets for name, offsets in followed.items() if offsets}

    async def _follow(self, names: Sequence[str], there: ListedGroups, *, commits: bool) -> dict[str, GroupPlan]:
        """Read these groups' offsets at the destination again, plan, and make the due commits."""
        began = loop_seconds()
        listed = [there.groups[name] for name in names if name in there.groups]
        committed, unreadable = await read_offsets(self.destination, listed)
        self._committed |= {name: committed.get(name, {}) for name in names}
        plans = await self._plans(names, there)
        for name, error in unreadable.items():
            del self._committed[name]
            plans[name] = replace(plans[name], refused=str(error))
        if commits and self.places:
            await self._remember(self.places.remember([place for each in plans.values() for place in each.news]))
        due = {name: each for name, each in plans.items() if each.commits}
        if not (commits and due):
            return plans
        follows = await self.follows()  # again: a round is long, and a copy may have been promoted meanwhile
        due = {name: each for name, each in due.items() if all(follows(at.source[0]) for at in each.partitions)}
        return {**plans, **await self._commit(due, there, began)}

    async def _plans(self, names: Iterable[str], there: ListedGroups) -> dict[str, GroupPlan]:
        copy_of, places = functools.cache(self.naming.destination), self.places
        plans = {}
        for number, name in enumerate(names):
            if number % _PLANS_AT_ONCE == 0:
                await asyncio.sleep(0)
            committed = self._committed.get(name, {})
            committed = _ours(committed) if self.takes_over else committed
            source, offsets = self.source_groups.newest.groups[name], self._offsets[name]
            sides = source, offsets, there.groups.get(name), committed
            memory = (functools.partial(places.of, name), places.link.naming.replicator) if places else ()
            plans[name] = plan(*sides, copy_of, self._translate_by(name), *memory)
        return plans

    def _translate_by(self, group: str) -> Translate:
        """Translates a group's commits, which belong to the topics of that time."""
        ids = self.source_groups.ids[group]

        def translate(partition: Partition, offset: int) -> Translation:
            bounds = self._bounds.get(copy := self._copy(partition))
            if bounds is None:
                return not_known(f"where the log of {copy} starts and ends is not known now")
            translation = self.translator.translate(partition, offset, ids.get(partition[0], NOWHERE), bounds[0])
            return translation.within(*bounds)

        return translate

    async def _commit(self, due: Mapping[str, GroupPlan], there: ListedGroups, read: float) -> Mapping[str, GroupPlan]:
        """Commit while the read is fresh: this process may have been suspended, or waited for a connection."""
        absent = [self.source_groups.newest.groups[name] for name in due if name not in there.groups]
        new, failures = await coordinated(self.destination, absent) if absent else ([], {})
        groups = {**there.groups, **{group.name: group for group in new}}
        for name in due:
            del self._committed[name]
        commits = {groups[name]: each.commits for name, each in due.items() if name in groups}
        failures |= await set_offsets(self.destination, commits, functools.partial(_is_fresh, read))
        not_now = {f"group {name}": error for name, error in failures.items() if error.retriable}
        self.failures, self.stale = {**self.failures, **not_now}, {**self.stale, **not_now}
        return {name: _settled(each, failures.get(name)) for name, each in due.items()}


def _ours(commits: Commits) -> Commits:
    """The same commits in the link's form, without the leader epoch of a read record."""
    return {partition: commit._replace(leader_epoch=-1) for partition, commit in commits.items()}


def _settled(sent: GroupPlan, error: ApplianceError | None) -> GroupPlan:
    """The plan after the answers to its commits; failed ones are due in the next round."""
    if error is None or error.retriable:
        return sent if error else sent.done()
    return replace(sent, there=True) if has_members(error) else replace(sent, refused=str(error))


def _is_fresh(read: float) -> bool:
    return loop_seconds() - read <= _FRESH
