"""Heartbeats of MirrorMaker 2's form: signs that the way from the source to the destination is open, and its length.

Nothing is written at the source. A heartbeat asks a source broker, on the way that the copies come, and is then written
at the destination: into ``<source>.heartbeats``, where MirrorMaker 2 would have copied it to. The next one tells how
long that took. Before it, one is written into ``heartbeats``, from which other links may bring it further.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from kio.schema.metadata.v11 import MetadataResponse

from appliance.errors import ApplianceError
from appliance.failover.mirror_topics import MirrorTopics
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.metadata import NOBODY, request
from appliance.link.model.mirror_records import Heartbeat, encode_heartbeat
from appliance.link.model.naming import HEARTBEATS, Naming

HEARTBEAT_SECONDS = 1.0
"""Time between two heartbeats, as by default in MirrorMaker 2."""

_PURPOSE = "heartbeats"
_ANSWER_SECONDS = 10.0
_NO_TOPICS: Sequence[str] = ()


@dataclass(slots=True)
class Heartbeats:
    """The heartbeats of one link."""

    source: Cluster
    destination: Cluster
    naming: Naming
    replication_factor: int = -1
    way: int | None = None
    """Milliseconds that the newest heartbeat took."""
    _topics: MirrorTopics = field(init=False)
    _node: int = NOBODY

    def __post_init__(self) -> None:
        names = (HEARTBEATS, self.naming.heartbeats_topic)
        self._topics = MirrorTopics(self.destination, names, self.replication_factor)

    async def beat(self) -> None:
        """Write a heartbeat of the destination, and one that came from the source.

        Raises:
            ApplianceError: the way is not open, or the destination does not take it.
        """
        before, self.way = self.way, None
        try:
            await self._write(HEARTBEATS, _now(), None)
            if self._node == NOBODY:
                self._node = random.choice(sorted((await self.source.metadata(_NO_TOPICS)).brokers) or [NOBODY])
            self.way = await self._measure(before)
        except ApplianceError:
            self._node = NOBODY  # it may be gone for ever, and another one may answer
            raise

    async def _measure(self, before: int | None) -> int:
        connection = await self.source.broker(self._node, _PURPOSE)
        loop, at = asyncio.get_running_loop(), _now()
        began = loop.time()
        await connection.call(request(_NO_TOPICS), MetadataResponse, _ANSWER_SECONDS)
        await self._write(self.naming.heartbeats_topic, at, before)
        return round((loop.time() - began) * 1000)

    async def _write(self, topic: str, at: int, way: int | None) -> None:
        heartbeat = Heartbeat(self.naming.source, self.naming.target, at, way)
        await self._topics.append(topic, [encode_heartbeat(heartbeat)])


def _now() -> int:
    return time.time_ns() // 1_000_000
