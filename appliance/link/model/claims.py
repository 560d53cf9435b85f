"""Claims of copies by links, as values and as records of the registry (invariant I)."""

import json
import sys
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from appliance.kafka.client.acls import AccessControlEntry, AclOperation, AclPermission
from appliance.kafka.protocol.metadata import NOWHERE
from appliance.kafka.records.records import Record, body, key_and_value
from appliance.link.model.json_records import fields, reading, text, versioned, whole, words
from appliance.link.model.link_topics import ALL_TOPICS, LinkTopics
from appliance.link.model.naming import REGISTRY, Naming
from appliance.link.model.topic_configs import Configs

_VERSION = 1

Copy = tuple[str, uuid.UUID]
"""A destination topic's name and id."""


class AdoptedPartition(NamedTuple):
    """A partition of a copy that another program has begun: this link has copied from ``source`` to ``copy`` on."""

    partition: int
    source: int
    copy: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A copy's link, as ``replicator-<SOURCE_CLUSTER_ID>``; ``since`` in milliseconds.

    ``left_out`` are the settings of the source topic that the copy lacks, since the destination does not take them.
    ``rank`` is the offset of the copy's first claim; the link with the lowest has the copy. ``acls`` are the entries
    that the link has made on the copy, or was about to make; releases without ACLs ignore them. ``deleted_by``, with
    its ``why``, is empty except in the claim that records a link's deletion. A link that ``shares`` the copy lets other
    links that do so write there too. It copies the topics in its record, under ``topics_of``, if the claim is
    ``recorded``; ``topics`` are those of that record, and of claims by releases without it. ``adopted`` are the
    partitions that this link has not begun itself; releases without adoptions ignore them. ``written`` are the ids of
    shared copies that the link has given up, under ``memory_of``; other releases take that for a shared copy.
    ``begun``, there or in the claim, are copies that it may have written to before: a position that is missing was
    lost. ``configs`` are the settings that the link has set on the copy, or was about to set, under ``configs_of``.
    ``damage`` is the reason that another link's claim cannot be read: it may be of any kind.
    """

    link: str
    since: int
    left_out: tuple[str, ...] = ()
    rank: int = -1
    acls: frozenset[AccessControlEntry] = frozenset()
    deleted_by: str = ""
    why: str = ""
    shares: bool = False
    adopted: tuple[AdoptedPartition, ...] = ()
    recorded: bool = False
    topics: LinkTopics | None = None
    written: frozenset[uuid.UUID] = frozenset()
    begun: frozenset[uuid.UUID] = frozenset()
    configs: Configs = frozenset()
    damage: str = ""

    def admits(self, naming: Naming) -> bool:
        """True if a link with these names may write to the copy: it is that link's, or both share it."""
        both_share = naming.sharing.others_write and self.shares and not self.damage
        return self.link == naming.replicator or both_share


def holding(claims: Iterable[Claim]) -> list[Claim]:
    """Those of the claims on one copy that hold, the first one first: of several, all if they share the copy."""
    ordered = sorted(claims, key=lambda claim: claim.rank)
    return [*ordered[:1], *(claim for claim in ordered[1:] if ordered[0].shares and claim.shares)]


def topics_by_claims(record: Claim | None, claims: Iterable[Claim]) -> frozenset[LinkTopics]:
    """The topics that a link may copy to where copies are shared: by its ``record``, and by these claims of it.

    A claim that does not rely on the record is of an older release, which may have run since: what it tells counts too.
    One that tells nothing, or relies on a record that is missing, may be of any topic.
    """
    telling = [claim for claim in claims if claim.shares and not (claim.recorded and record) and not claim.written]
    return frozenset(each.topics or ALL_TOPICS for each in ([record, *telling] if record else telling))


def deletion_of(link: str) -> Copy:
    """The key, in place of a copy's, of the record of a link's deletion.

    A release that does not know it takes it for the claim of a missing copy.
    """
    return f"{link}.positions", NOWHERE


def topics_of(link: str) -> Copy:
    """The key, in place of a copy's, of the record of the topics that a link with shared copies copies.

    No topic has this id. A release that does not know it takes it for the claim of a missing copy.
    """
    return f"{link}.positions", uuid.UUID(int=2)


def memory_of(copy: str) -> Copy:
    """The key, in place of a copy's, under which a link remembers what it has left on copies that it gave up.

    That are the ACLs that it has made, and the ids of the copies in which its records stay, or were.
    No topic has this id. A release that does not know it takes it for the claim of a missing copy.
    """
    return copy, uuid.UUID(int=1)


def configs_of(copy: str) -> Copy:
    """The key, in place of a copy's, under which a link remembers the settings that it has set on copies of that name.

    It does so before a copy has an id. No topic has this one. Releases that do not know it leave the record alone,
    except if they note ACLs: then the settings are forgotten.
    """
    return copy, uuid.UUID(int=3)


