"""The ACLs that copies get of their source topics. Pure: the source's ACLs in, entries for each copy out.

- A copy gets the ACLs that cover its source topic by its name, by a prefix of it, or by ``*``. It gets them by its own
  name, so that no other topic is affected, and each copy can be promoted alone.
- It gets read rights alone: ALLOW of READ, DESCRIBE and DESCRIBE_CONFIGS, and these three in place of ALL.
- Every DENY is copied as it is, except one that would bind the link too: of everybody, or of its own principal. The
  ALLOWs that such a DENY overrides at the source are not copied either, so that nobody gains rights.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from appliance.kafka.client.acls import AccessControlEntry, AclBinding, AclOperation, AclPermission, PatternType

EVERYBODY = "User:*"
_ANONYMOUS = "ANONYMOUS"
_ALL_TOPICS = "*"
_READING = (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
_BEATS: Mapping[AclOperation, frozenset[AclOperation]] = {
    AclOperation.READ: frozenset({AclOperation.READ, AclOperation.DESCRIBE, AclOperation.ALL}),
    AclOperation.DESCRIBE: frozenset({AclOperation.DESCRIBE, AclOperation.ALL}),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.DESCRIBE_CONFIGS, AclOperation.ALL}),
}
"""The denied operations that cancel an allowed one; READ includes DESCRIBE."""

Entries = frozenset[AccessControlEntry]


@dataclass(frozen=True, slots=True)
class CopiedAcls:
    """The entries that a copy gets, and the denials of its source topic that it cannot have."""

    entries: Entries = frozenset()
    left_out: Entries = frozenset()


@dataclass(frozen=True, slots=True)
class AclChanges:
    """The entries to make on a copy and to remove from it, by copy; only copies with any."""

    made: Mapping[str, Entries]
    removed: Mapping[str, Entries]

    def __bool__(self) -> bool:
        """True when there is anything to change."""
        return bool(self.made or self.removed)


def principal_of(user: str) -> str:
    """The principal of a user in a cluster; the cluster may have other rules."""
    return f"User:{user or _ANONYMOUS}"


def copied_acls(at_source: Iterable[AclBinding], topics: Iterable[str], link: str) -> dict[str, CopiedAcls]:
    """The ACLs for the copy of each source topic; ``link`` is the principal that writes the copies."""
    literal: dict[str, set[AccessControlEntry]] = {}
    prefixed: dict[str, set[AccessControlEntry]] = {}
    for binding in at_source:
        bindings = literal if binding.pattern is PatternType.LITERAL else prefixed
        bindings.setdefault(binding.name, set()).add(binding.entry)
    for_all = literal.get(_ALL_TOPICS, set())
    lengths = sorted({len(prefix) for prefix in prefixed})
    copies = {}
    for topic in topics:
        beginnings = (topic[:length] for length in lengths if length <= len(topic))
        covering = for_all | literal.get(topic, set())
        copies[topic] = _for_copy(covering.union(*(prefixed.get(each, set()) for each in beginnings)), link)
    return copies


def _for_copy(entries: Iterable[AccessControlEntry], link: str) -> CopiedAcls:
    denials = {entry for entry in entries if entry.permission is AclPermission.DENY}
    left_out = frozenset(entry for entry in denials if entry.principal in (EVERYBODY, link))
    allowed = {right for entry in entries if entry.permission is AclPermission.ALLOW for right in _to_read(entry)}
    rights = (
        {entry for entry in allowed if not any(_beaten(entry, denial) for denial in left_out)} if left_out else allowed
    )
    return CopiedAcls(frozenset(rights | denials) - left_out, left_out)


def _to_read(entry: AccessControlEntry) -> Iterable[AccessControlEntry]:
    """The part of an ALLOW that is granted on a copy."""
    if entry.operation is AclOperation.ALL:
        return [replace(entry, operation=operation) for operation in _READING]
    return [entry] if entry.operation in _READING else []


def _beaten(allowed: AccessControlEntry, denial: AccessControlEntry) -> bool:
    """True if a DENY cancels or reduces a right; the denial of one host counts for every host."""
    return denial.principal in (EVERYBODY, allowed.principal) and denial.operation in _BEATS[allowed.operation]


def acl_changes(
    wanted: Mapping[str, Entries], there: Mapping[str, Entries], made_before: Mapping[str, Entries]
) -> AclChanges:
    """The changes that lead to the wanted ACLs, by copy; ``made_before`` are those that the link made or was about to
    make.

    ACLs that the link has not made stay. The link's own are removed even if unseen: the broker that lists them may lag.
    """
    none: Entries = frozenset()
    added = {copy: new for copy, entries in wanted.items() if (new := entries - there.get(copy, none))}
    removed = {copy: gone for copy, entries in wanted.items() if (gone := made_before.get(copy, none) - entries)}
    return AclChanges(added, removed)
