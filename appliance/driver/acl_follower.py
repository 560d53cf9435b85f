"""The read ACLs of copies, kept like those of their source topics.

An ACL does not record who made it. So the link records the ACLs in the registry before it makes them, and removes only
those; the record goes when they are removed. After a kill, the next round continues.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError
from appliance.kafka.client.acls import (
    AccessControlEntry,
    AclBinding,
    AclPermission,
    PatternType,
    create_acls,
    delete_acls,
    topic_acls,
)
from appliance.link.handle import Link
from appliance.link.model.copied_acls import AclChanges, CopiedAcls, Entries, acl_changes, copied_acls
from appliance.link.model.problems import ACLS
from appliance.listing import some

log = logging.getLogger("appliance.replicator")

_ROUND_SEARCHES = 5
"""Number of searches for topics that cover the ACLs of all copies; those of new copies are checked at once."""


@dataclass(frozen=True, slots=True)
class AclDiff:
    """The ACLs that copies would get, by source topic, and the changes that lead there."""

    copied: Mapping[str, CopiedAcls]
    changes: AclChanges


@dataclass(slots=True)
class AclFollower:
    """Makes the ACLs that the readers of copies need, and removes its own that have no counterpart at the source.

    ``principal`` writes the copies. ``copies`` of each call are their names, by source topic.
    """

    link: Link
    principal: str
    problems: ProblemLog = field(default_factory=ProblemLog)
    _searches: int = 0
    _followed: frozenset[str] = frozenset()

    async def diff(self, copies: Mapping[str, str]) -> AclDiff:
        """Compare the copies with their source topics, and change nothing; the registry has been read."""
        copied = copied_acls(await topic_acls(self.link.source), copies, self.principal)
        names = set(copies.values())
        at_destination = await topic_acls(self.link.destination)
        on_copies = [each for each in at_destination if each.pattern is PatternType.LITERAL and each.name in names]
        intended = {copies[topic]: acls.entries for topic, acls in copied.items()}
        return AclDiff(copied, acl_changes(intended, _by_copy(on_copies), self.link.registry.ledger.acls))

    async def follow(self, copies: Mapping[str, str]) -> None:
        """Update the copies' ACLs, in every fifth call or with new copies; failures are one problem."""
        self._searches += 1
        if self._searches % _ROUND_SEARCHES and self._followed >= copies.keys():
            return
        self._followed = frozenset(copies)
        try:
            causes = await self._follow(copies) if copies else set()
        except ApplianceError as error:
            causes = {str(error)}
        if causes:
            self.problems.tell(ACLS, ApplianceError(some(sorted(causes), separator="; ")))
        else:
            self.problems.over(ACLS)

    async def _follow(self, copies: Mapping[str, str]) -> set[str]:
        diff = await self.diff(copies)
        causes = {why_left_out(entry, topics) for entry, topics in left_out(diff.copied).items()}
        if diff.changes:
            await self.link.registry.note_acls(diff.changes.made, {})
            causes |= await self._change(await self._still_active(copies, diff.changes))
        return causes

    async def _still_active(self, copies: Mapping[str, str], changes: AclChanges) -> AclChanges:
        """The changes, except for copies that were paused or promoted since the comparison began."""
        active = {copies[topic] for topic in await self.link.lanes.still_active(copies)}
        return AclChanges(
            {copy: entries for copy, entries in changes.made.items() if copy in active},
            {copy: entries for copy, entries in changes.removed.items() if copy in active},
        )

    async def _change(self, changes: AclChanges) -> set[str]:
        """Make and remove; the reasons of failures. In between nobody has more rights than before or after.

        Nor has anybody where something fails: a copy whose rights were not all taken is given none, until they are.
        """
        new, old = _bindings(changes.made), _bindings(changes.removed)
        denied, allowed = _of(new, AclPermission.DENY), _of(old, AclPermission.ALLOW)
        failed = await create_acls(self.link.destination, denied)
        failed |= await delete_acls(self.link.destination, allowed)
        untaken = {each.name for each in failed}
        granted = [each for each in _of(new, AclPermission.ALLOW) if each.name not in untaken]
        failed |= await create_acls(self.link.destination, granted)
        lifted = [each for each in _of(old, AclPermission.DENY) if each.name not in untaken]
        failed |= await delete_acls(self.link.destination, lifted)
        done = [each for each in (*denied, *allowed, *granted, *lifted) if each not in failed]
        gone = set(done).intersection(old)
        refused = [each for each in new if each in failed and not failed[each].retriable]
        await self.link.registry.note_acls({}, _by_copy([*gone, *refused]))
        for copy, count in sorted(Counter(each.name for each in done).items()):
            log.info("ACLs followed", extra={"fields": {"topic": copy, "changed": count}})
        return set(map(str, failed.values()))


def left_out(copied: Mapping[str, CopiedAcls]) -> dict[AccessControlEntry, list[str]]:
    """The denials that copies cannot have, each with its source topics."""
    topics_of: dict[AccessControlEntry, list[str]] = {}
    for topic, each in sorted(copied.items()):
        for entry in each.left_out:
            topics_of.setdefault(entry, []).append(topic)
    return topics_of


def why_left_out(entry: AccessControlEntry, topics: Sequence[str]) -> str:
    """The reason that a denial is not copied, for people."""
    more = f" and {len(topics) - 1} more" if len(topics) > 1 else ""
    return f"{entry} on {topics[0]}{more} stays behind with the ALLOWs that it beats: it would bind this link too"


def _bindings(changes: Mapping[str, Entries]) -> list[AclBinding]:
    return [AclBinding(copy, PatternType.LITERAL, entry) for copy in sorted(changes) for entry in sorted(changes[copy])]


def _of(bindings: Iterable[AclBinding], permission: AclPermission) -> list[AclBinding]:
    return [each for each in bindings if each.entry.permission is permission]


def _by_copy(bindings: Iterable[AclBinding]) -> dict[str, Entries]:
    entries: dict[str, Entries] = {}
    for each in bindings:
        entries[each.name] = entries.get(each.name, frozenset()) | {each.entry}
    return entries
