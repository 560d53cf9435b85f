"""The claims on copies, as one link has read them: who may write to a copy, and what each link has left there."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from appliance.errors import NewerRelease, PeerError
from appliance.kafka.client.acls import AccessControlEntry
from appliance.kafka.protocol.metadata import Metadata
from appliance.kafka.records.records import Record
from appliance.link.model.claims import (
    Claim,
    Copy,
    claim_key,
    configs_of,
    decode_claim,
    deletion_of,
    holding,
    memory_of,
    topics_by_claims,
    topics_of,
)
from appliance.link.model.link_topics import LinkTopics
from appliance.link.model.topic_configs import Configs


@dataclass(slots=True)
class ClaimLedger:
    """The claims that ``link`` has read; with ``shares`` it lets others write to its copies.

    ``claims`` holds for each copy the link's own claim if it holds, else the first. ``holders`` are all claims of a
    copy by link, and ``topics`` the records in which links with shared copies tell their topics. ``unreadable`` are the
    skipped claims, and the newest skipped record that is none.
    """

    link: str
    shares: bool = False
    claims: dict[Copy, Claim] = field(default_factory=dict)
    unreadable: dict[tuple[Copy, str] | None, PeerError] = field(default_factory=dict)
    holders: dict[Copy, dict[str, Claim]] = field(default_factory=dict)
    topics: dict[str, Claim] = field(default_factory=dict)

    def of_others(self, copies: Mapping[str, uuid.UUID]) -> dict[str, Claim]:
        """The claims of other links that keep this one from copies, by name."""
        claims: dict[str, Claim] = {}
        for copy in copies.items():
            others = (claim for claim in self.holding(copy) if claim.link != self.link)
            against = [claim for claim in others if claim.damage or not (self.shares and claim.shares)]
            claims |= {copy[0]: against[0]} if against else {}
        return claims

    def holding(self, copy: Copy) -> list[Claim]:
        """The claims that hold on a copy: of one link, or of all that share it."""
        return holding(self.holders.get(copy, {}).values())

    @property
    def sharing(self) -> set[str]:
        """The links that share copies, or would: one may have told its topics before it has a copy."""
        valid = (claim for copy in self.holders for claim in self.holding(copy))
        written = (claim for by_link in self.holders.values() for claim in by_link.values() if claim.written)
        return {claim.link for claim in valid if claim.shares} | {claim.link for claim in written} | self.topics.keys()

    def claims_of(self, link: str) -> dict[Copy, Claim]:
        """The claims of a link that hold; not what it remembers of copies that it gave up."""
        copies = [copy for copy in self.holders if copy != memory_of(copy[0])]
        return {copy: claim for copy in copies for claim in self.holding(copy) if claim.link == link}

    def former_copies(self, link: str) -> set[Copy]:
        """The shared copies that a link has given up: its records are still there."""
        memories = ((name, by_link[link]) for (name, _), by_link in self.holders.items() if link in by_link)
        return {(name, topic_id) for name, memory in memories for topic_id in memory.written}

    def has_begun(self, copy: Copy) -> bool:
        """True of a copy that this link may have written to before it claimed it last, if at all."""
        own = [self.holders.get(key, {}).get(self.link) for key in (copy, memory_of(copy[0]))]
        return any(copy[1] in claim.written | claim.begun for claim in own if claim)

    def topics_of(self, link: str) -> frozenset[LinkTopics]:
        """The topics that a link with shared copies may copy, as far as it tells them."""
        damaged = [by_link[link] for by_link in self.holders.values() if link in by_link and by_link[link].damage]
        return topics_by_claims(self.topics.get(link), [*self.claims_of(link).values(), *damaged])

    @property
    def deletion(self) -> Claim | None:
        """The record that this link was deleted; None if it was not."""
        claim = self.claims.get(deletion_of(self.link))
        return claim if claim is not None and claim.deleted_by else None

    def own(self, there: Metadata) -> list[Copy]:
        """The existing copies of this link."""
        topics = {(topic.name, topic.id) for topic in there.topics.values()}
        own = {copy for copy, claim in self.claims.items() if claim.link == self.link}
        return sorted(topics & own - {deletion_of(self.link)})

    @property
    def acls(self) -> dict[str, frozenset[AccessControlEntry]]:
        """The ACLs that this link made, or was about to make, by the copy's name: a recreated topic keeps its ACLs."""
        by_name: dict[str, frozenset[AccessControlEntry]] = {}
        for (name, _), by_link in self.holders.items():
            if self.link in by_link:
                by_name[name] = by_name.get(name, frozenset()) | by_link[self.link].acls
        return by_name

    def configs(self, copy: str) -> Configs:
        """The settings that this link has set on the copy of this name, or was about to set."""
        record = self.holders.get(configs_of(copy), {}).get(self.link)
        return record.configs if record else frozenset()

    def shows(self, copy: Copy, link: str, claim: Claim | None) -> bool:
        """True if this is the claim of a link on a copy, whatever its rank; None: it has none."""
        current = self.topics.get(link) if copy == topics_of(link) else self.holders.get(copy, {}).get(link)
        if claim is None or current is None:
            return current is claim
        return replace(current, rank=claim.rank) == claim

    def forget(self) -> None:
        """Start again with a log from its beginning."""
        for read in (self.claims, self.holders, self.topics, self.unreadable):
            read.clear()

    def take(self, records: Iterable[Record]) -> None:
        """Add the next records of the log.

        Raises:
            PeerError: the link's own claim is unreadable; NewerRelease: a newer release has written one.
        """
        for record in records:
            self._take(record)

    def _take(self, record: Record) -> None:
        key = None
        try:
            key = copy, link = claim_key(record)
            claim = decode_claim(record)[2]
            self.unreadable.pop(key, None)
        except PeerError as error:
            if isinstance(error, NewerRelease) or (key and key[1] == self.link):
                raise
            self.unreadable[key] = error
            if key is None:
                return  # no link has written it
            claim = Claim(link, 0, shares=True, damage=str(error))  # it may be one, and of any topics
        by_link = self.topics if copy == topics_of(link) else self.holders.setdefault(copy, {})
        if claim is None:
            by_link.pop(link, None)
        else:
            by_link[link] = claim if claim.rank >= 0 else replace(claim, rank=record.offset)
        if by_link is not self.topics:
            self._choose(copy)

    def _choose(self, copy: Copy) -> None:
        self.claims.pop(copy, None)
        if valid := self.holding(copy):
            self.claims[copy] = next((claim for claim in valid if claim.link == self.link), valid[0])
