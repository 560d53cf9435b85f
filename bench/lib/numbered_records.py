"""Records that carry their partition and a number, written with and without transactions, and read with their
offsets."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from appliance.errors import ProcessFailed
from testbed.cluster import Cluster

Read = dict[int, dict[int, int]]
"""The number of each committed record, by partition and offset."""

_A_TURN = 100
"""Records for each partition in one transaction, while the history is written."""

_A_LIVE_TURN = 10
_LIVE_SECONDS = 0.1
_ABORTED_OF = 5
_SEED = 20
_AT_ONCE = 10_000
_WAIT_SECONDS = 0.1
_CALL_SECONDS = 60.0
_DEADLINE = 120.0
_ERRORS_ONLY = 3


class NumberedRecords:
    """A writer to random partitions: half of the records are in transactions, of which every fifth is aborted.

    Both halves go into the same partitions at the same time, so that records of an open transaction lie between others.
    """

    def __init__(self, cluster: Cluster, topic: str, partitions: int) -> None:
        client = {**cluster.client_configuration(), "log_level": _ERRORS_ONLY, "compression.type": "lz4"}
        self._plain = Producer({**client, "linger.ms": 5})
        self._transactional = Producer({**client, "linger.ms": 5, "transactional.id": "bench"})
        self._topic = topic
        self._partitions = partitions
        self._random = random.Random(_SEED)
        self._numbers = itertools.count()
        self._transactions = itertools.count(1)
        self._refused: list[KafkaError] = []

    async def history(self, records: int) -> None:
        """Write that many records at once, and more until the last transaction is complete.

        Raises:
            ProcessFailed: the cluster refuses a request.
        """
        await asyncio.to_thread(self._transactional.init_transactions, _CALL_SECONDS)
        for _ in range(-(-records // (_A_TURN * self._partitions))):
            await self._turn(_A_TURN * self._partitions)

    @contextlib.asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Continue to write while the block runs: a hundred records a second for each partition.

        Raises:
            ProcessFailed: the cluster refused a request.
        """
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
        try:
            await asyncio.to_thread(self._write, records)
        except KafkaException as error:
            raise ProcessFailed(f"topic {self._topic} could not be written: {error}") from error

    def _write(self, records: int) -> None:
        """Write that many records, and end the transaction of those that are in one.

        Raises:
            KafkaException: the cluster refuses a request.
        """
        self._transactional.begin_transaction()
        for number in itertools.islice(self._numbers, records):
            partition = self._random.randrange(self._partitions)
            producer = self._random.choice((self._plain, self._transactional))
            producer.produce(self._topic, encoded(partition, number), partition=partition, on_delivery=self._delivered)
        self._plain.flush(_CALL_SECONDS)
        aborted = next(self._transactions) % _ABORTED_OF == 0
        self._transactional.flush(_CALL_SECONDS)
        (self._transactional.abort_transaction if aborted else self._transactional.commit_transaction)(_CALL_SECONDS)
        if self._refused:
            raise KafkaException(self._refused[0])

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self._refused += [error] if error else []


def encoded(partition: int, number: int) -> bytes:
    """The value of a record."""
    return b"%d:%d" % (partition, number)


async def read_all(cluster: Cluster, topic: str, partitions: int) -> Read:
    """The committed records of the topic, from its first offset to its current end.

    Raises:
        ProcessFailed: the cluster refused a request, or the end was not reached in time.
    """
    return await _read(cluster, topic, partitions, lambda _read, ended: len(ended) == partitions)


async def read_until(cluster: Cluster, topic: str, last: Mapping[int, int]) -> None:
    """Read until each partition has shown the record with its number in ``last``.

    Raises:
        ProcessFailed: the cluster refused a request, or the records were not seen in time.
    """
    missing = dict(last)

    def seen(read: Read, _ended: Iterable[int]) -> bool:
        for partition in [partition for partition, number in missing.items() if number in read[partition].values()]:
            del missing[partition]
        return not missing

    await _read(cluster, topic, len(last), seen)


async def _read(cluster: Cluster, topic: str, partitions: int, enough: Callable[[Read, set[int]], bool]) -> Read:
    client: dict[str, str | int] = {
        **cluster.client_configuration(),
        "log_level": _ERRORS_ONLY,
        "group.id": "reader-of-numbers",
        "isolation.level": "read_committed",
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
    }
    read: Read = {partition: {} for partition in range(partitions)}
    ended: set[int] = set()
    try:
        with contextlib.closing(Consumer(client)) as consumer:
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in read])
            async with asyncio.timeout(_DEADLINE):
                while not enough(read, ended):
                    for message in await asyncio.to_thread(consumer.consume, _AT_ONCE, _WAIT_SECONDS):
                        _keep(message, read, ended)
    except KafkaException as error:
        raise ProcessFailed(f"topic {topic} could not be read: {error}") from error
    except TimeoutError as error:
        raise ProcessFailed(f"topic {topic} did not hold what was awaited within {_DEADLINE:g} s") from error
    return read


def _keep(message: Message, read: Read, ended: set[int]) -> None:
    """Note a record, or the end of a partition.

    Raises:
        KafkaException: the message is an error.
        ProcessFailed: the record was written to another partition.
    """
    partition, offset, error = message.partition(), message.offset(), message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    if partition is None or offset is None:
        raise ProcessFailed("a message has neither partition nor offset")
    if error is not None:
        ended.add(partition)
        return
    written_to, number = map(int, (message.value() or b"").split(b":"))
    if written_to != partition:
        raise ProcessFailed(f"partition {partition} has a record that was written to partition {written_to}")
    read[partition][offset] = number
