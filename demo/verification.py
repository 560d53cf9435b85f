"""The comparison of both sides, record by record, as independent consumers read them."""

import asyncio
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from appliance.errors import Unreachable
from testbed.comparison import Differences, Track, compare
from testbed.reading import Partition, Reading, read
from testbed.tasks import Reached, in_thread

_ADMIN_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class CopyCheck:
    """The result of comparing both sides: the source's records and bytes, and the differences."""

    records: int
    bytes: int
    differences: Differences
    unasked: tuple[str, ...]


async def verify(
    source: Mapping[str, str],
    destination: Mapping[str, str],
    copies: Mapping[str, str],
    further: Iterable[str],
    reached: Reached,
) -> CopyCheck:
    """Compare each topic with its copy, partition by partition.

    Args:
        source: configuration that reaches the source cluster.
        destination: configuration that reaches the destination cluster.
        copies: the name of each source topic's copy.
        further: topics that the destination may have besides the copies and Kafka's own.
        reached: called with the number of records read so far, of both sides together.

    Raises:
        Unreachable: a cluster did not answer.
    """
    counts, copy_counts = await asyncio.gather(_partitions(source), _partitions(destination))
    partitions = [(topic, number) for topic in copies for number in range(counts.get(topic, 0))]
    copied = [(copy, number) for copy in copies.values() for number in range(copy_counts.get(copy, 0))]
    read_source = await in_thread(functools.partial(read, source, partitions, reached))
    read_destination = await in_thread(
        functools.partial(read, destination, copied, lambda count: reached(read_source.records + count))
    )
    expected = {*copies.values(), *further}
    unasked = tuple(sorted(topic for topic in copy_counts if topic not in expected and topic[:2] != "__"))
    differences = _compared(read_source, read_destination, copies)
    return CopyCheck(read_source.records, read_source.bytes, differences, unasked)


def _compared(source: Reading, destination: Reading, copies: Mapping[str, str]) -> Differences:
    originals = {copy: topic for topic, copy in copies.items()}
    partitions: set[Partition] = {*source.tracks, *((originals[copy], number) for copy, number in destination.tracks)}
    found = Differences()
    for topic, number in sorted(partitions):
        original = source.tracks.get((topic, number), Track())
        found += compare(topic, number, original, destination.tracks.get((copies[topic], number), Track()))
    return found


async def _partitions(client: Mapping[str, str]) -> dict[str, int]:
    """The number of partitions of each topic of a cluster."""
    try:
        metadata = await asyncio.to_thread(AdminClient({**client}).list_topics, timeout=_ADMIN_SECONDS)
    except KafkaException as error:
        raise Unreachable(f"the topics could not be listed: {error.args[0]}") from error
    return {name: len(topic.partitions) for name, topic in metadata.topics.items()}
