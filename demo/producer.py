"""A confluent-kafka producer that reports records which could not be delivered."""

import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

from appliance.errors import Unreachable
from demo.input import Batching, InputRecord, InputTopic

PATIENCE = 60.0
"""Delivery timeout, in seconds."""

_FULL_QUEUE_SECONDS = 0.05
_FLUSH_SECONDS = 0.2
_BATCHING: Mapping[Batching, Mapping[str, int]] = {
    Batching.USUAL: {"linger.ms": 10, "batch.size": 1 << 17},
    Batching.TINY: {"linger.ms": 0, "batch.num.messages": 3},
    Batching.LARGE: {"linger.ms": 100, "batch.size": 900_000, "message.max.bytes": 1_000_000},
    Batching.NONE: {"linger.ms": 0},
}


class InputProducer:
    """An idempotent producer with one codec and one batching; a context manager that closes it.

    Args:
        client: configuration that reaches the cluster.
        codec: the compression of batches.
        batching: the size of batches.
        transactional_id: makes it a transactional producer; the caller begins and ends its transactions at ``client``.
    """

    def __init__(
        self, client: Mapping[str, str], codec: str, batching: Batching, transactional_id: str | None = None
    ) -> None:
        self._failures: list[str] = []
        own: dict[str, object] = {"compression.type": codec, "enable.idempotence": True, **_BATCHING[batching]}
        if transactional_id is not None:
            own["transactional.id"] = transactional_id
        reports = {"delivery.report.only.error": True, "on_delivery": self._failed}
        self.client = Producer({**client, **own, **reports})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.client.purge()
        self.client.close()

    def send(self, topic: InputTopic, record: InputRecord) -> None:
        """Queue the record; waits while the queue is full."""
        while True:
            try:
                self.client.produce(
                    topic.name,
                    record.value,
                    record.key,
                    record.partition,
                    timestamp=record.timestamp,
                    headers=record.headers,
                )
            except BufferError:
                self.client.poll(_FULL_QUEUE_SECONDS)
            else:
                return

    def flush(self, stopping: threading.Event) -> None:
        """Wait until all records are acknowledged, or ``stopping`` is set.

        Raises:
            Unreachable: a record was not acknowledged.
        """
        deadline = time.monotonic() + PATIENCE
        while self.client.flush(_FLUSH_SECONDS) and not stopping.is_set():
            if time.monotonic() > deadline:
                self._failures.append(f"no answer within {PATIENCE:g} s")
                break
        if self._failures:
            raise Unreachable(f"a record could not be produced: {self._failures[0]}")

    def _failed(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures.append(error.str())
