"""Refuses leaders of source partitions that are older than one that is known (KIP-320).

A broker that lags behind the controller names leaders that lead no more, and one that led before may not know that yet:
what it says of its log is not what the partition holds.
"""

import uuid

from appliance.errors import BrokerBusy
from appliance.kafka.protocol.metadata import NOWHERE, UNKNOWN_EPOCH, Metadata, Partition
from appliance.replicator.read.buffer import Buffer


class Leaders:
    """The highest leader epoch that was seen of each partition; it outlives the partition's buffers."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[uuid.UUID, Partition], int] = {}

    def seen(self, buffer: Buffer, epoch: int) -> None:
        """There is a leader of this epoch, or was.

        Where topics have no ids, one that was made anew counts its epochs anew, and nothing else tells it apart.
        """
        if buffer.replica.source_id == NOWHERE:
            return
        self._epochs[self._key(buffer)] = max(epoch, self._known(buffer))

    def newest(self, buffer: Buffer, metadata: Metadata) -> int:
        """The epoch of the leader that metadata name; it counts as seen.

        Raises:
            BrokerBusy: a newer leader is known; ask again.
        """
        epoch, known = metadata.leader_epoch(*buffer.key), self._known(buffer)
        if UNKNOWN_EPOCH < epoch < known:
            text = f"metadata of the source name the leader of {buffer} in epoch {epoch}, and epoch {known} has begun"
            raise BrokerBusy(text, "FENCED_LEADER_EPOCH")
        self.seen(buffer, epoch)
        return epoch

    def _known(self, buffer: Buffer) -> int:
        return self._epochs.get(self._key(buffer), UNKNOWN_EPOCH)

    def _key(self, buffer: Buffer) -> tuple[uuid.UUID, Partition]:
        return buffer.replica.source_id, buffer.key
