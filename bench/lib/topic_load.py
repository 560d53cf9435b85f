"""A thousand topics of ten partitions each at the source, and their visible copies."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence

from confluent_kafka import OFFSET_END, Producer, TopicPartition

from appliance.clock import deadline
from appliance.errors import ApplianceError, ProcessFailed
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.topics import NewTopic
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition
from appliance.settings.values import Side
from bench.lib.clients import ERRORS_ONLY, Refused, drain, kafka_errors_as, reader
from bench.lib.clusters import Pair, kafka_cluster, make_topics
from testbed.cluster import Cluster
from testbed.process import OwnedProcess
from testbed.tasks import end

PARTITIONS = 10
PATTERN = "many-.*"
RECORDS_A_SECOND = 10
"""Records a second for each topic: one in each partition."""

_DEADLINE = 300.0
_METADATA_SECONDS = 10.0
_INTERVAL = 0.5
_TURN = 0.02
_AT_ONCE = 1_000
_SAMPLED = 100
_VALUE = b"x" * 100


def named(numbers: Collection[int]) -> list[str]:
    """The names of the topics with these numbers."""
    return [f"many-{number}" for number in numbers]


async def make(cluster: Cluster, topics: Collection[str]) -> None:
    """Create the topics, and write one record to each of their partitions."""
    made = [Partition(name, partition) for name in topics for partition in range(PARTITIONS)]
    async with (
        deadline(_DEADLINE, f"{len(topics)} topics were not made", ProcessFailed),
        kafka_cluster(cluster, Side.SOURCE) as source,
    ):
        await make_topics(source, [NewTopic(name, PARTITIONS, 1, {}) for name in topics])
        known = await source.metadata(None)
        while not _all_led(known, made):
            await asyncio.sleep(_interval(len(made)))
            known = await source.metadata(None)
        await _write_each(await _producer(cluster), made)


async def _write_each(producer: Producer, partitions: Collection[Partition]) -> None:
    refused = Refused()
    for topic, partition in partitions:
        producer.produce(topic, _VALUE, partition=partition, on_delivery=refused)
        await asyncio.sleep(0)
    await drain(producer)
    with kafka_errors_as("the source did not take all of the first records"):
        refused.check()


async def arrived(cluster: Cluster, copies: Collection[str], copying: OwnedProcess) -> float:
    """Wait until each partition of the copies holds a committed record; return the time of ``perf_counter``."""
    missing = {Partition(copy, partition) for copy in copies for partition in range(PARTITIONS)}
    try:
        async with kafka_cluster(cluster, Side.DESTINATION) as destination, asyncio.timeout(_DEADLINE):
            while missing:
                copying.require_running()
                missing -= (await offsets(destination, missing)).keys()
                await asyncio.sleep(_interval(len(missing)))
    except TimeoutError as error:
        raise copying.failure(f"left {len(missing)} partitions without a record after {_DEADLINE:g} s") from error
    return time.perf_counter()


def _interval(partitions: int) -> float:
    """Seconds between two queries about ``partitions`` partitions; each query costs the brokers time."""
    return _TURN if partitions <= PARTITIONS else _INTERVAL


async def offsets(cluster: KafkaCluster, partitions: Collection[Partition]) -> dict[Partition, int]:
    """The last stable offsets of the partitions with records; none while the cluster is busy."""
    try:
        known = await cluster.metadata(None)
        led = [partition for partition in partitions if known.leader(*partition) != NOBODY]
        ends = await list_offsets(cluster, known, led, Bound.STABLE_END)
    except ApplianceError as error:
        if not error.retriable:
            raise
        return {}
    return {partition: offset for partition, offset in ends.items() if offset > 0}


def _all_led(known: Metadata, partitions: Iterable[Partition]) -> bool:
    return all(known.leader(*partition) != NOBODY for partition in partitions)


@contextlib.asynccontextmanager
async def load(pair: Pair, copies: Mapping[str, str]) -> AsyncIterator[list[float]]:
    """Write a record to each partition, and then ten a second to each topic while the block runs.

    ``copies`` are by topic. Yields, for each record of a sample, the seconds from its writing until it was seen at the
    destination.
    """
    delays: list[float] = []
    partitions = [Partition(name, number) for number in range(PARTITIONS) for name in copies]
    sampled = [TopicPartition(copy, n % PARTITIONS, OFFSET_END) for n, copy in enumerate(copies.values())]
    producer = await _producer(pair.source)
    await _write_each(producer, partitions)
    flowing = asyncio.create_task(_flow(producer, partitions), name="load")
    sampling = asyncio.create_task(_sample(pair.destination, sampled[:_SAMPLED], delays), name="sample")
    try:
        yield delays
    finally:
        await end(flowing)
        await end(sampling)


async def _flow(producer: Producer, partitions: Sequence[Partition]) -> None:
    """Write to one partition after the other, evenly, so that each gets one record a second."""
    clock = asyncio.get_running_loop().time
    began, written = clock(), 0
    while True:
        due = int((clock() - began) * len(partitions) * RECORDS_A_SECOND / PARTITIONS)
        for number in range(written, due):
            topic, partition = partitions[number % len(partitions)]
            producer.produce(topic, _VALUE, partition=partition)
        written = due
        producer.poll(0)
        await asyncio.sleep(_TURN)


async def _sample(cluster: Cluster, partitions: list[TopicPartition], delays: list[float]) -> None:
    """The ages of these partitions' records when they are seen."""
    with contextlib.closing(reader(cluster.client_configuration(), partitions)) as consumer:
        while True:
            messages = [message for message in consumer.consume(_AT_ONCE, 0) if message.error() is None]
            delays += [time.time() - message.timestamp()[1] / 1000 for message in messages]
            await asyncio.sleep(_TURN)


async def _producer(cluster: Cluster) -> Producer:
    """A producer that knows all topics; otherwise it would request them one by one, for half a minute."""
    tuned: dict[str, str | int | bool] = {
        **ERRORS_ONLY,
        "linger.ms": 5,
        "queue.buffering.max.messages": 1_000_000,
        "topic.metadata.propagation.max.ms": int(_DEADLINE * 1000),
    }
    producer = Producer({**cluster.client_configuration(), **tuned})
    with kafka_errors_as(f"cluster {cluster.plan.name} does not list its topics"):
        await asyncio.to_thread(producer.list_topics, timeout=_METADATA_SECONDS)
    return producer
