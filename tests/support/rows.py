"""The rows that a consumer reads from a partition, and the partition's end."""

import asyncio
import contextlib
import time
from collections.abc import Iterable

from confluent_kafka import Consumer, IsolationLevel, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec

from appliance.kafka.protocol.metadata import Partition
from testbed.cluster import Cluster
from tests.support.administration import administrator, forget_administrator
from tests.support.patience import PATIENCE

SOON = 10
"""Milliseconds that a broker waits for records before it answers without any; 500 by default."""

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, tuple[int, int]]
"""A record's facts that must be equal on both sides: partition, key, value, headers, timestamp with its type."""


def end(cluster: Cluster, topic: str, partition: int) -> int:
    """The high watermark, which is also after open and just ended transactions."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return _end(cluster, topic, partition, IsolationLevel.READ_UNCOMMITTED)
        except KafkaException:  # perhaps it has no leader yet
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def wait_until_decided(cluster: Cluster, topic: str, partition: int = 0) -> None:
    """Return when the markers of all transactions are in the log: a commit is answered before they are written."""
    deadline = time.monotonic() + PATIENCE
    while _end(cluster, topic, partition, IsolationLevel.READ_COMMITTED) < end(cluster, topic, partition):
        assert time.monotonic() < deadline, f"{topic}-{partition} has an open transaction"
        time.sleep(0.01)


async def until_rows(cluster: Cluster, topic: str, count: int, partition: int = 0) -> list[Row]:
    """The rows of a partition, once there are this many.

    It is read only after it has grown, because a consumer's login costs the broker more than a copy.
    """
    async with asyncio.timeout(PATIENCE):
        rows: list[Row] = []
        read = -1
        while len(rows) < count:
            with contextlib.suppress(KafkaException):  # the topic may not exist yet
                stable = await asyncio.to_thread(_end, cluster, topic, partition, IsolationLevel.READ_COMMITTED)
                if stable > read:
                    rows, read = await asyncio.to_thread(read_rows, cluster, topic, partition), stable
                    continue
            await asyncio.sleep(0.05)
        return rows


def _end(cluster: Cluster, topic: str, partition: int, isolation: IsolationLevel) -> int:
    """The end for readers at this isolation level.

    Raises:
        KafkaException: the partition has no leader, or does not exist.
    """
    place = TopicPartition(topic, partition)
    asked = {place: OffsetSpec.latest()}
    found = administrator(cluster).list_offsets(asked, isolation_level=isolation, request_timeout=PATIENCE)
    try:
        return int(found[place].result(PATIENCE).offset)
    except KafkaException:
        forget_administrator(cluster)
        raise


def read_rows(cluster: Cluster, topic: str, partition: int) -> list[Row]:
    """The rows of a partition that a read_committed consumer sees; none for a missing topic."""
    return read_partitions(cluster, [Partition(topic, partition)])[topic, partition]


def read_partitions(cluster: Cluster, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], list[Row]]:
    """The rows of many partitions, by one consumer."""
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


def contents(cluster: Cluster, topic: str, partition: int = 0) -> list[tuple[int, str]]:
    """The offset and value of each committed record of a partition."""
    consumer = Consumer({**cluster.client_configuration(), "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[tuple[int, str]] = []
    try:
        while True:
            message = consumer.poll(PATIENCE)
            assert message is not None
            if message.error() is not None:
                return found
            found.append((message.offset() or 0, bytes(message.value() or b"").decode()))
    finally:
        consumer.close()
