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
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from appliance.clock import now_ms
from appliance.errors import (
    ApplianceError,
    BrokerBusy,
    BrokerRefused,
    Fenced,
    LinkRefused,
    PartitionsUnavailable,
    raise_first,
)
from appliance.kafka.client.acls import AccessControlEntry
from appliance.kafka.client.compacted_log import CompactedLog
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.transactions import Producer, init_producer_id
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.retry import is_loading, retry_while_busy
from appliance.link.client.writer import Writer
from appliance.link.model.claim_changes import Changes, Claimant, withdrawals
from appliance.link.model.claim_ledger import ClaimLedger
from appliance.link.model.claims import (
    AdoptedPartition,
    Claim,
    Copy,
    configs_of,
    deletion_of,
    encode_claim,
    memory_of,
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
    """The registry, as one link sees it: what it has read is in its ``ledger``.

    With ``shares`` the link lets others write to its copies, and tells them its ``topics``. ``api_key`` is the variable
    of the key that reads it.
    """

    cluster: Cluster
    link: str
    replication_factor: int = -1
    shares: bool = False
    api_key: str = "DESTINATION_API_KEY"
    topics: LinkTopics = ALL_TOPICS
    ledger: ClaimLedger = field(init=False)
    _log: CompactedLog = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = ClaimLedger(self.link, self.shares)
        self._log = CompactedLog(self.cluster, _PARTITION, self.ledger.take, self.ledger.forget)

    @classmethod
    def of(cls, cluster: Cluster, naming: Naming, replication_factor: int = -1) -> "Registry":
        """The registry as a link with these names sees it, which tells its topics there."""
        return cls(cluster, naming.replicator, replication_factor, naming.sharing.others_write, topics=naming.topics)

    async def refresh(self) -> bool:
        """Read the newly committed records; False if there is no registry."""
        return await self._log.refresh(
            f"look whose the copies are: grant {self.api_key} Describe and Read on {REGISTRY}"
        )

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

        def topics_record() -> Changes:
            return claimant.tells(
                self.ledger.topics.get(self.link), self.ledger.holders, now_ms(), renews=still is not None
            )

        async def changes() -> Changes:
            if self.ledger.deletion:
                raise LinkRefused(was_deleted(self.link, self.ledger.deletion))
            chosen = copies if still is None else await still()
            these = [(name, copies[name]) for name in chosen if name in copies]
            return topics_record() | claimant.claims(these, self.ledger.holders, now_ms(), take_over=take_over)

        if (
            take_over
            or topics_record()
            or not all(claimant.is_settled(self.ledger.holding(copy)) for copy in copies.items())
        ):
            await self._make()
            await self._write(changes)
            await self._take_back(copies)
        return self.ledger.of_others(copies)

    async def give_up(self, copies: Collection[str], deletion: Claim | None = None) -> None:
        """Take the link's claims back on copies of these names; with ``deletion`` all, and say that it was deleted.

        The ACLs that it has made stay, and are remembered: should it take a topic of that name back, they follow again.
        So are shared copies, in which its records stay.
        """

        async def changes() -> Changes:
            withdrawn = withdrawals(self.link, None if deletion else copies, self.ledger.holders, now_ms())
            if deletion and self.link in self.ledger.topics:
                withdrawn[topics_of(self.link), self.link] = None
            if deletion and not self.ledger.deletion:
                withdrawn[deletion_of(self.link), self.link] = deletion
            return withdrawn

        await self.refresh()
        if deletion or await changes():
            await self._make()
            await self._write(changes)

    async def withdraw_deletion(self) -> None:
        """Withdraw the record of the link's deletion: it is recreated."""
        key = deletion_of(self.link), self.link

        async def changes() -> Changes:
            return {key: None} if self.ledger.deletion else {}

        if await changes():
            await self._write(changes)

    async def note(self, left_out: Mapping[Copy, tuple[str, ...]]) -> None:
        """Record the settings that copies of this link lack, if they have changed."""
        await self._note(lambda copy, claim: replace(claim, left_out=left_out.get(copy, claim.left_out)))

    async def note_adopted(self, adopted: Mapping[Copy, tuple[AdoptedPartition, ...]]) -> None:
        """Record the partitions of this link's copies that it has not begun, if they have changed."""
        await self._note(lambda copy, claim: replace(claim, adopted=adopted.get(copy, claim.adopted)))

    async def note_begun(self) -> None:
        """Record that this link may have written to each copy that it claims: its positions are lost."""
        await self.refresh()
        copies = {copy for copy in self.ledger.claims if copy not in (memory_of(copy[0]), deletion_of(self.link))}
        await self._note(lambda copy, claim: replace(claim, begun=frozenset({copy[1]})) if copy in copies else claim)

    async def _note(self, noted: Callable[[Copy, Claim], Claim]) -> None:
        """Write those of this link's claims that are others once ``noted``."""

        async def changed() -> Changes:
            own = {copy: claim for copy, claim in self.ledger.claims.items() if claim.link == self.link}
            return {(copy, self.link): new for copy, claim in own.items() if (new := noted(copy, claim)) != claim}

        if await changed():
            await self._write(changed)

    async def note_acls(
        self,
        new: Mapping[str, frozenset[AccessControlEntry]],
        removed: Mapping[str, frozenset[AccessControlEntry]],
    ) -> None:
        """Record the ACLs that this link is about to make, and those that it has removed, by the copy's name."""

        def noted(copy: Copy, claim: Claim) -> Claim:
            if copy == configs_of(copy[0]):
                return claim
            acls = claim.acls - removed.get(copy[0], frozenset()) | new.get(copy[0], frozenset())
            return replace(claim, acls=acls)

        await self._note(noted)

    async def note_configs(self, configs: Mapping[str, Configs]) -> None:
        """Record the settings of copies that are this link's, by their names, before it sets them."""

        async def changed() -> Changes:
            return {
                (configs_of(name), self.link): Claim(self.link, now_ms(), configs=settings) if settings else None
                for name, settings in configs.items()
                if settings != self.ledger.configs(name)
            }

        if await changed():
            await self._make()
            await self._write(changed)

    async def _take_back(self, copies: Mapping[str, uuid.UUID]) -> None:
        """Withdraw claims on copies that another link claimed first."""

        async def void() -> Changes:
            claims, holders = self.ledger.claims, self.ledger.holders
            others = [copy for copy in copies.items() if copy in claims and claims[copy].link != self.link]
            return {(copy, self.link): None for copy in others if self.link in holders[copy]}

        if await void():
            await self._write(void)

    async def _make(self) -> None:
        existing = await self.cluster.metadata([REGISTRY])
        if REGISTRY not in existing.topics:
            answer = await ConfigFilter(self.cluster).make([registry_topic(self.replication_factor)])
            raise_first(answer.failures.values())
        await retry_while_busy(self._refresh_shown, longest_pause=_PAUSE_MAX)

    async def _refresh_shown(self) -> None:
        if not await self.refresh():
            raise BrokerBusy(f"{REGISTRY} is not shown by a broker that lags", "UNKNOWN_TOPIC_OR_PARTITION")

    async def _write(self, changes: Callable[[], Awaitable[Changes]]) -> None:
        """Write claims; after interference by another link, compute them again."""

        def passing(error: ApplianceError) -> bool:
            replaced = isinstance(error, BrokerRefused) and error.code == _ANOTHER_ID
            return replaced or isinstance(error, Fenced | PartitionsUnavailable | BrokerBusy)

        await retry_while_busy(lambda: self._write_alone(changes), passing, _PAUSE_MAX)

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
        if not all(self.ledger.shows(copy, link, claim) for (copy, link), claim in changes.items()):
            raise BrokerBusy(f"{REGISTRY} does not show what was written to it", "UNKNOWN_LEADER_EPOCH")

    async def _take_id(self) -> Producer:
        self.cluster.forget_coordinator(REGISTRY)
        coordinator = await self.cluster.coordinator(REGISTRY)
        return await init_producer_id(coordinator, REGISTRY, _TRANSACTION_TIMEOUT)
