"""Receives the copies of the sender's records, and notes the times; a separate program, at ``read_committed``.

It prints ``ready`` once it reads, and ends when all records have come. Then its file holds, record by record, the times
of sending and of the first receipt, as two integers of nanoseconds. It ignores a record without a value, which only
shows that the copying program has started.
"""

import argparse
import contextlib
import sys
import time
from array import array
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from bench.lib.latency_figures import Stamp

_POLL_SECONDS = 0.5
_PATIENCE = 60.0


class Received:
    """The times at which each of ``count`` records was sent and received, and the number of ``missing`` records."""

    def __init__(self, count: int) -> None:
        self.times = array("q", bytes(16 * count))
        self.missing = count

    def take(self, value: bytes | None, now: int) -> None:
        """Note the receipt of a record, which may be a repeated one."""
        if value is None:
            return
        stamp = Stamp.of(value)
        if not self.times[2 * stamp.number]:
            self.times[2 * stamp.number], self.times[2 * stamp.number + 1] = stamp.sent, now
            self.missing -= 1


def receive(consumer: Consumer, count: int) -> "array[int]":
    """Receive until all records have come; return their times, two for each.

    Raises:
        KafkaException: the consumer failed.
        TimeoutError: no record came for a minute.
    """
    received, newest = Received(count), time.perf_counter()
    while received.missing:
        message = consumer.poll(_POLL_SECONDS)
        now = time.perf_counter_ns()
        if message is None:
            if now / 1e9 - newest > _PATIENCE:
                raise TimeoutError(f"{received.missing} of {count} records did not come")
            continue
        if message.error() is not None:
            raise KafkaException(message.error())
        newest = now / 1e9
        received.take(message.value(), now)
    return received.times


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--file", type=Path, required=True)
    options = parser.parse_args()
    client: dict[str, str | int] = {
        "bootstrap.servers": options.bootstrap,
        "group.id": "bench-latency",
        "isolation.level": "read_committed",
        "enable.auto.commit": "false",
        "fetch.min.bytes": 1,
        "fetch.wait.max.ms": 20,
    }
    with contextlib.closing(Consumer(client)) as consumer:
        consumer.assign([TopicPartition(options.topic, n, OFFSET_BEGINNING) for n in range(options.partitions)])
        print("ready", flush=True)
        try:
            times = receive(consumer, options.count)
        except (KafkaException, TimeoutError) as error:
            print(f"not received: {error}", file=sys.stderr)
            return 1
    options.file.write_bytes(times.tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
