"""The crash points of a transaction, put around the calls that a lane makes."""

import asyncio
from collections.abc import Collection, Iterable

from kio.schema.produce.v9 import ProduceResponse

from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.produce import Copy
from appliance.kafka.client.transactions import Producer
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client import writer
from appliance.link.model.naming import REGISTRY
from tests.faults.injection.switches import CrashPoint, armed, reached

_add_partitions = writer.add_partitions
_produce = writer.produce
_end_transaction = writer.end_transaction

_copying: set[Producer] = set()
"""Whose open transaction copies something."""


def patch() -> None:
    """Put them there."""
    for function in (add_partitions, produce, end_transaction):
        setattr(writer, function.__name__, function)


def is_positions(partition: Partition) -> bool:
    """True for partitions of the positions topic, of the maps and of the registry, which hold no copies."""
    return partition[0].endswith((".positions", ".offsets")) or partition[0] == REGISTRY


def has_copies(partitions: Iterable[Partition]) -> bool:
    """True if a transaction that writes there copies anything."""
    return not all(is_positions(partition) for partition in partitions)


async def add_partitions(coordinator: BrokerConnection, producer: Producer, partitions: Collection[Partition]) -> None:
    """After fetch, and after AddPartitions."""
    if not has_copies(partitions):
        return await _add_partitions(coordinator, producer, partitions)
    reached(CrashPoint.FETCHED)
    await _add_partitions(coordinator, producer, partitions)
    _copying.add(producer)
    reached(CrashPoint.PARTITIONS_ADDED)
    return None


async def produce(
    leader: BrokerConnection, producer: Producer, copies: Collection[Copy]
) -> asyncio.Future[ProduceResponse]:
    """After a Produce that the leader has answered, when that of the positions is still to come."""
    answer = await _produce(leader, producer, copies)
    if armed(CrashPoint.PARTLY_PRODUCED) and has_copies(copy.partition for copy in copies):
        await asyncio.wait([answer])
        reached(CrashPoint.PARTLY_PRODUCED)
    return answer


async def end_transaction(coordinator: BrokerConnection, producer: Producer, timeout: float) -> None:
    """After positions; after EndTxn is sent; after it is answered."""
    if producer not in _copying:
        return await _end_transaction(coordinator, producer, timeout)
    _copying.discard(producer)
    reached(CrashPoint.POSITIONS_PRODUCED)
    asking = asyncio.ensure_future(_end_transaction(coordinator, producer, timeout))
    # Its first step sends, without waiting for anything.
    await asyncio.sleep(0)
    reached(CrashPoint.COMMIT_SENT)
    await asking
    reached(CrashPoint.COMMITTED)
    return None
