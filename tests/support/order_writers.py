"""Producers of an order's topic in each cluster: plain ones, and transactional ones that abort some."""

import random
import threading
import time
import uuid
from typing import Any

from confluent_kafka import KafkaException, Producer

from testbed.cluster import Cluster
from tests.support.order_chains import CLIENT, origin
from tests.support.patience import PATIENCE

_ABORTED = 0.3
_TRANSACTIONS = 0.4
_LONGEST = 12
"""Share of transactions that are aborted, share of turns that are transactions, and most records of a turn."""

_DAY_MS = 86_400_000


class OrderWriter(threading.Thread):
    """Writes to topic T of one cluster until it is closed; what fails is given up, or tried again by the client."""

    def __init__(self, name: str, cluster: Cluster, topic: str, partitions: int, seed: int, pause: float) -> None:
        super().__init__(name=f"writer of {name}", daemon=True)
        self._of, self._cluster, self._topic, self._partitions = name, cluster, topic, partitions
        self._chance, self._pause = random.Random(f"{seed} {name}"), pause
        self._written = 0
        self._ends = threading.Event()
        self._plain = Producer({**cluster.client_configuration(), "linger.ms": 2, "enable.idempotence": True, **CLIENT})
        self._transactional: Producer | None = None

    def run(self) -> None:
        """Write."""
        while not self._ends.is_set():
            if self._chance.random() < _TRANSACTIONS:
                try:
                    self._transaction()
                except KafkaException:  # its broker is away: whatever became of it, T shows
                    self._transactional = None
            else:
                self._write(self._plain)
            time.sleep(self._chance.random() * 2 * self._pause)
        assert self._plain.flush(PATIENCE) == 0

    def close(self) -> None:
        """Write no more; all that was written is decided."""
        self._ends.set()
        self.join()

    def _transaction(self) -> None:
        if self._transactional is None:
            further: dict[str, Any] = {"transactional.id": f"writer-{uuid.uuid4().hex}", **CLIENT}
            self._transactional = Producer({**self._cluster.client_configuration(), "linger.ms": 2, **further})
            self._transactional.init_transactions(PATIENCE)
        self._transactional.begin_transaction()
        self._write(self._transactional)
        if self._chance.random() < _ABORTED:
            assert self._transactional.flush(PATIENCE) == 0
            self._transactional.abort_transaction(PATIENCE)
        else:
            self._transactional.commit_transaction(PATIENCE)

    def _write(self, producer: Producer) -> None:
        for _ in range(self._chance.randint(1, _LONGEST)):
            partition = self._chance.randrange(self._partitions)
            producer.produce(self._topic, partition=partition, **self._record(partition))
            producer.poll(0)

    def _record(self, partition: int) -> dict[str, Any]:
        self._written += 1
        chance = self._chance
        value = None if chance.random() < 0.05 else chance.randbytes(chance.choice((0, 20, 300)))
        headers = [("of", self._of.encode()), ("of", None), ("", b"\x00\xff")] if chance.random() < 0.3 else None
        time_of = int(time.time() * 1000) - chance.randrange(_DAY_MS)
        key = origin(self._of, partition) + b"/%d" % self._written
        return {"key": key, "value": value, "timestamp": time_of} | ({"headers": headers} if headers else {})
