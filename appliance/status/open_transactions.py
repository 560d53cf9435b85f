"""Find partitions that an open transaction holds up, by comparing two collections."""

import asyncio
import contextlib
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from appliance.errors import ApplianceError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.open_transactions import OpenTransaction, open_transactions
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.status.model.facts import Log

_NAMING_SECONDS = 3.0


@dataclass(slots=True)
class OpenTransactionWatch:
    """One cluster's last stable offsets, kept from one collection to the next.

    Transactional producers have a transaction open most of the time, but a different one each time. So only a last
    stable offset that has not moved since the last collection is worth a request.
    """

    cluster: KafkaCluster
    _waiting: dict[Partition, OpenTransaction] = field(default_factory=dict)
    _named: dict[Partition, OpenTransaction] = field(default_factory=dict)

    async def collect(
        self, metadata: Metadata, logs: Mapping[Partition, Log], now: int
    ) -> dict[Partition, OpenTransaction]:
        """The transactions that held these logs the last time, and still do; ``now`` in milliseconds.

        If the cluster does not return a transaction's beginning, the time of its first sighting counts.
        """
        before = self._waiting
        stands = {key for key, each in before.items() if key in logs and each.first_offset == logs[key].stable_end}
        self._waiting = {
            key: before[key] if key in stands else OpenTransaction(log.stable_end, began=now)
            for key, log in logs.items()
            if log.end > log.stable_end
        }
        still = {key: waiting for key, waiting in self._waiting.items() if before.get(key) is waiting}
        self._named = {key: name for key, name in self._named.items() if key in still}
        await self._name(metadata, still.keys() - self._named.keys())
        return {key: _described(waiting, self._named.get(key)) for key, waiting in still.items()}

    async def _name(self, metadata: Metadata, nameless: Set[Partition]) -> None:
        """Ask for their producers; a request that fails is made again the next time."""
        if not nameless:
            return
        with contextlib.suppress(ApplianceError, TimeoutError):
            async with asyncio.timeout(_NAMING_SECONDS):
                names = await open_transactions(self.cluster, metadata, nameless)
            self._named |= {key: names.get(key, OpenTransaction(-1)) for key in nameless}


def _described(waiting: OpenTransaction, name: OpenTransaction | None) -> OpenTransaction:
    if name is None:
        return waiting
    began = name.began if name.began >= 0 else waiting.began
    return replace(waiting, producer_id=name.producer_id, transactional_id=name.transactional_id, began=began)
