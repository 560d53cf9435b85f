"""The load: records that are written to the source before the copy begins."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from confluent_kafka import Producer

from appliance.clock import deadline
from appliance.errors import ProcessFailed
from appliance.settings.values import Side
from bench.lib import cards, compacting, interleaving, raw_batches
from bench.lib.clients import ERRORS_ONLY, Refused, drain, kafka_errors_as
from bench.lib.clusters import kafka_cluster, make_topic
from bench.lib.events import events
from bench.lib.interleaving import Record
from bench.lib.progress import progress
from testbed.cluster import Cluster

_DEADLINE = 600.0
_AT_ONCE = 5_000
_TINY, _TOLERANCE = 16, 1.05
_QUEUED_MAX = 100_000
_DISTINCT_VALUES = 4_096
"""Number of different values, which are written repeatedly: more than fit into the codec's window."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load: ``records`` keyed records, partitioned by their keys; their values are ``events``.

    The producer's batches hold at most ``batch_bytes``, uncompressed, and ``batch_records``. If ``transactional``, the
    transactions overlap, and every fifth is aborted. With ``keys``, there are that many different keys and the topic is
    compacted; otherwise no two records have the same key. With ``apart`` n, only each n-th partition has records. With
    ``cards``, the values are ``card_events``, and have their headers.
    """

    records: int
    topic: str = "measured"
    partitions: int = 4
    value_bytes: int = 500
    codec: str = "lz4"
    batch_bytes: int = 128 * 1024
    batch_records: int = 10_000
    transactional: bool = False
    keys: int = 0
    apart: int = 1
    cards: bool = False

    @property
    def visible(self) -> int:
        """The number of records that a consumer at ``read_committed`` sees."""
        if self.transactional:
            return interleaving.visible(self.records)
        return compacting.visible(self.records, self.keys, self.partitions) if self.keys else self.records


async def fill(cluster: Cluster, load: Load) -> None:
    """Create the topic, and write all of ``load`` to it."""
    with kafka_errors_as(f"topic {load.topic} could not be filled"):
        async with deadline(_DEADLINE, f"{load.records} records were not written", ProcessFailed):
            await make_topic(cluster, load.topic, load.partitions, compacting.CONFIGS if load.keys else {})
            await write(cluster, load)
            if load.keys:
                await _compact(cluster, load)
    async with kafka_cluster(cluster, Side.SOURCE) as source:
        shape = await raw_batches.shape(source, load.topic)
    if load.batch_records <= _TINY and shape.batches * load.batch_records > _TOLERANCE * shape.records:
        raise ProcessFailed(f"topic {load.topic} has {shape.records} records in {shape.batches} batches")
    progress("topic filled", topic=load.topic, **shape._asdict())


def _records(load: Load) -> Iterator[Record]:
    values = (cards.card_events if load.cards else events)(_DISTINCT_VALUES, load.value_bytes)
    keys = compacting.keys(load.records, load.keys) if load.keys else range(load.records)
    busy, together = range(0, load.partitions, load.apart), cards.EVERY if load.cards else 1
    return (
        (values[number % len(values)], b"%d" % key, busy[key // together % len(busy)])
        for number, key in enumerate(keys)
    )


async def write(cluster: Cluster, load: Load) -> None:
    """Write all of ``load`` to its topic, which is there."""
    client = cluster.client_configuration() | _tuning(load)
    if load.transactional:
        await interleaving.write(client, load.topic, _records(load))
    else:
        await _write_all(Producer(client), load, _records(load))


async def _compact(cluster: Cluster, load: Load) -> None:
    await compacting.segments_may_roll()
    last = [(b"last", b"last", partition) for partition in range(load.partitions)]
    await _write_all(Producer(cluster.client_configuration() | _tuning(load)), load, last)
    await compacting.clean(cluster, load.topic, load.visible)


def _tuning(load: Load) -> dict[str, str | int | bool]:
    return {
        **ERRORS_ONLY,
        "compression.type": load.codec,
        "batch.size": load.batch_bytes,
        "batch.num.messages": load.batch_records,
        "linger.ms": 20,
        "enable.idempotence": True,
        "queue.buffering.max.messages": _QUEUED_MAX,
        "delivery.report.only.error": True,
    }


async def _write_all(producer: Producer, load: Load, records: Iterable[Record]) -> None:
    """Write in pieces, so that Ctrl-C takes effect between them."""
    refused, source = Refused(), iter(records)
    while piece := list(itertools.islice(source, _AT_ONCE)):
        for value, key, partition in piece:
            headers = cards.headers(value) if load.cards else []
            producer.produce(load.topic, value, key, partition, on_delivery=refused, headers=headers)
        await drain(producer, down_to=_QUEUED_MAX - _AT_ONCE)
    await drain(producer)
    refused.check()
