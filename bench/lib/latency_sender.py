"""Sends records at a constant rate; a separate program, so that no other work delays it.

Each record is sent at its due time, and holds the time at which it was really sent. The rate does not depend on
answers. The program prints the delays of the sending itself, which are not part of the latency.
"""

import sys
import time
from collections.abc import Sequence

from confluent_kafka import KafkaException, Producer

from bench.lib.cards import EVERY, card_events, headers
from bench.lib.clients import Refused
from bench.lib.events import events
from bench.lib.latency_figures import Stamp, latency_parser, percentile

_DISTINCT_VALUES, _VALUE_BYTES = 256, 500
_LINGER = 5
_FLUSH_SECONDS = 30.0
_HEAD_START = 0.1


def send(
    producer: Producer, topic: str, places: Sequence[int], rate: float, count: int, fillers: Sequence[bytes]
) -> list[float]:
    """Send ``count`` records at ``rate`` a second, made of ``fillers``; return the delay of each, in milliseconds.

    ``places`` are the partitions of so many records, which are repeated. Fillers have their headers (``cards``).
    """
    refused = Refused()
    begun = time.perf_counter() + _HEAD_START
    beside = [headers(filler) for filler in fillers]
    late = []
    for number in range(count):
        due = begun + number / rate
        while (left := due - time.perf_counter()) > 0:
            time.sleep(left)
        late.append(-1000 * left)
        value = Stamp(number, time.perf_counter_ns()).value(fillers[number % len(fillers)])
        producer.produce(
            topic,
            value,
            b"%d" % number,
            places[number % len(places)],
            on_delivery=refused,
            headers=beside[number % len(fillers)],
        )
        producer.poll(0)
    refused.flush(producer, _FLUSH_SECONDS)
    return late


def main() -> int:
    """Run the program and return its exit code."""
    parser = latency_parser(__doc__)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--cards", action="store_true")
    options = parser.parse_args()
    producer = Producer(
        {"bootstrap.servers": options.bootstrap, "linger.ms": _LINGER, "delivery.report.only.error": True}
    )
    producer.list_topics(options.topic, timeout=_FLUSH_SECONDS)
    fillers = (card_events if options.cards else events)(_DISTINCT_VALUES, _VALUE_BYTES)
    together = EVERY if options.cards else 1
    places = [partition for partition in range(options.partitions) for _ in range(together)]
    try:
        late = send(producer, options.topic, places, options.rate, options.count, fillers)
    except KafkaException as error:
        print(f"not sent: {error}", file=sys.stderr)
        return 1
    print(f"sent, late by {percentile(late, 0.99):.2f} ms (p99), {max(late):.2f} ms (max)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
