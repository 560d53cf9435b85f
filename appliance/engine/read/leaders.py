"""The newest leader of a source partition, which alone knows what its log has lost (KIP-320).

A broker that lags behind the controller names former leaders, and a former leader may not know yet that it was
replaced: its log is not what the partition holds.

Not every difference is a loss. A replica that was rebuilt from a compacted log may have no batch of an epoch that was
read: then it names an older epoch that ends at or above the position (KIP-320; a consumer continues too).
"""

import uuid

from appliance.engine.read.buffer import Buffer
from appliance.errors import BrokerBusy, GapFound, PartitionStopped
from appliance.kafka.client.fetch import EpochEnd
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import NOWHERE, UNKNOWN_EPOCH, Metadata, Partition, is_another
from appliance.link.client.source_places import places

FENCED = "FENCED_LEADER_EPOCH"
OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"


class Leaders:
    """The highest leader epoch seen of each partition; it outlives the partition's buffers."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[uuid.UUID, Partition], int] = {}

    def note_epoch(self, buffer: Buffer, epoch: int) -> None:
        """Note a leader epoch, current or past.

        Without topic ids, a recreated topic restarts its epochs, and nothing else distinguishes it.
        """
        if buffer.replica.source_id == NOWHERE:
            return
        self._epochs[buffer.replica.source_id, buffer.key] = max(epoch, self._known(buffer))

    def newest(self, buffer: Buffer, metadata: Metadata) -> int:
        """The epoch of the leader in the metadata; it counts as seen."""
        epoch, newest = metadata.leader_epoch(*buffer.key), self._known(buffer)
        if UNKNOWN_EPOCH < epoch < newest:
            text = f"metadata of the source name the leader of {buffer} in epoch {epoch}, and epoch {newest} has begun"
            raise BrokerBusy(text, FENCED)
        self.note_epoch(buffer, epoch)
        return epoch

    def _known(self, buffer: Buffer) -> int:
        return self._epochs.get((buffer.replica.source_id, buffer.key), UNKNOWN_EPOCH)


def at_divergence(buffer: Buffer, end: EpochEnd) -> PartitionStopped | None:
    """The stop of a partition whose leader has less of the newest epoch read; None: it holds all copied records."""
    _require_as_new_as_the_batches(buffer, buffer.leader_epoch)
    return _truncated(buffer, end.offset) if end.offset < buffer.position else None


async def out_of_range(source: Cluster, leaders: Leaders, buffer: Buffer) -> PartitionStopped | None:
    """The stop of a partition whose position a broker lacks; None: its newest leader has it, continue reading."""
    key = buffer.key
    metadata = await source.metadata([key[0]])
    topic = metadata.topics.get(key[0])
    if topic is None or is_another(topic.id, buffer.replica.source_id):
        return None  # the search for the leader finds that out too
    _require_as_new_as_the_batches(buffer, leaders.newest(buffer, metadata))
    start = (await list_offsets(source, metadata, [key], Bound.START))[key]
    if buffer.position < start:
        place = (await places(source, metadata, {key: start}))[key]
        what = f"offsets {buffer.position} to {start - 1} were deleted at the source before they were copied"
        return GapFound(f"{buffer}: {what}", buffer.position, *place, "deleted at the source")
    end = (await list_offsets(source, metadata, [key], Bound.END))[key]
    return _truncated(buffer, end) if end < buffer.position else None


def _require_as_new_as_the_batches(buffer: Buffer, leader_epoch: int) -> None:
    """Refuse a leader older than the last batch read; a topic without an id may be a recreated one, with new epochs."""
    if UNKNOWN_EPOCH < leader_epoch < buffer.epoch and buffer.replica.source_id != NOWHERE:
        text = f"{buffer}: the leader of epoch {leader_epoch} is older than what was read, of epoch {buffer.epoch}"
        raise BrokerBusy(text, FENCED)


def _truncated(buffer: Buffer, offset: int) -> PartitionStopped:
    return PartitionStopped(
        f"{buffer}: the source's log was truncated: from offset {offset} on it does not hold what was copied up to "
        f"{buffer.position}"
    )
