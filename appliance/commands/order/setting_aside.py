"""Records of a T-global, copied within its cluster into a topic of their own, once each.

A copy that was broken off goes on after the records that are there; they must be those that it would have begun with.
"""

from collections.abc import AsyncIterator, Sequence

from appliance.errors import LinkRefused, raise_first
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.configs import LARGEST_BATCH, configs, write_limits
from appliance.kafka.client.fetch import FetchLimits, committed_records, fetch_partition
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets, undecided
from appliance.kafka.client.topics import require_led
from appliance.kafka.client.transactions import Producer, init_producer_id
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.committed import committed
from appliance.kafka.records.legacy import convert
from appliance.kafka.records.outgoing import UNLIMITED, Outgoing, outgoing
from appliance.kafka.records.records import Record
from appliance.link.client.retry import is_loading, retry_while_busy
from appliance.link.client.writer import Writer
from appliance.link.model.naming import ORDER
from appliance.link.model.topic_configs import kept_topic
from appliance.order.model.rebuilding import Aside

_LIMITS = FetchLimits(1024 * 1024, wait=0)


async def counted_records(cluster: Cluster, log: Partition, start: int, end: int) -> int:
    """The number of committed records of a log between two offsets."""
    return sum([batch.records async for batches in _batches(cluster, log, start, end) for batch in batches])


async def set_aside(cluster: Cluster, shown: str, aside: str, asides: Sequence[Aside], timeout: float) -> None:
    """Copy what is to be set aside of a T-global into the topic ``aside``, partition by partition."""
    size = max(each.partition for each in asides) + 1
    settings = (await configs(cluster, [shown])).get(shown, {})
    limits = {LARGEST_BATCH: settings[LARGEST_BATCH]} if LARGEST_BATCH in settings else {}
    wanted = kept_topic(aside, size, -1, limits)
    raise_first((await ConfigFilter(cluster).make([wanted])).failures.values())
    metadata = await retry_while_busy(lambda: require_led(cluster, {aside: size}))
    transactional_id = f"{ORDER}.rebuild"
    # This ends what an earlier try has left.
    producer = await retry_while_busy(lambda: _producer(cluster, transactional_id, timeout), is_loading)
    largest, failures = await write_limits(cluster, {aside})
    raise_first(failures.values())
    for each in asides:
        log, copy = Partition(shown, each.partition), Partition(aside, each.partition)
        writer = Writer(cluster, producer, copy, metadata, timeout, keeps_times=True)
        writer.ends.update(await list_offsets(cluster, metadata, [copy], Bound.END))
        at = await _after_the_same(cluster, log, copy, each)
        async for batches in _batches(cluster, log, at, each.end, largest[aside].batch_bytes):
            if batches:
                await writer.write([[(copy, batch)] for batch in batches], lambda *_: {})


async def _producer(cluster: Cluster, transactional_id: str, timeout: float) -> Producer:
    coordinator = await cluster.coordinator(transactional_id)
    return await init_producer_id(coordinator, transactional_id, timeout)


async def _after_the_same(cluster: Cluster, log: Partition, copy: Partition, aside: Aside) -> int:
    """The offset after the records that the copy has already."""
    metadata = await cluster.metadata([copy.topic])
    stable_end = (await list_offsets(cluster, metadata, [copy], Bound.STABLE_END))[copy]
    end = (await list_offsets(cluster, metadata, [copy], Bound.END))[copy]
    if stable_end < end:
        raise undecided(copy, end)
    at, originals = aside.start, _records(cluster, log, aside.start, aside.end)
    async for there in _records(cluster, copy, 0, end):
        original = await anext(originals, None)
        if original is None or (original.timestamp, original.body) != (there.timestamp, there.body):
            raise LinkRefused(f"{copy.topic} has other records already: delete it, once nobody needs them")
        at = original.offset + 1
    return at


async def _records(cluster: Cluster, log: Partition, at: int, end: int) -> AsyncIterator[Record]:
    metadata = await cluster.metadata([log.topic])
    while at < end:
        fetched = await fetch_partition(cluster, metadata, log, at, "rebuild", _LIMITS)
        records, following = committed_records(fetched, at)
        if following == at:
            raise undecided(log, end)
        at = following
        for record in records:
            if record.offset < end:
                yield record


async def _batches(
    cluster: Cluster, log: Partition, at: int, end: int, limit: int = UNLIMITED
) -> AsyncIterator[Sequence[Outgoing]]:
    """The committed batches of a log between two offsets, Fetch by Fetch."""
    metadata = await cluster.metadata([log.topic])
    while at < end:
        fetched = await fetch_partition(cluster, metadata, log, at, "rebuild", _LIMITS)
        batches = list(fetched.batches(convert))
        if not batches:
            raise undecided(log, end)
        yield tuple(outgoing(committed(batches, fetched.aborted), at, limit, end))
        at = batches[-1].header.last_offset + 1
