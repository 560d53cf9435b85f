"""The rows that a consumer reads of a partition, and their end."""

import asyncio
import contextlib
import time
import weakref
from collections.abc import Iterable

from confluent_kafka import Consumer, IsolationLevel, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from testbed.cluster import Cluster
from tests.support.patience import PATIENCE

SOON = 10
"""Milliseconds that a broker waits for news before it says that there are none; else 500."""

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, tuple[int, int]]
"""What must be the same on both sides of a record: partition, key, value, headers, timestamp with its type."""


def end(cluster: Cluster, topic: str, partition: int) -> int:
    """The high watermark, past what is open or has just been decided, too."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return _end(cluster, topic, partition, IsolationLevel.READ_UNCOMMITTED)
        except KafkaException:  # perhaps nobody leads it yet
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)


async def until_rows(cluster: Cluster, topic: str, count: int, partition: int = 0) -> list[Row]:
    """The rows of a partition, as soon as there are so many.

    It is read when it has grown, not again and again: a consumer that logs in costs the broker more than a copy does.
    """
    async with asyncio.timeout(PATIENCE):
        rows: list[Row] = []
        read = -1
        while len(rows) < count:
            with contextlib.suppress(KafkaException):  # there may be no such topic yet
                stable = await asyncio.to_thread(_end, cluster, topic, partition, IsolationLevel.READ_COMMITTED)
                if stable > read:
                    rows, read = await asyncio.to_thread(read_rows, cluster, topic, partition), stable
                    continue
            await asyncio.sleep(0.05)
        return rows


_clients: weakref.WeakKeyDictionary[Cluster, tuple[str, AdminClient]] = weakref.WeakKeyDictionary()
"""One for each cluster, since to log in costs more than to ask; and where the cluster was then."""


def _end(cluster: Cluster, topic: str, partition: int, isolation: IsolationLevel) -> int:
    """The end as readers at that level see it.

    Raises:
        KafkaException: nobody leads the partition, or there is none.
    """
    place = TopicPartition(topic, partition)
    asked = {place: OffsetSpec.latest()}
    found = _client(cluster).list_offsets(asked, isolation_level=isolation, request_timeout=PATIENCE)
    try:
        return int(found[place].result(PATIENCE).offset)
    except KafkaException:
        _clients.pop(cluster, None)  # it would ask for ever with the epoch of a former leader
        raise


def _client(cluster: Cluster) -> AdminClient:
    at = cluster.home_bootstrap
    known = _clients.get(cluster)
    if known is None or known[0] != at:
        patient = {"reconnect.backoff.max.ms": 100, "log_level": 0}
        known = _clients[cluster] = (at, AdminClient({**cluster.client_configuration(), **patient}))
    return known[1]


def read_rows(cluster: Cluster, topic: str, partition: int) -> list[Row]:
    """The rows of a partition that a read_committed consumer sees; none for a missing topic."""
    return read_partitions(cluster, [(topic, partition)])[topic, partition]


def read_partitions(cluster: Cluster, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], list[Row]]:
    """The same of many partitions, by one consumer."""
    configuration = {
        **cluster.client_configuration(),
        "group.id": "reader",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "check.crcs": True,
        "topic.metadata.propagation.max.ms": 1,
        "fetch.wait.max.ms": SOON,
    }
    consumer = Consumer(configuration)
    rows: dict[tuple[str, int], list[Row]] = {partition: [] for partition in partitions}
    unread = set(rows)
    try:
        consumer.assign([TopicPartition(*partition, 0) for partition in unread])
        while unread:
            message: Message | None = consumer.poll(PATIENCE)
            assert message is not None, f"{unread} cannot be read to their end"
            partition = message.topic(), message.partition()
            if message.error() is not None:
                assert message.error().name() in ("_PARTITION_EOF", "UNKNOWN_TOPIC_OR_PART"), message.error()
                unread.discard(partition)
            elif partition in unread:
                row = partition[1], message.key(), message.value(), message.headers(), message.timestamp()
                rows[partition].append(row)
    finally:
        consumer.close()
    return rows
