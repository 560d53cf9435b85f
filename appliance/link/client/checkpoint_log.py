"""Reading one partition of the positions topic, or of another compacted log of ours: what is committed there."""

import asyncio
from collections.abc import Collection
from uuid import UUID

from appliance.errors import ApplianceError, BrokerBusy, Fenced, PartitionStopped, Unreachable
from appliance.kafka.client.fetch import FetchLimits
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.partition_reader import committed_records, fetch_partition
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records.records import Record
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.checkpoint import LaneCheckpoint, Mark
from appliance.link.model.checkpoint_records import newest
from appliance.link.model.copy_states import CopyState, States, effective
from appliance.link.model.naming import Naming

_LIMITS = FetchLimits(4 * 1024 * 1024, wait=0.1)
_SEEN_TIMEOUT = 30.0
"""Seconds within which something more is read, up to what was committed."""


async def read_checkpoint(
    cluster: Cluster, topic: str, mark: Mark, checkpoint: LaneCheckpoint, timeout: float = _SEEN_TIMEOUT
) -> None:
    """Add to ``checkpoint`` what the destination remembers of a lane, at least up to its ``mark``.

    The caller has fenced the lane's predecessor (invariant C) and has committed the mark after that. So whatever was
    committed before lies before the mark, and whoever shows the mark shows all of it: a former leader that has not
    heard yet that it was deposed cannot hand out old positions. A last stable offset that stays below the mark is a
    hanging transaction (KAFKA-14402), which positions may lie behind.

    Raises:
        Fenced: another start has left its mark since.
        PartitionStopped: that is so.
        Unreachable: the mark is not shown for another reason.
    """
    partition = (topic, mark.lane)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout) as deadline:
            while checkpoint.mark != mark:
                before = checkpoint.read_to
                await _read_some(cluster, await cluster.metadata([topic]), partition, checkpoint)
                if checkpoint.mark is not None and checkpoint.mark.is_newer_than(mark):
                    raise Fenced(f"lane {mark.lane} by another start")
                if checkpoint.read_to > before:
                    deadline.reschedule(loop.time() + timeout)
    except TimeoutError as error:
        raise await _not_shown(cluster, partition) from error


async def peek_checkpoint(cluster: Cluster, topic: str, lane: int, checkpoint: LaneCheckpoint) -> None:
    """Add to ``checkpoint`` what has been committed since it was read, without fencing anybody.

    It may have changed again by the time it is looked at.
    """
    partition = (topic, lane)
    metadata = await cluster.metadata([topic])
    end = (await list_offsets(cluster, metadata, [partition], Bound.STABLE_END))[partition]
    if checkpoint.read_to > end:
        checkpoint.read_to = -1  # the log has lost its tail: what is there now may be other records
    while checkpoint.read_to < end:
        await _read_some(cluster, metadata, partition, checkpoint)


async def peek_checkpoints(cluster: Cluster, topic: str, lanes: int) -> list[LaneCheckpoint]:
    """Read the checkpoint of every lane, without fencing anybody."""
    checkpoints = [LaneCheckpoint() for _ in range(lanes)]
    for lane, checkpoint in enumerate(checkpoints):
        await peek_checkpoint(cluster, topic, lane, checkpoint)
    return checkpoints


async def read_records(
    cluster: Cluster, metadata: Metadata, partition: Partition, offset: int
) -> tuple[list[Record], int]:
    """One Fetch of the committed records from ``offset`` on, -1 the log's start, and the offset to go on from."""
    if offset < 0:
        offset = (await list_offsets(cluster, metadata, [partition], Bound.START))[partition]
    return committed_records(await fetch_partition(cluster, metadata, partition, offset, "positions", _LIMITS), offset)


async def _read_some(cluster: Cluster, metadata: Metadata, partition: Partition, checkpoint: LaneCheckpoint) -> None:
    records, following = await read_records(cluster, metadata, partition, checkpoint.read_to)
    for remembered in newest(records):
        checkpoint.add(remembered)
    checkpoint.read_to = following  # not before: a record that is refused is met again


async def _not_shown(cluster: Cluster, partition: Partition) -> PartitionStopped | Unreachable:
    """The reason that a mark cannot be read which was committed."""
    metadata = await cluster.metadata([partition[0]])
    stable = (await list_offsets(cluster, metadata, [partition], Bound.STABLE_END))[partition]
    end = (await list_offsets(cluster, metadata, [partition], Bound.END))[partition]
    if stable < end:
        return PartitionStopped(
            f"{partition[0]}-{partition[1]} of the destination has a hanging transaction (KAFKA-14402) below offset "
            f"{end}: find it with `kafka-transactions.sh find-hanging` and end it with `kafka-transactions.sh abort`"
        )
    return Unreachable(f"the leader of {partition[0]}-{partition[1]} of the destination does not show what it took")


class NewestStates:
    """Reads the states again and again, each time only what has been committed since."""

    def __init__(self, destination: Cluster, naming: Naming) -> None:
        self._cluster = destination
        self._name = naming.positions_topic
        self._checkpoint = LaneCheckpoint()
        self._id: UUID | None = None

    async def read(self) -> States:
        """The states now; none of a link that has not been made yet.

        Raises:
            BrokerBusy: the positions topic was there, and is not shown any more.
            Unreachable, BrokerRefused, PeerError: as everywhere.
        """
        topic = (await self._cluster.metadata([self._name])).topics.get(self._name)
        if topic is None or not topic.leaders:
            if self._id is not None:
                raise BrokerBusy(f"{self._name} is not shown any more", "UNKNOWN_TOPIC_OR_PARTITION")
            return {}
        if topic.id != self._id:
            self._id, self._checkpoint = topic.id, LaneCheckpoint()
        await peek_checkpoint(self._cluster, self._name, 0, self._checkpoint)
        return dict(self._checkpoint.states)

    async def try_read(self, patience: float) -> States | ApplianceError:
        """The same, or the reason that nobody tells them within so many seconds: the leader may just be elected.

        Raises:
            BrokerRefused, PeerError: no use trying again.
        """
        try:
            async with asyncio.timeout(patience):
                return await retry_while_busy(self.read)
        except TimeoutError:
            return Unreachable(f"{self._name}-0 of the destination, which holds the states of the link, cannot be read")
        except ApplianceError as error:
            if not error.retriable:
                raise
            return error

    async def still_active(self, topics: Collection[str]) -> set[str]:
        """The topics whose copies the link may change now.

        No epoch fences a request that makes, grows or configures a topic: it is sent right after this. A process that
        stood still since its last look may have slept through a promotion.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused, PeerError: as ``read``.
        """
        states = await self.read()
        return {topic for topic in topics if effective(states, topic) is CopyState.ACTIVE}
