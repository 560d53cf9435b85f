"""Records of every shape, produced by an independent client."""

import random

from confluent_kafka import Producer

from tests.support.patience import PATIENCE


def produce(producer: Producer, topic: str, count: int, partition: int = 0, size: int = 100) -> None:
    """Records with and without keys, null values, several headers of one name, and empty and null headers."""
    random_bytes = random.Random(count)
    for number in range(count):
        producer.produce(
            topic,
            key=None if number % 3 == 0 else b"key %d" % number,
            value=None if number % 7 == 0 else random_bytes.randbytes(size),
            headers=[("number", b"%d" % number), ("empty", b""), ("number", None)] if number % 2 else None,
            partition=partition,
        )
    assert producer.flush(PATIENCE) == 0
