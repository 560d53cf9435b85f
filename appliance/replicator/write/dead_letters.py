"""The topics of the records that the link's SQL fails on: one for each copy, with the copy's partitions.

A lane makes them when it first needs them, and owns in them the partitions that it owns in the copies. Their records
commit in the transaction that moves the positions past them.
"""

from collections.abc import Iterable, Mapping

from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.topics import NewTopic, create_topics, grow_topics
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.model.naming import DEAD_LETTERS
from appliance.replicator.model.chunk import Chunk
from appliance.replicator.write.lane import Lane


def dead_letters(chunks: Iterable[Chunk]) -> Mapping[Partition, list[Record]]:
    """The dead letters of chunks, by their partition."""
    found: dict[Partition, list[Record]] = {}
    for chunk in chunks:
        if chunk.dead_letters:
            topic, partition = chunk.replica.copy
            found.setdefault((topic + DEAD_LETTERS, partition), []).extend(
                letter.record for letter in chunk.dead_letters
            )
    return found


async def make_room(lane: Lane, destination: Cluster, chunks: Iterable[Chunk]) -> None:
    """Make the topics of these chunks' dead letters, or grow them, and let the started lane learn their leaders.

    Raises:
        BrokerBusy: a partition has no leader yet, or its leader has not made it yet.
        ApplianceError: a topic cannot be made or grown.
    """
    wanted = dead_letters(chunks)
    if not wanted or all(lane.knows_leader(partition) for partition in wanted):
        return
    copies = {topic: topic.removesuffix(DEAD_LETTERS) for topic, _ in wanted}
    found = await destination.metadata([*copies, *copies.values()])
    sizes = {topic: len(found.topics[copy].leaders) for topic, copy in copies.items() if copy in found.topics}
    known = {topic: len(found.topics[topic].leaders) for topic in sizes if topic in found.topics}
    missing = [NewTopic(topic, size, -1, {}) for topic, size in sizes.items() if topic not in known]
    if missing:
        for error in (await create_topics(destination, missing)).failures.values():
            raise error
    if smaller := {topic: sizes[topic] for topic, count in known.items() if count < sizes[topic]}:
        for error in (await grow_topics(destination, smaller)).values():
            raise error
    await list_offsets(destination, await lane.learn(copies), list(wanted), Bound.END)
