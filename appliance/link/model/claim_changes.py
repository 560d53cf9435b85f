"""The changes of the registry by which a link claims copies, and tells which topics it copies."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from appliance.kafka.client.acls import AccessControlEntry
from appliance.link.model.claims import Claim, Copy, holding, topics_of
from appliance.link.model.link_topics import ALL_TOPICS, LinkTopics

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
        """Claims on unclaimed copies, and on those that others share; with ``take_over`` on all, of nobody else."""
        wanted: Changes = {}
        for copy in copies:
            held = holders.get(copy, {})
            if not take_over and self.is_settled(holding(held.values())):
                continue
            if not take_over and held:
                wanted[copy, self.link] = self._as_now(held.get(self.link) or Claim(self.link, now))
                continue
            wanted |= {(copy, link): None for link in held}
            acls = frozenset[AccessControlEntry]().union(*(claim.acls for claim in held.values()))
            wanted[copy, self.link] = self._as_now(Claim(self.link, now, acls=acls))
        return wanted

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
        own = ((copy, held[self.link]) for copy, held in holders.items() if renews and self.link in held)
        return changes | {(copy, self.link): self._as_now(claim) for copy, claim in own if _tells_by_itself(claim)}

    def _as_now(self, claim: Claim) -> Claim:
        return replace(claim, shares=self.shares, recorded=self.shares, topics=None)


def _tells_by_itself(claim: Claim) -> bool:
    """True of the claim of a shared copy by a release without the record of a link's topics."""
    return claim.shares and not (claim.recorded and claim.topics is None)
