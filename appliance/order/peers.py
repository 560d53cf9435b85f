"""The committed facts of another cluster's lane, followed; each state of them is a whole prefix of its records."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from appliance.errors import ApplianceError
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.checkpoint_records import newest
from appliance.link.model.order import OrderRecord
from appliance.order.followed_log import FollowedLog
from appliance.order.model.elections import Facts


@dataclass(eq=False)
class Peer:
    """The lane of an order in the cluster ``id``; ``wake`` is set when it has committed something, or fails."""

    id: str
    cluster: Cluster
    positions: Partition
    wake: asyncio.Event
    checkpoint: LaneCheckpoint = field(init=False, default_factory=LaneCheckpoint)
    log: FollowedLog = field(init=False)

    def __post_init__(self) -> None:
        purpose = f"order-{self.positions.number}"
        self.log = FollowedLog(self.cluster, self.positions, purpose, self._take, self._forget, self.wake.set)

    @property
    def failure(self) -> ApplianceError | None:
        """The reason that it cannot be read now."""
        return self.log.failure

    def record(self, partition: Partition) -> OrderRecord:
        """The cluster's part in the order of a partition of T."""
        return self.checkpoint.orders.get(partition, OrderRecord())

    def facts(self, partition: Partition) -> Facts:
        """The cluster's promise, and its part in the order of a partition of T."""
        return Facts(self.checkpoint.promise, self.record(partition))

    def _take(self, records: Sequence[Record]) -> None:
        for _, remembered in newest(records):
            self.checkpoint.add(remembered)
        self.wake.set()

    def _forget(self) -> None:
        self.checkpoint = LaneCheckpoint()
