"""The registry of a destination cluster: the link to which each copy belongs, for all links (invariant I).

A compacted topic of one partition, ``replicator-registry``. A record says that a link claims a copy, known by name and
topic id. A writer first takes the transactional id of the same name, which fences all other writers; then it reads to
the end; then it claims unclaimed copies. So one of two links is always first. If a lagging broker has hidden the first
claim, the second is void, and withdrawn: each claim keeps its rank.

A link that shares copies tells the others which topics it copies by one record of its own, in the transaction of the
first claim that relies on it, or before. The replicator rewrites it when its settings have changed. When it gives a
shared copy up, it leaves the copy's id in the same transaction: its records stay there.
"""

import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from appliance.clock import now_ms
from appliance.errors import (
    ApplianceError,
    BrokerBusy,
    BrokerRefused,
    Fenced,
    LinkRefused,
    NewerRelease,
    PartitionsUnavailable,
    PeerError,
    raise_first,
)
from appliance.kafka.client.acls import AccessControlEntry
from appliance.kafka.client.compacted_log import CompactedLog
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.transactions import Producer, init_producer_id
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records.records import Record
from appliance.link.client.retry import is_loading, retry_while_busy
from appliance.link.client.writer import Writer
from appliance.link.model.claim_changes import Changes, Claimant, withdrawals
from appliance.link.model.claims import (
    Adopted,
    Claim,
    Copy,
    claim_key,
    configs_of,
    decode_claim,
    deletion_of,
    encode_claim,
    given_up,
    holding,
    told_topics,
    topics_of,
)
from appliance.link.model.link_check import was_deleted
from appliance.link.model.link_topics import ALL_TOPICS, LinkTopics
from appliance.link.model.naming import REGISTRY, Naming
from appliance.link.model.topic_configs import Configs, registry_topic

Still = Callable[[], Awaitable[Collection[str]]]
"""Returns the names of the copies that the link still wants."""

_PARTITION = Partition(REGISTRY, 0)
_TRANSACTION_TIMEOUT = 30.0
_ANOTHER_ID = "INVALID_PRODUCER_ID_MAPPING"
"""Another writer got a new producer id, as after 32,766 epochs of one: it has fenced this one all the same."""
_PAUSE_MAX = 0.5


