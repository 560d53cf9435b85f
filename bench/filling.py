"""The records that are copied, written to the source before anybody copies."""

import asyncio
import logging
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Producer

from appliance.demo.cluster import Cluster
from appliance.errors import ProcessFailed
from appliance.kafka.topics import NewTopic, create_topics
from appliance.settings.values import Side
from bench.clusters import kafka_cluster
from bench.events import events

_DEADLINE = 600.0
_AT_ONCE = 5_000
_ERRORS_ONLY = 3
_QUEUED_MAX = 100_000
_POLL_SECONDS = 0.01
_DISTINCT_VALUES = 4_096
"""Written over and over: too many for the codec's window to hold a repetition."""

log = logging.getLogger("appliance.bench")


@dataclass(frozen=True, slots=True)
class Load:
    """What is to be copied: ``records`` keyed ones, dealt to the partitions in turn; their values are ``events``.

    ``batch_bytes`` is the batch size of the producer that writes them, uncompressed.
    """

    records: int
    topic: str = "measured"
    partitions: int = 4
    value_bytes: int = 500
    codec: str = "lz4"
    batch_bytes: int = 128 * 1024


async def fill(cluster: Cluster, load: Load) -> None:
    """Makes the topic and writes all of ``load`` to it.

    Raises:
        ProcessFailed: the cluster refused something, or did not take it all in time.
    """
    try:
        async with asyncio.timeout(_DEADLINE):
            await _make_topic(cluster, load)
            await _write(_producer(cluster, load), load)
    except KafkaException as error:
        raise ProcessFailed(f"topic {load.topic} could not be filled: {error}") from error
    except TimeoutError as error:
        raise ProcessFailed(f"{load.records} records were not written within {_DEADLINE:g} s") from error
    log.info("topic filled", extra={"fields": {"topic": load.topic, "records": load.records}})


async def _make_topic(cluster: Cluster, load: Load) -> None:
    async with kafka_cluster(cluster, Side.SOURCE) as source:
        failures = await create_topics(source, [NewTopic(load.topic, load.partitions, cluster.plan.replicas, {})])
    for error in failures.values():
        raise error


def _producer(cluster: Cluster, load: Load) -> Producer:
    tuned: dict[str, str | int | bool] = {
        "log_level": _ERRORS_ONLY,
        "compression.type": load.codec,
        "batch.size": load.batch_bytes,
        "linger.ms": 20,
        "enable.idempotence": True,
        "queue.buffering.max.messages": _QUEUED_MAX,
        "delivery.report.only.error": True,
    }
    return Producer({**cluster.client_configuration(), **tuned})


async def _write(producer: Producer, load: Load) -> None:
    """Piece by piece, so that Ctrl-C is heard in between."""
    failures: list[KafkaError] = []

    def failed(error: KafkaError | None, _message: object) -> None:
        failures.extend([error] if error else [])

    values = events(_DISTINCT_VALUES, load.value_bytes)
    for first in range(0, load.records, _AT_ONCE):
        for number in range(first, min(first + _AT_ONCE, load.records)):
            value = values[number % len(values)]
            producer.produce(load.topic, value, b"%d" % number, number % load.partitions, on_delivery=failed)
        await _drain(producer, down_to=_QUEUED_MAX - _AT_ONCE)
    await _drain(producer, down_to=0)
    if failures:
        raise KafkaException(failures[0])


async def _drain(producer: Producer, down_to: int) -> None:
    """Returns when no more than ``down_to`` records wait to be written."""
    while len(producer) > down_to:
        producer.poll(_POLL_SECONDS)
        await asyncio.sleep(0)
