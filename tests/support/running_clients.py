"""Clients that run on while a link fails over: a producer of numbered records, and a member of a group."""

import asyncio
import threading
import time
from dataclasses import dataclass, field

from confluent_kafka import Producer

from testbed.cluster import Cluster
from tests.faults.thread import in_own_thread
from tests.support.groups import consumer
from tests.support.patience import PATIENCE

_PAUSE = 0.02
"""Seconds between two records of a producer, for each partition."""

_UNKNOWN_AFTER = 3_000
"""Milliseconds after which a producer gives a record up that nobody acknowledges."""


@dataclass(slots=True)
class Producing:
    """A producer with ever new records, which waits for each acknowledgement.

    ``acknowledged`` are the values by partition; ``unknown`` are those that were given up.
    """

    partitions: int
    acknowledged: list[list[bytes]] = field(default_factory=list)
    unknown: list[bytes] = field(default_factory=list)
    _number: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _running: "asyncio.Future[None] | None" = None

    def __post_init__(self) -> None:
        self.acknowledged = [[] for _ in range(self.partitions)]

    @property
    def count(self) -> int:
        """The number of acknowledged records."""
        return sum(map(len, self.acknowledged))

    def start(self, cluster: Cluster, topic: str) -> None:
        """Produce into a topic from now on."""
        self._stopping.clear()
        self._running = in_own_thread(lambda: self._run(cluster, topic))

    async def more(self, records: int) -> None:
        """Wait until so many more were acknowledged."""
        wanted = self.count + records
        async with asyncio.timeout(PATIENCE):
            while self.count < wanted:
                await asyncio.sleep(_PAUSE)

    async def stop(self) -> None:
        """Stop, once the last record is acknowledged or given up."""
        self._stopping.set()
        if self._running is not None:
            await self._running

    def _run(self, cluster: Cluster, topic: str) -> None:
        own = {"message.timeout.ms": _UNKNOWN_AFTER, "enable.idempotence": True, "log_level": 0}
        producer = Producer({**cluster.client_configuration(), **own})
        while not self._stopping.wait(_PAUSE):
            for partition in range(self.partitions):
                self._number += 1
                value = b"%d" % self._number
                answer: list[object] = []
                producer.produce(
                    topic, value, partition=partition, on_delivery=lambda error, _, to=answer: to.append(error)
                )
                producer.flush(PATIENCE)
                if answer and answer[0] is None:
                    self.acknowledged[partition].append(value)
                else:
                    self.unknown.append(value)


@dataclass(slots=True)
class Consuming:
    """The only member of a group, which commits after each record; ``read`` are the values by partition."""

    group: str
    partitions: int
    read: list[list[bytes]] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _running: "asyncio.Future[None] | None" = None

    def __post_init__(self) -> None:
        self.read = [[] for _ in range(self.partitions)]

    def start(self, cluster: Cluster, topic: str) -> None:
        """Consume a topic from where the group is."""
        self._stopping.clear()
        self._running = in_own_thread(lambda: self._run(cluster, topic))

    async def has_read(self, records: int) -> None:
        """Wait until so many were read in all."""
        async with asyncio.timeout(PATIENCE):
            while sum(map(len, self.read)) < records:
                assert self._running is not None
                if self._running.done():
                    self._running.result()
                await asyncio.sleep(_PAUSE)

    async def stop(self) -> None:
        """Stop; everything that was read is committed."""
        self._stopping.set()
        if self._running is not None:
            await self._running

    def _run(self, cluster: Cluster, topic: str) -> None:
        member = consumer(cluster, self.group)
        try:
            member.subscribe([topic])
            heard = time.monotonic()
            while not self._stopping.is_set():
                message = member.poll(0.1)
                if message is None:
                    assert time.monotonic() < heard + PATIENCE, f"{self.group} hears nothing of {topic}"
                    continue
                assert message.error() is None, message.error()
                heard = time.monotonic()
                self.read[message.partition()].append(message.value())
                member.commit(message, asynchronous=False)
        finally:
            member.close()