@dataclass(slots=True)
class Registry:
    """The registry, as one link sees it.

    ``claims`` are those read so far: of a copy, the link's own if it holds, else the first. With ``shares`` the link
    lets others write to its copies, and tells them its ``topics``; ``_told`` are the records in which links do that.
    ``api_key`` is the variable of the key that reads it. ``unreadable`` are the skipped claims, and the newest skipped
    record that is none.
    """

    cluster: Cluster
    link: str
    replication_factor: int = -1
    shares: bool = False
    api_key: str = "DESTINATION_API_KEY"
    topics: LinkTopics = ALL_TOPICS
    claims: dict[Copy, Claim] = field(default_factory=dict)
    unreadable: dict[tuple[Copy, str] | None, PeerError] = field(default_factory=dict)
    _holders: dict[Copy, dict[str, Claim]] = field(default_factory=dict)
    _told: dict[str, Claim] = field(default_factory=dict)
    _log: CompactedLog = field(init=False)

    def __post_init__(self) -> None:
        self._log = CompactedLog(self.cluster, _PARTITION, self._take_all, self._forget)

    @classmethod
    def of(cls, cluster: Cluster, naming: Naming, replication_factor: int = -1) -> "Registry":
        """The registry as a link with these names sees it, which tells its topics there."""
        return cls(cluster, naming.replicator, replication_factor, naming.sharing.others_write, topics=naming.topics)

    async def refresh(self) -> bool:
        """Read the newly committed records; False if there is no registry."""
        return await self._log.refresh(
            f"look whose the copies are: grant {self.api_key} Describe and Read on {REGISTRY}"
        )

    def of_others(self, copies: Mapping[str, uuid.UUID]) -> dict[str, Claim]:
        """The claims of other links that keep this one from copies, by name."""
        found: dict[str, Claim] = {}
        for copy in copies.items():
            others = (claim for claim in self.holders(copy) if claim.link != self.link)
            kept = [claim for claim in others if claim.damage or not (self.shares and claim.shares)]
            found |= {copy[0]: kept[0]} if kept else {}
        return found

    def holders(self, copy: Copy) -> list[Claim]:
        """The claims that hold on a copy: of one link, or of all that share it."""
        return holding(self._holders.get(copy, {}).values())

    @property
    def sharing(self) -> set[str]:
        """The links that share copies, or would: one may have told its topics before it has a copy."""
        held = (claim for copy in self._holders for claim in self.holders(copy))
        written = (claim for held in self._holders.values() for claim in held.values() if claim.written)
        return {claim.link for claim in held if claim.shares} | {claim.link for claim in written} | self._told.keys()

    def claims_of(self, link: str) -> dict[Copy, Claim]:
        """The claims of a link that hold; not what it remembers of copies that it gave up."""
        copies = [copy for copy in self._holders if copy != given_up(copy[0])]
        return {copy: claim for copy in copies for claim in self.holders(copy) if claim.link == link}

    def given_up_by(self, link: str) -> set[Copy]:
        """The shared copies that a link has given up: its records are still there."""
        memories = ((name, held[link]) for (name, _), held in self._holders.items() if link in held)
        return {(name, topic_id) for name, memory in memories for topic_id in memory.written}

    def has_begun(self, copy: Copy) -> bool:
        """True of a copy that this link may have written to before it claimed it last, if at all."""
        held = [self._holders.get(key, {}).get(self.link) for key in (copy, given_up(copy[0]))]
        return any(copy[1] in claim.written | claim.begun for claim in held if claim)

    def topics_told(self, link: str) -> frozenset[LinkTopics]:
        """The topics that a link with shared copies may copy, as far as it tells them."""
        damaged = [held[link] for held in self._holders.values() if link in held and held[link].damage]
        return told_topics(self._told.get(link), [*self.claims_of(link).values(), *damaged])

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

    async def claim(
        self, copies: Mapping[str, uuid.UUID], *, take_over: bool = False, still: Still | None = None
    ) -> dict[str, Claim]:
        """Claim unclaimed copies, or with ``take_over`` all; the copies of other links, by name.

        Claims only those that ``still`` returns, once no other writer can interfere: before a claim is given up, the
        link's state forbids a new one. A command has none: its settings may not be the replicator's, which alone
        rewrites the record of the link's topics.

        Raises:
            LinkRefused: the link was deleted.
        """
        claimant = Claimant(self.link, self.shares, self.topics)

        def told() -> Changes:
            return claimant.tells(self._told.get(self.link), self._holders, now_ms(), renews=still is not None)

        async def wanted() -> Changes:
            if self.deletion:
                raise LinkRefused(was_deleted(self.link, self.deletion))
            chosen = copies if still is None else await still()
            these = [(name, copies[name]) for name in chosen if name in copies]
            return told() | claimant.claims(these, self._holders, now_ms(), take_over=take_over)

        if take_over or told() or not all(claimant.is_settled(self.holders(copy)) for copy in copies.items()):
            await self._make()
            await self._write(wanted)
            await self._take_back(copies)
        return self.of_others(copies)

    async def give_up(self, copies: Collection[str], deletion: Claim | None = None) -> None:
        """Take the link's claims back on copies of these names; with ``deletion`` all, and say that it was deleted.

        The ACLs that it has made stay, and are remembered: should it take a topic of that name back, they follow again.
        So are shared copies, in which its records stay.
        """

        async def wanted() -> Changes:
            changes = withdrawals(self.link, None if deletion else copies, self._holders, now_ms())
            if deletion and self.link in self._told:
                changes[topics_of(self.link), self.link] = None
            if deletion and not self.deletion:
                changes[deletion_of(self.link), self.link] = deletion
            return changes

        await self.refresh()
        if deletion or await wanted():
            await self._make()
            await self._write(wanted)

    async def withdraw_deletion(self) -> None:
        """Withdraw the record of the link's deletion: it is recreated."""
        key = deletion_of(self.link), self.link

        async def wanted() -> Changes:
            return {key: None} if self.deletion else {}

        if await wanted():
            await self._write(wanted)

    async def note(self, left_out: Mapping[Copy, tuple[str, ...]]) -> None:
        """Record the settings that copies of this link lack, if they have changed."""
        await self._note(lambda copy, claim: replace(claim, left_out=left_out.get(copy, claim.left_out)))

    async def note_adopted(self, adopted: Mapping[Copy, tuple[Adopted, ...]]) -> None:
        """Record the partitions of this link's copies that it has not begun, if they have changed."""
        await self._note(lambda copy, claim: replace(claim, adopted=adopted.get(copy, claim.adopted)))

    async def note_begun(self) -> None:
        """Record that this link may have written to each copy that it claims: its positions are lost."""
        await self.refresh()
        copies = {copy for copy in self.claims if copy not in (given_up(copy[0]), deletion_of(self.link))}
        await self._note(lambda copy, claim: replace(claim, begun=frozenset({copy[1]})) if copy in copies else claim)

    async def _note(self, noted: Callable[[Copy, Claim], Claim]) -> None:
        """Write those of this link's claims that are others once ``noted``."""

        async def changed() -> Changes:
            own = {copy: claim for copy, claim in self.claims.items() if claim.link == self.link}
            return {(copy, self.link): new for copy, claim in own.items() if (new := noted(copy, claim)) != claim}

        if await changed():
            await self._write(changed)

    @property
    def acls(self) -> dict[str, frozenset[AccessControlEntry]]:
        """The ACLs that this link made, or was about to make, by the copy's name: a recreated topic keeps its ACLs."""
        made: dict[str, frozenset[AccessControlEntry]] = {}
        for (name, _), holders in self._holders.items():
            if self.link in holders:
                made[name] = made.get(name, frozenset()) | holders[self.link].acls
        return made

    async def note_acls(
        self,
        made: Mapping[str, frozenset[AccessControlEntry]],
        removed: Mapping[str, frozenset[AccessControlEntry]],
    ) -> None:
        """Record the ACLs that this link is about to make, and those that it has removed, by the copy's name."""

        def noted(copy: Copy, claim: Claim) -> Claim:
            if copy == configs_of(copy[0]):
                return claim
            acls = claim.acls - removed.get(copy[0], frozenset()) | made.get(copy[0], frozenset())
            return replace(claim, acls=acls)

        await self._note(noted)

    def configs(self, copy: str) -> Configs:
        """The settings that this link has set on the copy of this name, or was about to set."""
        record = self._holders.get(configs_of(copy), {}).get(self.link)
        return record.configs if record else frozenset()

    async def note_configs(self, configs: Mapping[str, Configs]) -> None:
        """Record the settings of copies that are this link's, by their names, before it sets them."""

        async def changed() -> Changes:
            return {
                (configs_of(name), self.link): Claim(self.link, now_ms(), configs=settings) if settings else None
                for name, settings in configs.items()
                if settings != self.configs(name)
            }

        if await changed():
            await self._make()
            await self._write(changed)

    async def _take_back(self, copies: Mapping[str, uuid.UUID]) -> None:
        """Withdraw claims on copies that another link claimed first."""

        async def void() -> Changes:
            lost = [copy for copy in copies.items() if copy in self.claims and self.claims[copy].link != self.link]
            return {(copy, self.link): None for copy in lost if self.link in self._holders[copy]}

        if await void():
            await self._write(void)

    async def _make(self) -> None:
        known = await self.cluster.metadata([REGISTRY])
        if REGISTRY not in known.topics:
            made = await ConfigFilter(self.cluster).make([registry_topic(self.replication_factor)])
            raise_first(made.failures.values())
        await retry_while_busy(self._refresh_shown, longest_pause=_PAUSE_MAX)

    async def _refresh_shown(self) -> None:
        if not await self.refresh():
            raise BrokerBusy(f"{REGISTRY} is not shown by a broker that lags", "UNKNOWN_TOPIC_OR_PARTITION")

    async def _write(self, wanted: Callable[[], Awaitable[Changes]]) -> None:
        """Write claims; after interference by another link, compute the wanted ones again."""

        def passing(error: ApplianceError) -> bool:
            replaced = isinstance(error, BrokerRefused) and error.code == _ANOTHER_ID
            return replaced or isinstance(error, Fenced | PartitionsUnavailable | BrokerBusy)

        await retry_while_busy(lambda: self._write_alone(wanted), passing, _PAUSE_MAX)

    async def _write_alone(self, wanted: Callable[[], Awaitable[Changes]]) -> None:
        producer = await retry_while_busy(self._take_id, is_loading)
        await self._refresh_shown()
        changes = await wanted()
        if not changes:
            return
        metadata = await self.cluster.metadata([REGISTRY])
        records = [encode_claim(copy, link, claim, now_ms()) for (copy, link), claim in changes.items()]
        writer = Writer(self.cluster, producer, _PARTITION, metadata, _TRANSACTION_TIMEOUT)
        await writer.write((), lambda *_: {_PARTITION: records})
        await retry_while_busy(lambda: self._see(changes))

    async def _see(self, changes: Changes) -> None:
        """Read up to our own records: this finds all earlier claims, by any link."""
        await self.refresh()
        if not all(self._shows(copy, link, claim) for (copy, link), claim in changes.items()):
            raise BrokerBusy(f"{REGISTRY} does not show what was written to it", "UNKNOWN_LEADER_EPOCH")

    def _shows(self, copy: Copy, link: str, claim: Claim | None) -> bool:
        held = self._told.get(link) if copy == topics_of(link) else self._holders.get(copy, {}).get(link)
        if claim is None or held is None:
            return held is claim
        return replace(held, rank=claim.rank) == claim

    async def _take_id(self) -> Producer:
        self.cluster.forget_coordinator(REGISTRY)
        coordinator = await self.cluster.coordinator(REGISTRY)
        return await init_producer_id(coordinator, REGISTRY, _TRANSACTION_TIMEOUT)

    def _forget(self) -> None:
        self.claims.clear()
        self._holders.clear()
        self._told.clear()
        self.unreadable.clear()

    def _take_all(self, records: Iterable[Record]) -> None:
        for record in records:
            self._take(record)

    def _take(self, record: Record) -> None:
        of = None
        try:
            of = copy, link = claim_key(record)
            claim = decode_claim(record)[2]
            self.unreadable.pop(of, None)
        except PeerError as error:
            if isinstance(error, NewerRelease) or (of and of[1] == self.link):
                raise
            self.unreadable[of] = error
            if of is None:
                return  # no link has written it
            claim = Claim(link, 0, shares=True, damage=str(error))  # it may be one, and of any topics
        holders = self._told if copy == topics_of(link) else self._holders.setdefault(copy, {})
        if claim is None:
            holders.pop(link, None)
        else:
            holders[link] = claim if claim.rank >= 0 else replace(claim, rank=record.offset)
        if holders is not self._told:
            self._choose(copy, holders)

    def _choose(self, copy: Copy, holders: Mapping[str, Claim]) -> None:
        self.claims.pop(copy, None)
        if holders:
            held = holding(holders.values())
            self.claims[copy] = next((claim for claim in held if claim.link == self.link), held[0])
