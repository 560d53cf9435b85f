"""Produce the input with confluent-kafka, in a thread of its own."""

import contextlib
import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping

from confluent_kafka import KafkaException

from appliance.errors import Unreachable
from demo.input import TOPICS, Batching, Input, InputRecord, InputTopic
from demo.producer import PATIENCE, InputProducer
from testbed.tasks import Reached

_STEP = 500
_TRANSACTIONS = 10
_ABORTED_EVERY = 2


def produce(
    client: Mapping[str, str], source: Input, second_half: bool, reached: Reached, stopping: threading.Event
) -> None:
    """Produce one half of the input; blocks until all its records are acknowledged, or ``stopping`` is set.

    Args:
        client: configuration that reaches the source cluster.
        source: the input.
        second_half: true for the second half.
        reached: for progress; aborted records are not counted.
        stopping: ends it early.

    Raises:
        Unreachable: a record could not be delivered.
    """
    try:
        with contextlib.ExitStack() as closing:
            _Half(client, source, second_half, reached, stopping, closing).produce()
    except KafkaException as error:
        raise Unreachable(f"the input could not be produced: {error.args[0]}") from error


class _Half:
    """One half while it is produced; ``closing`` closes its producers."""

    def __init__(
        self,
        client: Mapping[str, str],
        source: Input,
        second_half: bool,
        reached: Reached,
        stopping: threading.Event,
        closing: contextlib.ExitStack,
    ) -> None:
        self._client = client
        self._source = source
        self._second_half = second_half
        self._reached = reached
        self._stopping = stopping
        self._closing = closing
        self._producers: dict[tuple[str, Batching], InputProducer] = {}
        self._done = 0

    def produce(self) -> None:
        """Produce this half. The transactions come last, so that the other producers still send while they commit."""
        for topic in sorted(TOPICS, key=lambda topic: topic.transactional):
            numbers = self._source.half(topic, self._second_half)
            if topic.transactional:
                self._produce_in_transactions(topic, numbers)
            else:
                producer = self._producer(topic)
                for record in self._counted(self._source.of(topic, numbers)):
                    producer.send(topic, record)
        for producer in self._producers.values():
            producer.flush(self._stopping)
        self._reached(self._done)

    def _producer(self, topic: InputTopic) -> InputProducer:
        way = topic.codec, topic.batching
        if way not in self._producers:
            self._producers[way] = self._closing.enter_context(InputProducer(self._client, *way))
        return self._producers[way]

    def _counted(self, records: Iterable[InputRecord]) -> Iterator[InputRecord]:
        for record in records:
            if self._stopping.is_set():
                return
            yield record
            self._done += 1
            if self._done % _STEP == 0:
                self._reached(self._done)

    def _produce_in_transactions(self, topic: InputTopic, numbers: range) -> None:
        """Produce committed transactions, and simultaneously aborted ones in the same partitions."""
        committing, aborting = (
            self._closing.enter_context(
                InputProducer(self._client, topic.codec, topic.batching, f"{topic.name}-{fate}")
            )
            for fate in ("committing", "aborting")
        )
        for producer in (committing, aborting):
            producer.client.init_transactions(PATIENCE)
        size = max(1, -(-len(numbers) // _TRANSACTIONS))
        for index, begin in enumerate(range(0, len(numbers), size)):
            part = numbers[begin : begin + size]
            aborted = part if index % _ABORTED_EVERY == 0 else ()
            for producer in (committing, aborting):
                producer.client.begin_transaction()
            self._send_mixed(topic, (committing, part), (aborting, aborted))
            committing.client.commit_transaction(PATIENCE)
            aborting.client.abort_transaction(PATIENCE)

    def _send_mixed(
        self, topic: InputTopic, kept: tuple[InputProducer, Iterable[int]], dropped: tuple[InputProducer, Iterable[int]]
    ) -> None:
        records = self._counted(self._source.of(topic, kept[1]))
        for record, doomed in itertools.zip_longest(records, self._source.of(topic, dropped[1], "aborted ")):
            if record is not None:
                kept[0].send(topic, record)
            if doomed is not None:
                dropped[0].send(topic, doomed)
        # Flush first: an abort drops queued records, so the log would have no aborted records.
        dropped[0].flush(self._stopping)
