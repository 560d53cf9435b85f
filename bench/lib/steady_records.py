"""A constant flow of numbered records into the source, and the records that are readable at the destination."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from appliance.kafka.client.topics import NewTopic, create_topics
from appliance.settings.values import Side
from bench.lib.clusters import Pair, kafka_cluster
from testbed.cluster import Cluster
from testbed.process import OwnedProcess

PARTITIONS = 4

_INTERVAL = 0.01
_AT_ONCE = 1_000
_ERRORS_ONLY = 3


class SteadyRecords:
    """One record for each partition every ten milliseconds.

    ``number`` is the next record's. ``seen`` holds the number of the newest record that a ``read_committed`` consumer
    got, by partition.
    """

    def __init__(self, pair: Pair, topic: str, copy: str) -> None:
        self.number = 0
        self.seen = [-1] * PARTITIONS
        self._topic = topic
        self._producer = Producer({**_client(pair.source), "linger.ms": 0})
        reading = {"group.id": "bench-trickle", "isolation.level": "read_committed", "enable.auto.commit": "false"}
        self._consumer = Consumer({**_client(pair.destination), **reading})
        self._consumer.assign([TopicPartition(copy, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])

    async def flow(self) -> None:
        """Write and read until cancelled."""
        while True:
            for partition in range(PARTITIONS):
                self._producer.produce(self._topic, b"%d" % self.number, partition=partition)
            self.number += 1
            self._producer.poll(0)
            for message in self._consumer.consume(_AT_ONCE, 0):
                if message.error() is None:
                    self.seen[message.partition() or 0] = int(message.value() or b"")
            await asyncio.sleep(_INTERVAL)

    async def arrives(self, copying: OwnedProcess, timeout: float) -> None:
        """Wait until each partition has shown a record that was written after this call.

        Raises:
            ProcessFailed: the copying process ended, or ``timeout`` seconds passed.
        """
        first = self.number

        async def seen() -> bool:
            return min(self.seen) >= first

        await copying.wait_until(seen, timeout, "copy what was written")

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()


@contextlib.asynccontextmanager
async def steady_records(pair: Pair, topic: str, copy: str) -> AsyncIterator[SteadyRecords]:
    """Create ``topic`` and the topic of its ``copy``, and keep records flowing while the block runs.

    Raises:
        ProcessFailed, Unreachable: a cluster does not answer.
    """
    for cluster, side, name in ((pair.source, Side.SOURCE, topic), (pair.destination, Side.DESTINATION, copy)):
        async with kafka_cluster(cluster, side) as client:
            failures = (await create_topics(client, [NewTopic(name, PARTITIONS, cluster.plan.replicas, {})])).failures
        for error in failures.values():
            raise error
    with contextlib.closing(SteadyRecords(pair, topic, copy)) as made:
        flowing = asyncio.create_task(made.flow(), name="trickle")
        try:
            yield made
        finally:
            flowing.cancel()
            await asyncio.gather(flowing, return_exceptions=True)


def _client(cluster: Cluster) -> dict[str, str | int]:
    return {**cluster.client_configuration(), "log_level": _ERRORS_ONLY}
