"""``steady CONFIGURATION TOPIC NAME``: write a numbered record each 20 ms by confluent-kafka until SIGTERM.

Prints each delivered number, with the seconds of the clock; at the end ``all`` and how many were sent, once the broker
has acknowledged each of them.
"""

import signal
import sys
import time
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

PAUSE = 0.02
"""Seconds between two records."""

_stopping: list[int] = []


def main(configuration: str, topic: str, name: str) -> None:
    """Write until SIGTERM; confluent-kafka itself tries again what a lost connection leaves open."""
    signal.signal(signal.SIGTERM, lambda number, _frame: _stopping.append(number))
    lines = Path(configuration).read_text().splitlines()
    producer = Producer(
        dict(line.split("=", 1) for line in lines) | {"enable.idempotence": "true", "reconnect.backoff.max.ms": "500"}
    )
    delivered, number = 0, 0

    def count(error: KafkaError | None, message: Message) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1
            print("delivered", (message.key() or b"").decode(), f"{time.monotonic():.3f}", flush=True)

    while not _stopping:
        producer.produce(topic, key=f"{name}-{number}", value="steady", on_delivery=count)
        number += 1
        producer.poll(PAUSE)
    producer.flush(60)
    print("all" if delivered == number else f"only {delivered} of", number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
