"""Producing the input through confluent-kafka. All functions block, and are meant for a thread of their own.

They return early when ``stopping`` is set. Whatever is not delivered raises ``Unreachable``.
"""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from appliance.demo.input import PROBE, TOPICS, Batching, Input, InputRecord, InputTopic
from appliance.errors import Unreachable

_PATIENCE = 60.0
_STEP = 500
_TRANSACTIONS = 24
_ABORTED_EVERY = 3
_BATCHING: Mapping[Batching, Mapping[str, int]] = {
    Batching.USUAL: {"linger.ms": 10, "batch.size": 1 << 17},
    Batching.TINY: {"linger.ms": 0, "batch.num.messages": 3},
    Batching.LARGE: {"linger.ms": 100, "batch.size": 900_000, "message.max.bytes": 1_000_000},
}

Reached = Callable[[int], None]
"""Told how many records are done so far."""


def produce(
    client: Mapping[str, str], source: Input, second_half: bool, reached: Reached, stopping: threading.Event
) -> None:
    """One half of the input, returning when every record of it is acknowledged.

    Args:
        client: configuration that reaches the source cluster.
        source: what to produce.
        second_half: which half.
        reached: for progress; aborted records are not counted.
        stopping: ends it early.
    """
    done = 0

    def counted(records: Iterable[InputRecord]) -> Iterator[InputRecord]:
        nonlocal done
        for record in records:
            if stopping.is_set():
                return
            yield record
            done += 1
            if done % _STEP == 0:
                reached(done)

    with _translated(), contextlib.ExitStack() as flushing:
        for topic in TOPICS:
            if topic is PROBE:
                continue
            numbers = source.half(topic, second_half)
            if topic.transactional:
                _produce_in_transactions(client, source, topic, numbers, counted, stopping)
                continue
            outlet = Outlet(client, topic)
            flushing.callback(outlet.flush, stopping)
            for record in counted(source.of(topic, numbers)):
                outlet.send(record)
    reached(done)


def _produce_in_transactions(
    client: Mapping[str, str],
    source: Input,
    topic: InputTopic,
    numbers: range,
    counted: Callable[[Iterable[InputRecord]], Iterable[InputRecord]],
    stopping: threading.Event,
) -> None:
    """Committed transactions, and among them, in the same partitions and at the same time, aborted ones."""
    kept, dropped = (
        Outlet(client, topic, {"transactional.id": f"{topic.name}-{fate}"}) for fate in ("kept", "dropped")
    )
    for outlet in (kept, dropped):
        outlet.producer.init_transactions(_PATIENCE)
    size = max(1, -(-len(numbers) // _TRANSACTIONS))
    for index, begin in enumerate(range(0, len(numbers), size)):
        part = numbers[begin : begin + size]
        aborted = part if index % _ABORTED_EVERY == 0 else ()
        kept.producer.begin_transaction()
        dropped.producer.begin_transaction()
        both = itertools.zip_longest(counted(source.of(topic, part)), source.of(topic, aborted, "aborted "))
        for record, doomed in both:
            if record is not None:
                kept.send(record)
            if doomed is not None:
                dropped.send(doomed)
        dropped.flush(stopping)
        kept.producer.commit_transaction(_PATIENCE)
        dropped.producer.abort_transaction(_PATIENCE)
        if stopping.is_set():
            return


class Outlet:
    """A producer for one topic."""

    def __init__(
        self, client: Mapping[str, str], topic: InputTopic, further: Mapping[str, str | int] | None = None
    ) -> None:
        self._topic = topic
        self._failures: list[str] = []
        self.producer = Producer(
            {
                **client,
                "compression.type": topic.codec,
                "enable.idempotence": True,
                "delivery.report.only.error": True,
                "on_delivery": self._failed,
                **_BATCHING[topic.batching],
                **(further or {}),
            }
        )

    def send(self, record: InputRecord) -> None:
        """Queues the record; waits while the queue is full."""
        while True:
            try:
                self.producer.produce(
                    self._topic.name,
                    record.value,
                    record.key,
                    record.partition,
                    timestamp=record.timestamp,
                    headers=record.headers,
                )
            except BufferError:
                self.producer.poll(0.05)
            else:
                return

    def flush(self, stopping: threading.Event) -> None:
        """Returns when all are acknowledged.

        Raises:
            Unreachable: some were not.
        """
        deadline = time.monotonic() + _PATIENCE
        while self.producer.flush(0.2) and not stopping.is_set():
            if time.monotonic() > deadline:
                self._failures.append(f"no answer within {_PATIENCE:g} s")
                break
        if self._failures:
            raise Unreachable(f"a record of {self._topic.name} could not be produced: {self._failures[0]}")

    def _failed(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures.append(error.str())


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise Unreachable(f"the input could not be produced: {error.args[0]}") from error
