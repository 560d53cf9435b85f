"""Receives the copies of the sender's records, and notes the times; a separate program, at ``read_committed``.

It prints ``ready`` once it reads, and ends when all records have come. Then its file holds, record by record, the times
of sending and of the first receipt, as two integers of nanoseconds. It ignores a record without a value, which only
shows that the copying program has started.
"""

import contextlib
import sys
import time
from array import array
from pathlib import Path

from confluent_kafka import Consumer, KafkaException

from bench.lib.clients import beginnings, reader
from bench.lib.latency_figures import Stamp, latency_parser

_POLL_SECONDS = 0.5
_PATIENCE = 60.0


class Received:
    """The times at which each of ``count`` records was sent and received, and the number of ``missing`` records.

    The numbers of the records are multiples of ``every``, because the copy leaves the others out.
    """

    def __init__(self, count: int, every: int = 1) -> None:
        self.times = array("q", bytes(16 * count))
        self.missing = count
        self._every = every

    def take(self, value: bytes | None, now: int) -> None:
        """Note the receipt of a record, which may be a repeated one."""
        if value is None:
            return
        stamp = Stamp.of(value)
        at, rest = divmod(stamp.number, self._every)
        if rest:
            raise ValueError(f"record {stamp.number} is in the copy")
        if not self.times[2 * at]:
            self.times[2 * at], self.times[2 * at + 1] = stamp.sent, now
            self.missing -= 1


def receive(consumer: Consumer, count: int, every: int) -> "array[int]":
    """Receive ``count`` records, those whose numbers are multiples of ``every``; return their times, two for each."""
    received, newest = Received(count, every), time.perf_counter()
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
    parser = latency_parser(__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--file", type=Path, required=True)
    options = parser.parse_args()
    client = {"bootstrap.servers": options.bootstrap}
    partitions = beginnings(options.topic, options.partitions)
    with contextlib.closing(reader(client, partitions, {"fetch.min.bytes": 1, "fetch.wait.max.ms": 20})) as consumer:
        print("ready", flush=True)
        try:
            times = receive(consumer, options.count, options.every)
        except (KafkaException, TimeoutError, ValueError) as error:
            print(f"not received: {error}", file=sys.stderr)
            return 1
    options.file.write_bytes(times.tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
