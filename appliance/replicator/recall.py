"""Reading one partition of the positions topic: what is committed there, to its very end."""

import asyncio

from appliance.errors import PartitionStopped
from appliance.kafka import batch
from appliance.kafka.answer import check
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.committed import committed
from appliance.kafka.fetch import FetchLimits, Wanted, fetch
from appliance.kafka.metadata import Metadata
from appliance.kafka.offsets import Bound, Partition, list_offsets
from appliance.kafka.records import Record, unpack
from appliance.replicator.memory import Memory, newest

_FETCH_BYTES = 4 * 1024 * 1024
_LIMITS = FetchLimits(_FETCH_BYTES, wait=0.1)
_PATIENCE = 10.0


async def read_memory(cluster: KafkaCluster, topic: str, lane: int) -> Memory:
    """What the destination remembers of a lane, as far as it is committed.

    The caller has fenced the lane's predecessor (invariant C), so nothing is open any more in this partition and all
    of it up to its end is decided. A last stable offset that stays below the end is a hanging transaction
    (KAFKA-14402): positions past it exist that cannot be seen, and to go on from the older ones would copy twice.

    Raises:
        PartitionStopped: that is so.
        BrokerBusy, BrokerRefused, Unreachable, PeerError: as everywhere.
    """
    partition = (topic, lane)
    metadata = await cluster.metadata([topic])
    end = (await list_offsets(cluster, metadata, [partition], Bound.END))[partition]
    await _all_decided(cluster, partition, end)
    memory = Memory()
    await _read_on(cluster, metadata, partition, memory, end)
    return memory


async def peek_memory(cluster: KafkaCluster, topic: str, lane: int, memory: Memory) -> None:
    """Add to ``memory`` what has been committed since it was read, without fencing anybody.

    It may have changed again by the time it is looked at.

    Raises:
        BrokerBusy, BrokerRefused, Unreachable, PeerError: as everywhere.
    """
    partition = (topic, lane)
    metadata = await cluster.metadata([topic])
    end = (await list_offsets(cluster, metadata, [partition], Bound.STABLE_END))[partition]
    await _read_on(cluster, metadata, partition, memory, end)


async def next_generation(cluster: KafkaCluster, topic: str, lanes: int) -> int:
    """Which of the link's runs the next one is: after all that have left their names in a lane; the first is 1.

    Raises:
        BrokerBusy, BrokerRefused, Unreachable, PeerError: as everywhere.
    """
    memories = [Memory() for _ in range(lanes)]
    for lane, memory in enumerate(memories):
        await peek_memory(cluster, topic, lane, memory)
    return 1 + max((memory.owner.generation for memory in memories if memory.owner is not None), default=0)


async def _read_on(cluster: KafkaCluster, metadata: Metadata, partition: Partition, memory: Memory, end: int) -> None:
    topic, lane = partition
    if memory.read_to < 0:
        memory.read_to = (await list_offsets(cluster, metadata, [partition], Bound.START))[partition]
    while memory.read_to < end:
        connection = await cluster.broker(metadata.leader(topic, lane), "positions")
        wanted = Wanted(partition, metadata.topics[topic].id, memory.read_to, _FETCH_BYTES)
        (answer,) = await fetch(connection, [wanted], _LIMITS)
        check(answer.error, f"fetch {topic}-{lane}")
        batches = list(batch.split(answer.records))
        records: list[Record] = []
        for data in committed(batches, answer.aborted):
            batch.verify(data)
            records += unpack(data, memory.read_to)
        for remembered in newest(records):
            memory.add(remembered)
        if batches:
            memory.read_to = batches[-1].header.last_offset + 1


async def _all_decided(cluster: KafkaCluster, partition: Partition, end: int) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            while True:
                metadata = await cluster.metadata([partition[0]])
                stable = (await list_offsets(cluster, metadata, [partition], Bound.STABLE_END))[partition]
                if stable >= end:
                    return
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        raise PartitionStopped(
            f"{partition[0]}-{partition[1]} of the destination has a hanging transaction (KAFKA-14402) below offset "
            f"{end}: find it with `kafka-transactions.sh find-hanging` and end it with `kafka-transactions.sh abort`"
        ) from error
