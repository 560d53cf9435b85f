"""The topics of the records that the link's SQL fails on: one for each copy, with the copy's partitions.

A lane makes them when it first needs them, and owns in them the partitions that it owns in the copies. Their records
commit in the transaction that moves the positions past them. What such a topic does not take holds back its own
partition alone.
"""

from collections.abc import Iterable, Mapping

from kio.schema.errors import ErrorCode

from appliance.engine.model.chunk import Chunk, dead_letters_of
from appliance.engine.write.lane import Lane
from appliance.errors import ApplianceError, PartitionsUnavailable
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.configs import LARGEST_BATCH, WriteLimits, alter_configs, write_limits
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.client.topics import NewTopic, grow_topics
from appliance.kafka.protocol.answer import failure
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition
from appliance.kafka.records.outgoing import UNLIMITED

HEADERS_BYTES = 16 * 1024
"""Bytes by which such a topic takes larger batches than the copy. The headers have up to 2.5 KB; the rest is for codecs
that compress a little less here than at the producer."""


async def make_room(lane: Lane, chunks: Iterable[Chunk], limits: dict[str, WriteLimits]) -> None:
    """Make the topics of these chunks' dead letters, or grow them, and let the started lane learn their leaders.

    Keeps their ``limits``, and looks again once a batch exceeds them.

    Raises:
        PartitionsUnavailable: some topics cannot be made, grown or written now.
    """
    largest: dict[Partition, int] = {}
    copies: dict[str, str] = {}
    for chunk in chunks:
        for batch in chunk.dead_letters:
            place = dead_letters_of(chunk.replica)
            largest[place] = max(largest.get(place, 0), len(batch.data))
            copies[place[0]] = chunk.replica.destination_topic
    if all(
        lane.writer.metadata.leader(*place) != NOBODY
        and (place[0] not in limits or size <= limits[place[0]].batch_bytes)
        for place, size in largest.items()
    ):
        return
    destination = lane.cluster
    metadata = await destination.metadata([*copies, *copies.values()])
    failures = await _make(destination, metadata, copies)
    led = [place for place in largest if place[0] not in failures]
    _, leaderless = await try_offsets(destination, await lane.learn(copies), led, Bound.END)
    unavailable = {place: failures[place[0]] for place in largest if place[0] in failures} | leaderless
    if unavailable:
        raise PartitionsUnavailable(unavailable)
    limits |= await raised_limits(destination, copies)


async def _make(destination: Cluster, metadata: Metadata, copies: Mapping[str, str]) -> dict[str, ApplianceError]:
    """Make or grow the topics, as the copies are in these metadata; the errors of topics, by name."""
    sizes = {topic: len(metadata.topics[copy].leaders) for topic, copy in copies.items() if copy in metadata.topics}
    counts = {topic: len(metadata.topics[topic].leaders) for topic in sizes if topic in metadata.topics}
    failures = {
        topic: failure(metadata.topics[topic].error, f"look for {topic}")
        for topic in counts
        if metadata.topics[topic].error is not ErrorCode.none
    }
    if missing := [topic for topic in sizes if topic not in counts]:
        limits, _ = await write_limits(destination, [copies[topic] for topic in missing])
        configs = {
            topic: {LARGEST_BATCH: str(_room(limits[copies[topic]]))} for topic in missing if copies[topic] in limits
        }
        new = [NewTopic(topic, sizes[topic], -1, configs.get(topic, {})) for topic in missing]
        failures |= (await ConfigFilter(destination).make(new)).failures
    smaller = {topic: sizes[topic] for topic, count in counts.items() if count < sizes[topic] and topic not in failures}
    if smaller:
        failures |= await grow_topics(destination, smaller)
    return failures


async def raised_limits(destination: Cluster, copies: Mapping[str, str]) -> dict[str, WriteLimits]:
    """The limits of these topics, and of the copy of each; those that take less than the copies and the headers rise.

    A limit that is unknown is left out. A raised one is returned by a later call: not every broker knows it at once.
    """
    limits, _ = await write_limits(destination, [*copies, *copies.values()])
    least = {topic: _room(limits[copy]) for topic, copy in copies.items() if copy in limits}
    low = {topic: size for topic, size in least.items() if topic in limits and limits[topic].batch_bytes < size}
    if low:
        await alter_configs(destination, {topic: {LARGEST_BATCH: str(size)} for topic, size in low.items()})
    return limits


def _room(copy: WriteLimits) -> int:
    return min(copy.batch_bytes + HEADERS_BYTES, UNLIMITED)
