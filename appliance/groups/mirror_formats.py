"""MirrorMaker 2's topics at the destination, for its Java client: checkpoints of groups, and heartbeats.

A checkpoint is written when its offset is committed in the copy, and again when it changes, also backwards with its
group. It cannot be withdrawn: tombstones break the client.

Heartbeats show that the path from the source to the destination works, and its latency. Nothing is written at the
source. A heartbeat asks a source broker, on the path of the copies, and is then written at the destination: into
``<source>.heartbeats``, where MirrorMaker 2 would have copied it. The next one records the duration. Before it, one is
written into ``heartbeats``, from which other links may copy it further.
"""

import asyncio
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kio.schema.metadata.v11 import MetadataResponse

from appliance.clock import now_ms
from appliance.errors import ApplianceError, raise_first
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.produce import append
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition, request
from appliance.kafka.records.records import Record
from appliance.link.client.retry import retry_while_busy
from appliance.link.handle import Link
from appliance.link.model.mirror_records import Heartbeat, MirrorCheckpoint, encode_checkpoint, encode_heartbeat
from appliance.link.model.naming import HEARTBEATS
from appliance.link.model.topic_configs import mirror_topic

HEARTBEAT_SECONDS = 1.0
"""Interval of heartbeats, in seconds, as by default in MirrorMaker 2."""

_PAUSE_MAX = 0.5
_PURPOSE = "heartbeats"
_ANSWER_SECONDS = 10.0
_NO_TOPICS: Sequence[str] = ()


@dataclass(slots=True)
class MirrorTopics:
    """Topics of one partition each at the destination of a link, by their names."""

    link: Link
    names: Sequence[str]
    _metadata: Metadata | None = None

    async def append(self, topic: str, records: Sequence[Record]) -> None:
        """Append the records to one of the topics; after a failure they may be there, and must be appended again."""
        await retry_while_busy(lambda: self._append(topic, records), longest_pause=_PAUSE_MAX)

    async def _append(self, topic: str, records: Sequence[Record]) -> None:
        """Append once; the leader of a new topic may not know it yet."""
        try:
            self._metadata = self._metadata or await self._made()
            await append(self.link.destination, self._metadata, Partition(topic, 0), records)
        except ApplianceError:
            self._metadata = None
            raise

    async def _made(self) -> Metadata:
        cluster, factor = self.link.destination, self.link.replication_factor
        metadata = await cluster.metadata(self.names)
        if missing := [mirror_topic(name, factor) for name in self.names if name not in metadata.topics]:
            raise_first((await ConfigFilter(cluster).make(missing)).failures.values())
            metadata = await cluster.metadata(self.names)
        for name, topic in metadata.topics.items():
            check(topic.error, f"write {name}: grant DESTINATION_API_KEY Describe and Write on it")
        return metadata


@dataclass(slots=True)
class MirrorCheckpoints:
    """The checkpoints of one link written by this process."""

    link: Link
    _written: dict[tuple[str, Partition], MirrorCheckpoint] = field(default_factory=dict)
    _topics: MirrorTopics = field(init=False)

    def __post_init__(self) -> None:
        self._topics = MirrorTopics(self.link, (self.link.naming.checkpoints_topic,))

    async def write(self, checkpoints: Iterable[MirrorCheckpoint]) -> int:
        """Write those that have changed; their number. After a failure, a repeated call writes the rest."""
        changed = [each for each in checkpoints if self._written.get((each.group, each.copy)) != each]
        now = now_ms()
        if changed:
            records = [encode_checkpoint(each, now) for each in changed]
            await self._topics.append(self.link.naming.checkpoints_topic, records)
        self._written |= {(each.group, each.copy): each for each in changed}
        return len(changed)


@dataclass(slots=True)
class Heartbeats:
    """The heartbeats of one link."""

    link: Link
    way: int | None = None
    """Duration of the newest heartbeat, in milliseconds."""
    _topics: MirrorTopics = field(init=False)
    _node: int = NOBODY

    def __post_init__(self) -> None:
        self._topics = MirrorTopics(self.link, (HEARTBEATS, self.link.naming.heartbeats_topic))

    async def beat(self) -> None:
        """Write a heartbeat of the destination, and one from the source."""
        before, self.way = self.way, None
        try:
            await self._write(HEARTBEATS, now_ms(), None)
            if self._node == NOBODY:
                self._node = random.choice(sorted((await self.link.source.metadata(_NO_TOPICS)).brokers) or [NOBODY])
            self.way = await self._measure(before)
        except ApplianceError:
            self._node = NOBODY  # it may be gone for good, and another one may answer
            raise

    async def _measure(self, before: int | None) -> int:
        connection = await self.link.source.broker(self._node, _PURPOSE)
        loop, at = asyncio.get_running_loop(), now_ms()
        began = loop.time()
        await connection.call(request(_NO_TOPICS), MetadataResponse, _ANSWER_SECONDS)
        await self._write(self.link.naming.heartbeats_topic, at, before)
        return round((loop.time() - began) * 1000)

    async def _write(self, topic: str, at: int, way: int | None) -> None:
        heartbeat = Heartbeat(self.link.naming.source, self.link.naming.target, at, way)
        await self._topics.append(topic, [encode_heartbeat(heartbeat)])
