"""Producers of one cluster, a plain one and a transactional one, which write until they are told to end."""

import random
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from appliance.errors import Unreachable
from demo.input import Batching, InputRecord
from demo.order_setenv import ADDRESSES, TOPIC
from demo.producer import PATIENCE, InputProducer

_PAUSE_SECONDS = 0.1
_AT_ONCE = 20
_ABORTED_EVERY = 3


@dataclass
class Writing:
    """The work of both producers; ``written`` counts by cluster what they have acknowledged and committed.

    ``end`` ends all of it, once what was begun is written.
    """

    written: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ADDRESSES, 0))
    end: threading.Event = field(default_factory=threading.Event)

    def write(self, name: str, client: Mapping[str, str], stopping: threading.Event) -> None:
        """Write to a cluster until ``end``, or ``stopping``; blocks.

        Raises:
            Unreachable: a record could not be delivered.
        """
        records, turn = _records(name), 0
        try:
            with (
                InputProducer(client, "lz4", Batching.USUAL) as plain,
                InputProducer(client, "zstd", Batching.USUAL, f"{name}-writer") as transactional,
            ):
                transactional.client.init_transactions(PATIENCE)
                while not self.end.is_set() and not stopping.is_set():
                    turn += 1
                    committed = _transaction(transactional, records, turn % _ABORTED_EVERY > 0, stopping)
                    plain_records = _send(plain, records)
                    plain.flush(stopping)
                    self.written[name] += committed + plain_records
                    self.end.wait(_PAUSE_SECONDS)
        except KafkaException as error:
            raise Unreachable(f"no records could be produced in {name}: {error.args[0]}") from error


def _transaction(
    producer: InputProducer, records: Iterator[InputRecord], commits: bool, stopping: threading.Event
) -> int:
    """Write a transaction; the number of its records, if it commits."""
    producer.client.begin_transaction()
    count = _send(producer, records)
    if commits:
        producer.client.commit_transaction(PATIENCE)
        return count
    producer.flush(stopping)  # an abort drops queued records, so the log would have no aborted ones
    producer.client.abort_transaction(PATIENCE)
    return 0


def _send(producer: InputProducer, records: Iterator[InputRecord]) -> int:
    for _ in range(_AT_ONCE):
        producer.send(TOPIC, next(records))
    return _AT_ONCE


def _records(name: str) -> Iterator[InputRecord]:
    """The records of a cluster, no two of which are equal."""
    chance, number = random.Random(name), 0
    while True:
        number += 1
        value = None if number % 40 == 0 else chance.randbytes(chance.randrange(300))
        headers: list[tuple[str, str | bytes | None]] = [("of", name), ("null", None)] if number % 4 == 0 else []
        yield InputRecord(number % TOPIC.partitions, f"{name}/{number}".encode(), value, headers, 0)
