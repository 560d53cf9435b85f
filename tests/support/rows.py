"""What a consumer reads of a partition, and how far it goes."""

from collections.abc import Iterable

from confluent_kafka import Consumer, Message, TopicPartition

from testbed.cluster import Cluster
from tests.support.patience import PATIENCE

SOON = 10
"""Milliseconds that a broker waits for news before it says that there are none; else 500."""

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, tuple[int, int]]
"""What must be the same on both sides of a record: partition, key, value, headers, timestamp with its type."""


def end(cluster: Cluster, topic: str, partition: int) -> int:
    """The high watermark, past what is open or has just been decided, too."""
    configuration = {"group.id": "watermarks", "isolation.level": "read_uncommitted"}
    consumer = Consumer({**cluster.client_configuration(), **configuration})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE)[1])
    finally:
        consumer.close()


def read_rows(cluster: Cluster, topic: str, partition: int) -> list[Row]:
    """All that a read_committed consumer sees of a partition; nothing of a topic that is not there."""
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