def claim_key(record: Record) -> tuple[Copy, str]:
    """The copy and the link of a claim; raises as below."""
    with reading(REGISTRY, record):
        key = fields(key_and_value(record.body)[0])
        return (text(key["copy"]), uuid.UUID(key["id"])), text(key["link"])


def decode_claim(record: Record) -> tuple[Copy, str, Claim | None]:
    """Decode the claim of a link on a copy; None for a tombstone, which withdraws it.

    Raises:
        PeerError: a foreign writer has written to the registry; NewerRelease: a newer appliance.
    """
    copy, link = claim_key(record)
    _, value_bytes = key_and_value(record.body)
    if value_bytes is None:
        return copy, link, None
    with reading(REGISTRY, record):
        value = versioned(value_bytes, REGISTRY, record.offset, [_VERSION])
        claim = Claim(
            link,
            whole(value["since"]),
            tuple(map(text, value["left_out"])),
            whole(value["rank"]),
            frozenset(map(_entry, value.get("acls", ()))),
            words(value.get("deleted_by", "")),
            words(value.get("why", "")),
            bool(value.get("shares", False)),
            tuple(AdoptedPartition(*map(whole, each)) for each in value.get("adopted", ())),
            bool(value.get("recorded", False)),
            _topics(value) if "regex" in value else None,
            frozenset(map(uuid.UUID, value.get("written", ()))),
            begun=frozenset(map(uuid.UUID, value.get("begun", ()))),
            configs=frozenset((text(name), text(setting)) for name, setting in value.get("configs", ())),
        )
        return copy, link, claim


def encode_claim(copy: Copy, link: str, claim: Claim | None, now: int) -> Record:
    """The record by which a link claims a copy, or withdraws the claim; ``now`` is its timestamp in milliseconds."""
    key = {"copy": copy[0], "id": copy[1].hex, "link": link}
    if claim is None:
        return Record(0, now, body(json.dumps(key).encode(), None))
    value = {"version": _VERSION, "since": claim.since, "left_out": claim.left_out, "rank": claim.rank}
    value |= {"acls": [_words(entry) for entry in sorted(claim.acls)]} if claim.acls else {}
    value |= {"shares": True} if claim.shares else {}
    value |= {"recorded": True} if claim.recorded else {}
    value |= {"regex": claim.topics.regex} if claim.topics else {}
    value |= {"excluded": claim.topics.excluded} if claim.topics and claim.topics.excluded else {}
    value |= {"deleted_by": claim.deleted_by, "why": claim.why} if claim.deleted_by else {}
    value |= {"adopted": claim.adopted} if claim.adopted else {}
    value |= {"written": sorted(each.hex for each in claim.written)} if claim.written else {}
    value |= {"begun": sorted(each.hex for each in claim.begun)} if claim.begun else {}
    value |= {"configs": sorted(claim.configs)} if claim.configs else {}
    return Record(0, now, body(json.dumps(key).encode(), json.dumps(value).encode()))


def _topics(value: Mapping[str, Any]) -> LinkTopics:
    """The topics that a record tells; in older releases each claim of a link has the same regex."""
    return LinkTopics(sys.intern(text(value["regex"])), tuple(map(text, value.get("excluded", ()))))


def _words(entry: AccessControlEntry) -> list[str]:
    return [entry.permission.name, entry.principal, entry.host, entry.operation.name]


def _entry(parts: list[str]) -> AccessControlEntry:
    permission, principal, host, operation = map(text, parts)
    return AccessControlEntry(AclPermission[permission], principal, host, AclOperation[operation])


def belongs_to_another(copy: str, claim: Claim, naming: Naming) -> str:
    """The reason that nothing is copied to a topic."""
    if naming.sharing.others_write and not claim.damage:
        return (
            f"destination topic {copy} belongs to link {claim.link}, which does not share it: set REPLICA_FAN_IN=yes "
            "there too"
        )
    return (
        f"destination topic {copy} belongs to link {claim.link}{claim.damage and f' ({claim.damage})'}: choose another "
        f"{naming.policy.variable}; when that link is no more, take the copy over by `appliance resume --topic-name "
        "... --from ... --take-over`"
    )


def would_travel_in_circles(
    topic: str, holders: Iterable[Claim], naming: Naming, from_destination: Mapping[str, str]
) -> str:
    """The reason that a source topic, of which these are the claims at the source, is not copied; empty if it may be.

    ``from_destination`` are links into the source that copy, or may copy, from this link's destination, with the reason
    not to copy what they have copied. With identical names, what a link wrote there is left out by its producer ids,
    which only links of shared copies leave there.
    """
    for claim in holders:
        copy = f"{topic} is a copy of {claim.link}"
        if not naming.sharing.tells_origins:
            if reason := from_destination.get(claim.link):
                return f"{copy}: {reason}"
        elif claim.damage:
            return f"{copy}, which may not leave its producer ids at the source: {claim.damage}"
        elif not claim.shares:
            return (
                f"{copy}, which does not leave its producer ids at the source: give that link "
                "REPLICA_TOPICS_NAMING=identical too, or exclude the topic"
            )
    return ""
