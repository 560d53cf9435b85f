"""The committed records that have arrived at the destination: their number over time."""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from appliance.errors import Unreachable
from testbed.reading import committed_consumer, has_record

_CHECK_SECONDS = 0.3
_AT_ONCE = 2000
_ADMIN_SECONDS = 10.0


@dataclass(slots=True)
class Arrivals:
    """A counter of arrivals. One thread adds, and any thread may read. Times are monotonic, in seconds."""

    count: int = 0
    samples: list[tuple[float, int]] = field(default_factory=list)

    def add(self, records: int, now: float) -> None:
        """Add ``records`` that have arrived by ``now``."""
        if records:
            self.samples.append((now, self.count + records))
            self.count += records

    def rate_since(self, begin: float) -> float:
        """Records per second, from the first arrival after ``begin`` to the last one; 0 when all came at once.

        Records that came before or with the first arrival do not count, because their time is unknown.
        """
        after = [sample for sample in self.samples if sample[0] >= begin]
        if len(after) < 2:
            return 0.0
        (first, there), (last, count) = after[0], after[-1]
        return (count - there) / (last - first)


def follow(client: Mapping[str, str], topics: Iterable[str], arrivals: Arrivals, stopping: threading.Event) -> None:
    """Count the records of ``topics``, which need not exist yet, until ``stopping`` is set; blocks.

    Raises:
        Unreachable: the consumer failed.
    """
    awaited, next_check = set(topics), 0.0
    consumer = committed_consumer(client)
    try:
        while not stopping.is_set():
            if awaited and time.monotonic() >= next_check:
                awaited -= _begin(consumer, awaited)
                next_check = time.monotonic() + _CHECK_SECONDS
            messages = consumer.consume(_AT_ONCE, 0.03)
            arrivals.add(sum(has_record(message) for message in messages), time.monotonic())
    except KafkaException as error:
        raise Unreachable(f"the copies could not be followed: {error.args[0]}") from error
    finally:
        consumer.close()


def _begin(consumer: Consumer, awaited: set[str]) -> set[str]:
    """Begin to read the awaited topics that exist; return them."""
    known = consumer.list_topics(timeout=_ADMIN_SECONDS).topics
    new = {topic for topic in awaited if topic in known and known[topic].partitions}
    consumer.incremental_assign(
        [TopicPartition(topic, partition, OFFSET_BEGINNING) for topic in new for partition in known[topic].partitions]
    )
    return new
