"""A constant flow of numbered records into the source, and the records that are readable at the destination."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from confluent_kafka import Producer

from bench.lib.clients import ERRORS_ONLY, beginnings, reader
from bench.lib.clusters import Pair, make_topic
from testbed.process import OwnedProcess
from testbed.tasks import end

PARTITIONS = 4

_INTERVAL = 0.01
_AT_ONCE = 1_000


class SteadyRecords:
    """One record for each partition every ten milliseconds.

    ``number`` is the next record's. ``seen`` holds the number of the newest record that a ``read_committed`` consumer
    got, by partition, and ``arrivals`` the times at which the last of them got a newer one.
    """

    def __init__(self, pair: Pair, topic: str, copy: str) -> None:
        self.number = 0
        self.seen = [-1] * PARTITIONS
        self.arrivals: list[float] = []
        self._topic = topic
        self._producer = Producer({**pair.source.client_configuration(), **ERRORS_ONLY, "linger.ms": 0})
        self._consumer = reader(pair.destination.client_configuration(), beginnings(copy, PARTITIONS))

    async def flow(self) -> None:
        """Write and read until cancelled."""
        while True:
            for partition in range(PARTITIONS):
                self._producer.produce(self._topic, b"%d" % self.number, partition=partition)
            self.number += 1
            self._producer.poll(0)
            self._read()
            await asyncio.sleep(_INTERVAL)

    def _read(self) -> None:
        before = min(self.seen)
        for message in self._consumer.consume(_AT_ONCE, 0):
            if message.error() is None:
                self.seen[message.partition() or 0] = int(message.value() or b"")
        if min(self.seen) > before:
            self.arrivals.append(time.perf_counter())

    async def arrives(self, copying: OwnedProcess, timeout: float) -> None:
        """Wait until each partition has shown a record that was written after this call."""
        first = self.number

        async def seen() -> bool:
            return min(self.seen) >= first

        await copying.wait_until(seen, timeout, "copy what was written")

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()


@contextlib.asynccontextmanager
async def steady_records(pair: Pair, topic: str, copy: str) -> AsyncIterator[SteadyRecords]:
    """Create ``topic`` and the topic of its ``copy``, and keep records flowing while the block runs."""
    await make_topic(pair.source, topic, PARTITIONS)
    await make_topic(pair.destination, copy, PARTITIONS)
    with contextlib.closing(SteadyRecords(pair, topic, copy)) as made:
        flowing = asyncio.create_task(made.flow(), name="trickle")
        try:
            yield made
        finally:
            await end(flowing)
