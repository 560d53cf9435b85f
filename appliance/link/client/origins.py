"""The lanes that wrote into a cluster: its topic of producers, read as far as the batches at hand require."""

import asyncio
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from appliance.clock import loop_seconds
from appliance.errors import ApplianceError, BrokerRefused, ProducersLost
from appliance.kafka.client.fetch import FetchLimits, fetch_partition
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.open_transactions import transactional_ids
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.kafka.records import batch
from appliance.kafka.records.batch import CONTROL, Header
from appliance.kafka.records.records import unpack
from appliance.link.client.registry import Registry
from appliance.link.model.naming import FAILBACK, PRODUCERS
from appliance.link.model.producers import Producers, RegisteredProducer, link_of
from appliance.settings.role import prefix_of

NAMES = Partition(PRODUCERS, 0)
"""The partition of the names of all links' producers."""

_PAUSES = (0.1, 0.4, 1.0, 3.0)
"""Pauses before a name is looked for again, in seconds: a former leader may not know yet that it was replaced."""

_OTHERS_MAX = 100_000

_LIMITS = FetchLimits(1024 * 1024, wait=0.1, committed=False)


@dataclass(slots=True)
class Origins:
    """The lanes that wrote into ``cluster``; ``topic_id`` is that of its topic of producers when the link was made.

    Without it that topic may be deleted and made anew: names that were read stay true.
    """

    cluster: Cluster
    topic_id: uuid.UUID | None = None
    producers: Producers = field(default_factory=lambda: Producers(""))
    _read_to: int = -1
    _failed: tuple[float, ApplianceError] | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def api_key(self) -> str:
        """The variable of the key that reads the names."""
        return f"{prefix_of(self.cluster.side)}_API_KEY"

    async def learn(self, headers: Collection[Header]) -> None:
        """Find out which of these batches a lane wrote; asks the cluster at first, and then for unknown ids alone.

        A sharing lane's name is in the topic before its first copy, so that an id without a name now is none's.

        Raises:
            ProducersLost: the topic does not hold what it did, or lacks a lane; the batches must not be copied.
        """
        async with self._lock:
            for pause in (*_PAUSES, None):
                if self._read_to >= 0 and not self.producers.unknown(headers):
                    return
                await self._refresh()
                missing = await self._lost(headers)
                if len(self.producers.others) > _OTHERS_MAX:
                    self.producers.others.clear()  # known ones are looked up again
                self.producers.others |= self.producers.unknown(headers) - missing.keys()
                if not missing:
                    return
                if pause is None:
                    raise ProducersLost(f"{PRODUCERS} lacks {next(iter(missing.values()))}")
                await asyncio.sleep(pause)

    async def refresh(self) -> None:
        """Read the names written by now; a cluster without such a topic has none.

        Of many at once, those that wait for a read that fails share its error.
        """
        began = loop_seconds()
        async with self._lock:
            if self._failed is not None and self._failed[0] > began:
                raise self._failed[1]
            try:
                await self._refresh()
            except ApplianceError as error:
                self._failed = loop_seconds(), error
                raise

    async def _refresh(self) -> None:
        metadata = await self.cluster.metadata([PRODUCERS])
        topic = metadata.topics.get(PRODUCERS)
        if self.topic_id is None and topic is None:
            return
        self._require_same(topic)
        if self.producers.cluster != metadata.cluster_id:
            self.producers, self._read_to = Producers(metadata.cluster_id), -1
        bounds = [await list_offsets(self.cluster, metadata, [NAMES], each) for each in (Bound.START, Bound.END)]
        start, end = (bound[NAMES] for bound in bounds)
        if self._read_to > end and self.topic_id is not None:
            raise ProducersLost(f"{PRODUCERS} has lost its end: it was read to {self._read_to}, and ends at {end}")
        self._read_to = start if self._read_to > end else max(self._read_to, start)
        while self._read_to < end:
            await self._read_some(metadata, end)

    def _require_same(self, topic: Topic | None) -> None:
        if topic is not None:
            check(topic.error, f"look who wrote a batch: grant {self.api_key} Describe and Read on {PRODUCERS}")
        if self.topic_id is not None and (topic is None or topic.id != self.topic_id):
            raise ProducersLost(f"{PRODUCERS} was deleted{' and made anew' if topic else ''}")

    async def _read_some(self, metadata: Metadata, end: int) -> None:
        try:
            fetched = await fetch_partition(self.cluster, metadata, NAMES, self._read_to, "positions", _LIMITS)
        except BrokerRefused as error:
            text = f"look who wrote a batch: grant {self.api_key} Describe and Read on {PRODUCERS}: {error.code}"
            raise BrokerRefused(text, error.code) from error
        following = end  # compaction has taken the rest
        for each in fetched.batches():
            if not each.header.attributes & CONTROL:
                batch.verify(each)
                self.producers.take(unpack(each, self._read_to))
            following = each.header.last_offset + 1
        self._read_to = following

    async def _lost(self, headers: Iterable[Header]) -> dict[int, str]:
        """The lanes whose names are missing though one of these batches has their producer id.

        Those of links that keep to themselves are added to the names, as far as these batches go.
        """
        unknown = self.producers.unknown(headers)
        names = await transactional_ids(self.cluster, unknown)
        names |= {key: self.producers.lanes[key].transactional_id for key in unknown & self.producers.lanes.keys()}
        lanes = {key: link for key, name in names.items() if (link := link_of(name))}
        alone = {link for link in set(lanes.values()) if FAILBACK in link or await self._keeps_to_itself(link)}
        for key, link in lanes.items():
            epoch = max(header.producer_epoch for header in headers if header.producer_id == key)
            if link in alone:
                self.producers.add(RegisteredProducer(key, names[key], link, epoch, ((0, False),)))
        return {key: f"producer id {key} of {names[key]}" for key, link in lanes.items() if link not in alone}

    async def _keeps_to_itself(self, link: str) -> bool:
        """True of a link that shares no copy in this cluster: its lanes may leave no names, and its copies are copied.

        It has a claim or, if it has given all copies up, its positions.
        """
        registry = Registry(self.cluster, link, api_key=self.api_key)
        await registry.refresh()
        own = any(claim.link == link for claim in registry.ledger.claims.values())
        positions = (await self.cluster.metadata([f"{link}.positions"])).topics.values()
        return link not in registry.ledger.sharing and (own or any(topic.leaders for topic in positions))
