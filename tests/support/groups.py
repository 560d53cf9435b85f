"""Groups of every kind, created and read by independent clients."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)

from testbed.cluster import Cluster
from tests.support.administration import administrator
from tests.support.patience import PATIENCE

CLASSIC, CONSUMER = "classic", "consumer"
Partition = tuple[str, int]


def produce_numbered(producer: Producer, topic: str, count: int, partition: int = 0, first: int = 0) -> list[bytes]:
    """Produce records with different values; return the values."""
    values = [b"%d of %d" % (number, partition) for number in range(first, first + count)]
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(PATIENCE) == 0
    return values


def consumer(cluster: Cluster, group: str, protocol: str = CLASSIC) -> Consumer:
    """A consumer without a subscription; if its group has no offset, it begins with the first record."""
    own = {"group.id": group, "group.protocol": protocol, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    soon = {"isolation.level": "read_committed", "fetch.wait.max.ms": 10}
    return Consumer({**cluster.client_configuration(), **own, **soon})


@contextlib.contextmanager
def member(cluster: Cluster, group: str, topic: str, protocol: str = CLASSIC) -> Iterator[Consumer]:
    """A member of a group, with partitions of a topic assigned."""
    joined = consumer(cluster, group, protocol)
    try:
        joined.subscribe([topic])
        deadline = time.monotonic() + PATIENCE
        while not joined.assignment():
            assert time.monotonic() < deadline, f"{group} got no partition of {topic}"
            joined.poll(0.05)
        yield joined
    finally:
        joined.close()


def consume(
    cluster: Cluster, group: str, topic: str, count: int, protocol: str = CLASSIC, note: str = ""
) -> list[bytes]:
    """Read this number of further records as a member of a group, and commit; return the values."""
    values = []
    joined = consumer(cluster, group, protocol)
    try:
        joined.subscribe([topic])
        last: dict[Partition, tuple[int, int | None]] = {}
        while len(values) < count:
            message = joined.poll(PATIENCE)
            assert message is not None, f"{group} has read {len(values)} of {count} records of {topic}"
            assert message.error() is None, message.error()
            values.append(message.value())
            last[topic, message.partition()] = message.offset() + 1, message.leader_epoch()
        commits = [
            TopicPartition(*key, offset, note, -1 if epoch is None else epoch) for key, (offset, epoch) in last.items()
        ]
        joined.commit(offsets=commits, asynchronous=False)
    finally:
        joined.close()
    return values


def commit(cluster: Cluster, group: str, offsets: dict[Partition, int]) -> None:
    """Commit offsets from outside of a group, as an operator does."""
    admin = administrator(cluster)
    wanted = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]
    request = [ConsumerGroupTopicPartitions(group, wanted)]
    wait_for_coordinator(cluster, group)
    for change in admin.alter_consumer_group_offsets(request).values():
        refused = [each for each in change.result(PATIENCE).topic_partitions if each.error]
        assert not refused, refused


def committed(cluster: Cluster, group: str) -> dict[Partition, tuple[int, str]]:
    """The committed offsets of a consumer group, each with its metadata.

    librdkafka does not terminate the metadata's text, so its Python client reads beyond it. Another client is used
    here.
    """
    wait_for_coordinator(cluster, group)
    with ThreadPoolExecutor(1) as pool:  # in a thread, because the caller may be in an event loop
        return pool.submit(asyncio.run, _committed(cluster, group)).result(PATIENCE)


async def _committed(cluster: Cluster, group: str) -> dict[Partition, tuple[int, str]]:
    admin = AIOKafkaAdminClient(bootstrap_servers=",".join(map(str, cluster.home_targets)))
    await admin.start()
    try:
        found = await admin.list_consumer_group_offsets(group)
    finally:
        await admin.close()
    # librdkafka commits the text with its terminating zero byte.
    return {tuple(key): (each.offset, each.metadata.rstrip("\0")) for key, each in found.items() if each.offset >= 0}


_COORDINATOR_COMES = {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError._TIMED_OUT}


def wait_for_coordinator(cluster: Cluster, group: str) -> None:
    """Wait until a coordinator answers for a group, existing or not; a new cluster has none at first."""
    deadline = time.monotonic() + PATIENCE
    asking = consumer(cluster, group)
    try:
        while True:
            try:
                asking.committed([TopicPartition("any", 0)], 5)
                return
            except KafkaException as error:
                if error.args[0].code() not in _COORDINATOR_COMES or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
    finally:
        asking.close()


def delete_group(cluster: Cluster, group: str) -> None:
    """Delete a group that has no member."""
    admin = administrator(cluster)
    for deletion in admin.delete_consumer_groups([group]).values():
        deletion.result(PATIENCE)


def share(cluster: Cluster, group: str, topic: str, count: int) -> list[bytes]:
    """Read and acknowledge this number of records as the only member of a share group; return the values."""
    values: list[bytes] = []
    own = {"group.id": group, "share.acknowledgement.mode": "explicit"}
    joined = ShareConsumer({**cluster.client_configuration(), **own})
    try:
        joined.subscribe([topic])
        deadline = time.monotonic() + PATIENCE
        while len(values) < count:
            assert time.monotonic() < deadline, f"{group} has read {len(values)} of {count} records of {topic}"
            for message in joined.poll(0.2):
                assert message.error() is None, message.error()
                values.append(message.value())
                joined.acknowledge(message)
        refused = {partition: error for partition, error in joined.commit_sync(PATIENCE).items() if error}
        assert not refused, refused
    finally:
        joined.close()
    return values
