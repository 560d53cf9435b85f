"""Producers at the source, seeded: plain and transactional ones in the same partitions, commits and aborts mixed.

Every record is one of its kind, and every producer remembers what it was told of each: acknowledged, aborted, or
nothing for sure. Blocking clients, each in a thread of its own.
"""

import asyncio
import functools
import itertools
import random
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from testbed.reading import fingerprint
from tests.faults.history import Partition
from tests.faults.thread import in_own_thread

Options = Mapping[str, str | int]

_SECONDS = 30.0
_ABORTED = 0.25
_PLAIN: Mapping[str, Options] = {
    "plain-lz4": {"compression.type": "lz4"},
    "plain-tiny": {"batch.num.messages": 3, "linger.ms": 0},
}
_TRANSACTIONAL: Mapping[str, Options] = {
    "transactional-none": {},
    "transactional-zstd": {"compression.type": "zstd"},
}

Header = tuple[str, bytes | None]
Delivered = Callable[[KafkaError | None, Message], None]


@dataclass(frozen=True, slots=True)
class WorkloadRecord:
    """One record before it is written; ``timestamp`` is in milliseconds since the epoch."""

    partition: Partition
    key: bytes | None
    value: bytes
    headers: list[Header]
    timestamp: int

    @property
    def fingerprint(self) -> int:
        """The fingerprint that identifies the record."""
        return fingerprint(self.key, self.value, self.headers, self.timestamp)


class Workload:
    """Writes to ``partitions`` from ``start`` to ``stop``: some hundred records a second, while the source answers.

    To those of ``plain`` nothing is written in transactions.
    """

    def __init__(
        self, client: Mapping[str, str], partitions: Sequence[Partition], seed: int, plain: Sequence[Partition] = ()
    ) -> None:
        self.acknowledged = {partition: array("Q") for partition in (*partitions, *plain)}
        self.aborted = {partition: array("Q") for partition in (*partitions, *plain)}
        self._plain = plain
        self._client = client
        self._partitions = partitions
        self._seed = seed
        self._stopping = threading.Event()
        self._threads: list[asyncio.Future[None]] = []

    def start(self) -> None:
        """Begin."""
        writers = [functools.partial(self._write_plain, *item) for item in _PLAIN.items()]
        writers += [functools.partial(self._write_transactions, *item) for item in _TRANSACTIONAL.items()]
        self._threads = [in_own_thread(writer) for writer in writers]

    async def stop(self) -> None:
        """Finish what has begun; every outcome that can be known is known when this returns."""
        self._stopping.set()
        await asyncio.gather(*self._threads)

    def written(self) -> dict[Partition, int]:
        """The number of records that the source has acknowledged so far."""
        return {partition: len(records) for partition, records in self.acknowledged.items()}

    def _records(self, writer: str, partitions: Sequence[Partition]) -> Iterator[WorkloadRecord]:
        chance = random.Random(f"{self._seed} {writer}")
        for sequence in itertools.count():
            name = f"{writer} {sequence}".encode()
            headers: list[Header] = [("writer", writer.encode()), ("none", None)] if sequence % 5 == 0 else []
            yield WorkloadRecord(
                partition=chance.choice(partitions),
                key=None if sequence % 3 == 0 else name,
                value=name + b" " + chance.randbytes(chance.randrange(300)),
                headers=headers,
                timestamp=time.time_ns() // 1_000_000,
            )

    def _write_plain(self, writer: str, options: Options) -> None:
        records = self._records(writer, [*self._partitions, *self._plain])
        producer = Producer({**self._client, "enable.idempotence": True, "linger.ms": 20, **options})
        while not self._stopping.wait(0.2):
            for record in itertools.islice(records, 8):
                _produce(producer, record, functools.partial(self._delivered, record))
            producer.poll(0)
        producer.flush(_SECONDS)

    def _delivered(self, record: WorkloadRecord, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.acknowledged[record.partition].append(record.fingerprint)

    def _write_transactions(self, writer: str, options: Options) -> None:
        records, chance = self._records(writer, self._partitions), random.Random(f"{self._seed} {writer} fates")
        producer: Producer | None = None
        while not self._stopping.wait(chance.uniform(0, 0.4)):
            taken = list(itertools.islice(records, chance.randint(1, 30)))
            try:
                producer = producer or self._begin_life(writer, options)
                outcome = self._transact(producer, taken, chance.uniform(0, 0.1), chance.random() < _ABORTED)
            except KafkaException:
                # Whatever became of the transaction: the next life of its id ends it.
                producer = None
                continue
            for record in taken:
                outcome[record.partition].append(record.fingerprint)

    def _begin_life(self, writer: str, options: Options) -> Producer:
        name = f"{writer}-{self._partitions[0][0]}"
        producer = Producer({**self._client, "transactional.id": name, "linger.ms": 5, **options})
        producer.init_transactions(_SECONDS)
        return producer

    def _transact(
        self, producer: Producer, records: Sequence[WorkloadRecord], pause: float, aborts: bool
    ) -> "dict[Partition, array[int]]":
        """One transaction, and where its outcome is to be remembered."""
        producer.begin_transaction()
        for record in records:
            _produce(producer, record)
        # An abort would drop what is still queued, and the log would hold no aborted records.
        producer.flush(_SECONDS)
        self._stopping.wait(pause)
        if aborts:
            producer.abort_transaction(_SECONDS)
            return self.aborted
        producer.commit_transaction(_SECONDS)
        return self.acknowledged


def _produce(producer: Producer, record: WorkloadRecord, delivered: Delivered | None = None) -> None:
    topic, partition = record.partition
    producer.produce(
        topic,
        record.value,
        record.key,
        partition,
        on_delivery=delivered,
        timestamp=record.timestamp,
        headers=record.headers,
    )
