"""A compacted topic with holes, in which Kafka's cleaner has left the newest record of each key."""

import asyncio
import random
from collections.abc import Iterator, Mapping

from appliance.errors import ProcessFailed
from appliance.kafka.client.configs import alter_configs
from appliance.settings.values import Side
from bench.lib.clusters import kafka_cluster, raise_first
from bench.lib.raw_batches import shape
from testbed.cluster import Cluster

_SEED = 6
_DEADLINE = 240.0
_LOOK_SECONDS = 1.0
_SEGMENT_SECONDS = 1.0

CONFIGS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "segment.ms": str(int(_SEGMENT_SECONDS * 1000)),
}
"""Topic settings: one segment a second, cleaned as soon as the next one begins."""

_NEVER_AGAIN = {"min.cleanable.dirty.ratio": "1.0", "segment.ms": None}


def keys(records: int, distinct: int) -> Iterator[int]:
    """The keys of ``records`` records, drawn from ``distinct`` keys; always the same."""
    source = random.Random(_SEED)
    return (source.randrange(distinct) for _ in range(records))


def visible(records: int, distinct: int, partitions: int) -> int:
    """The number of records left after compaction: one for each drawn key, and each partition's last one."""
    return len(set(keys(records, distinct))) + partitions


async def segments_may_roll() -> None:
    """Wait until the next record begins a segment, because only earlier segments are cleaned."""
    await asyncio.sleep(2 * _SEGMENT_SECONDS)


async def clean(cluster: Cluster, topic: str, left: int) -> None:
    """Wait until the topic holds ``left`` records, with holes between them; it is not cleaned any more."""
    records = offsets = 0
    try:
        async with asyncio.timeout(_DEADLINE), kafka_cluster(cluster, Side.SOURCE) as client:
            while records != left:
                await asyncio.sleep(_LOOK_SECONDS)
                records, offsets, _ = await shape(client, topic)
            raise_first((await alter_configs(client, {topic: _NEVER_AGAIN})).values())
    except TimeoutError as error:
        raise ProcessFailed(f"topic {topic} has {records} records and not {left} after {_DEADLINE:g} s") from error
    if offsets <= records:
        raise ProcessFailed(f"topic {topic} has no holes: {records} records on {offsets} offsets")
