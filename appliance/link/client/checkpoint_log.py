"""The records of a link in the positions topic: each lane's partition is a log of its own."""

import asyncio
from collections.abc import Collection, Sequence
from uuid import UUID

from appliance.errors import ApplianceError, BrokerBusy, Fenced, PartitionStopped, Unreachable
from appliance.kafka.client.compacted_log import CompactedLog
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.checkpoint import LaneCheckpoint, Mark
from appliance.link.model.checkpoint_records import newest
from appliance.link.model.copy_states import CopyState, States, effective
from appliance.link.model.naming import Naming

_SEEN_TIMEOUT = 30.0
"""Timeout without progress while committed records are read, in seconds."""


async def read_checkpoint(
    cluster: Cluster, topic: str, mark: Mark, checkpoint: LaneCheckpoint, timeout: float = _SEEN_TIMEOUT
) -> None:
    """Add the destination's records of a lane to ``checkpoint``, at least up to its ``mark``.

    The caller has fenced the lane's predecessor (invariant C) and then committed the mark. So everything committed
    before lies before the mark, and a broker that shows the mark shows all of it: a former leader that does not know
    yet that it was replaced cannot return old positions. A last stable offset that stays below the mark shows a hanging
    transaction (KAFKA-14402), and positions may lie behind it.

    Raises:
        Fenced: another start has left its mark since.
        PartitionStopped: a transaction hangs.
        Unreachable: the mark stays invisible for another reason.
    """
    partition = Partition(topic, mark.lane)
    log, loop = _log(cluster, partition, checkpoint), asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout) as deadline:
            while checkpoint.mark != mark:
                before = checkpoint.read_to
                await log.read_some(await cluster.metadata([topic]))
                if checkpoint.mark is not None and checkpoint.mark.is_newer_than(mark):
                    raise Fenced(f"lane {mark.lane} by another start")
                if checkpoint.read_to > before:
                    deadline.reschedule(loop.time() + timeout)
    except TimeoutError as error:
        raise await _not_shown(cluster, partition) from error


async def peek_checkpoint(cluster: Cluster, topic: str, lane: int, checkpoint: LaneCheckpoint) -> None:
    """Add the records committed since the last read to ``checkpoint``, without fencing anybody.

    The result may be out of date at once.
    """
    await _log(cluster, Partition(topic, lane), checkpoint).read(await cluster.metadata([topic]))


async def peek_checkpoints(cluster: Cluster, topic: str, lanes: int) -> list[LaneCheckpoint]:
    """Read the checkpoint of every lane, without fencing anybody."""
    checkpoints = [LaneCheckpoint() for _ in range(lanes)]
    for lane, checkpoint in enumerate(checkpoints):
        await peek_checkpoint(cluster, topic, lane, checkpoint)
    return checkpoints


def _log(cluster: Cluster, partition: Partition, checkpoint: LaneCheckpoint) -> CompactedLog:
    def take(records: Sequence[Record]) -> None:
        for _, remembered in newest(records):
            checkpoint.add(remembered)

    return CompactedLog(cluster, partition, take, checkpoint.forget, checkpoint)


async def _not_shown(cluster: Cluster, partition: Partition) -> PartitionStopped | Unreachable:
    """The reason that a committed mark cannot be read."""
    metadata = await cluster.metadata([partition[0]])
    stable = (await list_offsets(cluster, metadata, [partition], Bound.STABLE_END))[partition]
    end = (await list_offsets(cluster, metadata, [partition], Bound.END))[partition]
    if stable < end:
        return PartitionStopped(
            f"{partition} of the destination has a hanging transaction (KAFKA-14402) below offset "
            f"{end}: find it with `kafka-transactions.sh find-hanging` and end it with `kafka-transactions.sh abort`"
        )
    return Unreachable(f"the leader of {partition} of the destination does not show what it took")


class NewestStates:
    """Reads the states, or whole checkpoints, repeatedly, each time only the newly committed records."""

    def __init__(self, destination: Cluster, naming: Naming) -> None:
        self._cluster = destination
        self._name = naming.positions_topic
        self._checkpoints: list[LaneCheckpoint] = []
        self._id: UUID | None = None

    async def read(self) -> States:
        """The current states; none before the link is made.

        Raises:
            BrokerBusy: the positions topic existed, and is no longer shown.
        """
        return {topic: state for first in await self.checkpoints(1) for topic, state in first.states.items()}

    async def checkpoints(self, lanes: int | None = None) -> Sequence[LaneCheckpoint]:
        """The current checkpoints of the first ``lanes``, or of all, without fencing anybody; raises as ``read``."""
        topic = (await self._cluster.metadata([self._name])).topics.get(self._name)
        if topic is None or not topic.leaders:
            if self._id is not None:
                raise BrokerBusy(f"{self._name} is not shown any more", "UNKNOWN_TOPIC_OR_PARTITION")
            return []
        if topic.id != self._id:
            self._id, self._checkpoints = topic.id, []
        count = len(topic.leaders) if lanes is None else lanes
        self._checkpoints += [LaneCheckpoint() for _ in range(count - len(self._checkpoints))]
        for lane, checkpoint in enumerate(self._checkpoints[:count]):
            await peek_checkpoint(self._cluster, self._name, lane, checkpoint)
        return self._checkpoints[:count]

    async def try_read(self, patience: float) -> States | ApplianceError:
        """The same, or the reason that no broker returns them within this many seconds: the leader may just be elected.

        Raises:
            BrokerRefused, PeerError: retrying is useless.
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

        No epoch fences a request that makes, grows or configures a topic, so it must be sent right after this. A
        process that was suspended since its last look may have missed a promotion.
        """
        states = await self.read()
        return {topic for topic in topics if effective(states, topic) is CopyState.ACTIVE}
