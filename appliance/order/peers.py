"""The committed facts of another cluster's lane, followed; each state of them is a whole prefix of its records."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from appliance.clock import loop_seconds
from appliance.engine.problem_log import log_defect
from appliance.errors import ApplianceError, BrokerBusy
from appliance.kafka.client.compacted_log import CompactedLog
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.checkpoint_records import newest
from appliance.link.model.order import OrderRecord
from appliance.order.model.elections import Facts

_WAIT = 0.5
_METADATA_AGE = 5.0
_PAUSE = 0.5
"""Seconds that a Fetch waits for records, that metadata serve, and between two tries of a cluster that fails."""


@dataclass(eq=False)
class Peer:
    """The lane of an order in the cluster ``id``; ``wake`` is set when it has committed something.

    ``failure`` is the reason that it cannot be read now.
    """

    id: str
    cluster: Cluster
    positions: Partition
    wake: asyncio.Event
    checkpoint: LaneCheckpoint = field(init=False, default_factory=LaneCheckpoint)
    failure: ApplianceError | None = None
    unread: bool = True
    """Nothing was heard of it yet, not even that it cannot be read."""
    _pending: list[Record] = field(init=False, default_factory=list)
    _log: CompactedLog = field(init=False)

    def __post_init__(self) -> None:
        self._log = CompactedLog(self.cluster, self.positions, self._take, self._forget)

    def record(self, partition: Partition) -> OrderRecord:
        """The cluster's part in the order of a partition of T."""
        return self.checkpoint.orders.get(partition, OrderRecord())

    def facts(self, partition: Partition) -> Facts:
        """The cluster's promise, and its part in the order of a partition of T."""
        return Facts(self.checkpoint.promise, self.record(partition))

    async def follow(self) -> None:
        """Read its records until cancelled; what fails is tried again."""
        while True:
            try:
                await self._read_on()
            except ApplianceError as error:
                self.failure = error
            except Exception as error:
                self.failure = log_defect(error)
            self.unread = False
            self.wake.set()
            await asyncio.sleep(_PAUSE * random.uniform(0.5, 1) if self.failure else 0)

    async def _read_on(self) -> None:
        """Read with metadata that serve for some seconds."""
        metadata = await self.cluster.metadata([self.positions.topic])
        topic = metadata.topics.get(self.positions.topic)
        if topic is None or topic.id != self._log.topic_id:
            self._forget()
            self._log.topic_id = topic.id if topic else None
            self._log.progress.read_to = -1
        if topic is None or metadata.leader(*self.positions) < 0:
            raise BrokerBusy(f"{self.positions} of {self.id} is not there yet", "LEADER_NOT_AVAILABLE")
        until = loop_seconds() + _METADATA_AGE
        while loop_seconds() < until:
            if await self._log.follow(metadata, f"order-{self.positions.number}", _WAIT):
                self._publish()
            self.failure, self.unread = None, False

    def _take(self, records: Sequence[Record]) -> None:
        self._pending += records

    def _publish(self) -> None:
        """Take all that was read: it ends where no transaction is open, so it is a prefix of whole transactions."""
        records, self._pending = self._pending, []
        for _, remembered in newest(records):
            self.checkpoint.add(remembered)
        if records:
            self.wake.set()

    def _forget(self) -> None:
        self._pending.clear()
        self.checkpoint = LaneCheckpoint()
