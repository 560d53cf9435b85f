"""The changes of the registry by which a link claims copies or gives them up, and tells which topics it copies."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from appliance.kafka.client.acls import AccessControlEntry
from appliance.link.model.claims import Claim, Copy, configs_of, deletion_of, holding, memory_of, topics_of
from appliance.link.model.link_topics import ALL_TOPICS, LinkTopics
from appliance.link.model.topic_configs import Configs

Changes = dict[tuple[Copy, str], Claim | None]
"""Claims to write, by copy and link; None withdraws one."""

Holders = Mapping[Copy, Mapping[str, Claim]]
"""All claims on each copy, by link."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """A link that claims copies. With ``shares`` it lets others write to them, and tells them its ``topics``."""

    link: str
    shares: bool
    topics: LinkTopics

    def is_settled(self, holders: Sequence[Claim]) -> bool:
        """True when there is nothing to claim: the copy is this link's as it wants it, or another's that keeps it."""
        own = next((claim for claim in holders if claim.link == self.link), None)
        if own is None:
            return bool(holders) and not (self.shares and holders[0].shares)
        return own.shares is self.shares

    def claims(self, copies: Iterable[Copy], holders: Holders, now: int, *, take_over: bool) -> Changes:
        """Claims on unclaimed copies, and on those that others share; with ``take_over`` on all, of nobody else.

        A claim takes the place of what the link remembers of that copy since it gave it up, but for having begun it. Of
        a shared copy that is taken over, the registry remembers the links whose records stay in it. Settings that
        others have set on a copy become this link's with it.
        """
        changes: Changes = {}
        for copy in copies:
            by_link = holders.get(copy, {})
            if not take_over and self.is_settled(holding(by_link.values())):
                continue
            memory = holders.get(memory_of(copy[0]), {}).get(self.link)
            if memory and copy[1] in memory.written:
                others, begun = memory.written - {copy[1]}, memory.begun | {copy[1]}
                remainder = Claim(self.link, now, acls=memory.acls, written=others, begun=begun)
                changes[memory_of(copy[0]), self.link] = _memory(remainder)
            if not take_over and by_link:
                changes[copy, self.link] = self._as_now(by_link.get(self.link) or Claim(self.link, now))
                continue
            changes |= {(copy, link): None for link in by_link}
            for link in (link for link, claim in by_link.items() if claim.shares and link != self.link):
                key = memory_of(copy[0]), link
                before = changes.get(key) or holders.get(key[0], {}).get(link) or Claim(link, now)
                remainder = Claim(link, now, acls=before.acls, written=before.written | {copy[1]}, begun=before.begun)
                changes[key] = _memory(remainder)
            acls = frozenset[AccessControlEntry]().union(*(claim.acls for claim in by_link.values()))
            begun = by_link[self.link].begun if self.link in by_link else frozenset[uuid.UUID]()
            changes[copy, self.link] = self._as_now(Claim(self.link, now, acls=acls, begun=begun))
            settings = holders.get(configs_of(copy[0]), {})
            configs = Configs().union(*(claim.configs for claim in settings.values()))
            changes |= {(configs_of(copy[0]), link): None for link in settings}
            changes |= {(configs_of(copy[0]), self.link): Claim(self.link, now, configs=configs)} if configs else {}
        return changes

    def tells(self, record: Claim | None, holders: Holders, now: int, *, renews: bool) -> Changes:
        """The record of the link's topics, where it is missing; ``record`` is the present one.

        With ``renews`` also where it differs, and the claims that do not rely on it yet: those of older releases, with
        topics of their own. A link that no longer shares withdraws it.
        """
        key = topics_of(self.link), self.link
        if not self.shares:
            return {key: None} if record is not None and renews else {}
        changes: Changes = {}
        if record is None or (renews and (record.topics or ALL_TOPICS) != self.topics):
            changes[key] = Claim(self.link, now, shares=True, topics=self.topics)
        own = ((copy, by_link[self.link]) for copy, by_link in holders.items() if renews and self.link in by_link)
        return changes | {(copy, self.link): self._as_now(claim) for copy, claim in own if _tells_by_itself(claim)}

    def _as_now(self, claim: Claim) -> Claim:
        return replace(claim, shares=self.shares, recorded=self.shares, topics=None)


def withdrawals(link: str, names: Collection[str] | None, holders: Holders, now: int) -> Changes:
    """The withdrawal of a link's claims on copies of these names; None: of all, as the link is deleted.

    It remembers the ACLs that it has made, the copies that it has begun, and the shared ones in which its records stay;
    these only until it is deleted.
    """
    own = {copy: by_link[link] for copy, by_link in holders.items() if link in by_link and copy != deletion_of(link)}
    acls: dict[str, frozenset[AccessControlEntry]] = {}
    written: dict[str, frozenset[uuid.UUID]] = {}
    begun: dict[str, frozenset[uuid.UUID]] = {}
    remainders: dict[Copy, Claim] = {}
    for copy, claim in own.items():
        name, topic_id = copy
        acls[name] = acls.get(name, frozenset()) | claim.acls
        written[name] = written.get(name, frozenset()) | claim.written
        begun[name] = begun.get(name, frozenset()) | claim.begun | claim.written
        if copy != memory_of(name) and (names is None or name in names):
            remainders[copy] = claim
            written[name] |= {topic_id} if claim.shares else set()
            begun[name] |= set() if copy == configs_of(name) else {topic_id}
    changes: Changes = {(copy, link): None for copy in remainders}
    ended = {copy[0] for copy, claim in own.items() if claim.written and names is None}
    for name in ended | {name for name, _ in remainders}:
        shared_copies = frozenset[uuid.UUID]() if names is None else written[name]
        memory = _memory(Claim(link, now, acls=acls[name], written=shared_copies, begun=begun[name] - shared_copies))
        if memory or memory_of(name) in own:
            changes[memory_of(name), link] = memory
    return changes


def _memory(claim: Claim) -> Claim | None:
    """The record of the copies of one name that a link gave up; None if nothing of them is to be remembered.

    With shared copies it looks to other releases like the claim of one more: so they count the link there, too.
    """
    shared = bool(claim.written)
    return replace(claim, shares=shared, recorded=shared) if claim.acls or shared or claim.begun else None


def _tells_by_itself(claim: Claim) -> bool:
    """True of the claim of a shared copy by a release without the record of a link's topics."""
    return claim.shares and not (claim.recorded and claim.topics is None)
