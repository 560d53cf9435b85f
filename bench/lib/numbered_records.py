"""Records that carry their partition and a number, written with and without transactions, and read with their
offsets."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Mapping

from confluent_kafka import Message, Producer

from appliance.clock import deadline
from appliance.errors import ProcessFailed
from bench.lib.clients import ERRORS_ONLY, Refused, committed_records, kafka_errors_as
from testbed.cluster import Cluster

Read = dict[int, dict[int, int]]
"""The number of each committed record, by partition and offset."""

_A_TURN = 100
"""Records for each partition in one transaction, while the history is written."""

_A_LIVE_TURN = 10
_LIVE_SECONDS = 0.1
_ABORTED_OF = 5
_SEED = 20
_CALL_SECONDS = 60.0
_DEADLINE = 120.0


class NumberedRecords:
    """A writer to random partitions: half of the records are in transactions, of which every fifth is aborted.

    Both halves go into the same partitions at the same time, so that records of an open transaction lie between others.
    """

    def __init__(self, cluster: Cluster, topic: str, partitions: int) -> None:
        client = {**cluster.client_configuration(), **ERRORS_ONLY, "compression.type": "lz4", "linger.ms": 5}
        self._plain = Producer(client)
        self._transactional = Producer({**client, "transactional.id": "bench"})
        self._topic = topic
        self._partitions = partitions
        self._random = random.Random(_SEED)
        self._numbers = itertools.count()
        self._transactions = itertools.count(1)
        self._refused = Refused()

    async def history(self, records: int) -> None:
        """Write that many records at once, and more until the last transaction is complete."""
        await asyncio.to_thread(self._transactional.init_transactions, _CALL_SECONDS)
        for _ in range(-(-records // (_A_TURN * self._partitions))):
            await self._turn(_A_TURN * self._partitions)

    @contextlib.asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Continue to write while the block runs: a hundred records a second for each partition."""
        enough = asyncio.Event()
        flow = asyncio.create_task(self._flow(enough), name="traffic")
        try:
            yield
        finally:
            enough.set()
            await flow

    async def _flow(self, enough: asyncio.Event) -> None:
        while not enough.is_set():
            await self._turn(_A_LIVE_TURN * self._partitions)
            await asyncio.sleep(_LIVE_SECONDS)

    async def _turn(self, records: int) -> None:
        with kafka_errors_as(f"topic {self._topic} could not be written"):
            await asyncio.to_thread(self._write, records)

    def _write(self, records: int) -> None:
        """Write that many records, and end the transaction of those that are in one."""
        self._transactional.begin_transaction()
        for number in itertools.islice(self._numbers, records):
            partition = self._random.randrange(self._partitions)
            producer = self._random.choice((self._plain, self._transactional))
            producer.produce(self._topic, encoded(partition, number), partition=partition, on_delivery=self._refused)
        self._plain.flush(_CALL_SECONDS)
        aborted = next(self._transactions) % _ABORTED_OF == 0
        self._transactional.flush(_CALL_SECONDS)
        (self._transactional.abort_transaction if aborted else self._transactional.commit_transaction)(_CALL_SECONDS)
        self._refused.check()


def encoded(partition: int, number: int) -> bytes:
    """The value of a record."""
    return b"%d:%d" % (partition, number)


async def read_all(cluster: Cluster, topic: str, partitions: int) -> Read:
    """The committed records of the topic, from its first offset to its current end."""
    read: Read = {partition: {} for partition in range(partitions)}
    async with deadline(_DEADLINE, f"topic {topic} could not be read to its end", ProcessFailed):
        async for records in committed_records(cluster, topic, partitions):
            for record in records:
                partition, number = _decoded(record)
                read[partition][record.offset() or 0] = number
    return read


async def read_until(cluster: Cluster, topic: str, last: Mapping[int, int]) -> None:
    """Read until each partition has shown the record with its number in ``last``."""
    missing = set(last.items())
    async with (
        deadline(_DEADLINE, f"topic {topic} did not hold the last records of its partitions", ProcessFailed),
        contextlib.aclosing(committed_records(cluster, topic, len(last), endless=True)) as reading,
    ):
        async for records in reading:
            missing.difference_update(map(_decoded, records))
            if not missing:
                return


def _decoded(record: Message) -> tuple[int, int]:
    """A record's partition and number."""
    partition, number = map(int, (record.value() or b"").split(b":"))
    if record.partition() != partition:
        raise ProcessFailed(f"partition {record.partition()} has a record that was written to partition {partition}")
    return partition, number
