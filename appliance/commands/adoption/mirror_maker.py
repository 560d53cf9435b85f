"""MirrorMaker 2 as its clusters know it: its committed source offsets, and whether it still runs.

In dedicated mode its worker has the group ``<source>-mm2`` at the destination, and its offsets are in the topic
``mm2-offsets.<source>.internal`` there. In a Connect cluster both have the names of that cluster's worker. Its source
consumers are in no group, and its producers have no id unless it copies exactly once: then a task's transactional id
is ``<group>-<connector>-<task>``, and a transaction of a killed task stays open until its timeout.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from appliance.commands.adoption.model.connect_offsets import ConnectOffsets
from appliance.errors import LinkRefused, raise_first
from appliance.kafka.client.compacted_log import CompactedLog
from appliance.kafka.client.groups import list_groups
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.open_transactions import open_transactions
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records.records import Record

_ANSWER = "stop MirrorMaker 2, wait until its session or transaction has timed out, and run this again"


@dataclass(frozen=True, slots=True)
class MirrorMaker:
    """The names of a MirrorMaker 2: the source's alias, its worker's group, its topic of offsets.

    ``connector`` is the name of its source connector; empty for any.
    """

    alias: str
    group: str = ""
    offsets_topic: str = ""
    connector: str = ""

    @property
    def workers(self) -> str:
        """The group of its workers."""
        return self.group or f"{self.alias}-mm2"

    @property
    def offsets(self) -> str:
        """The topic of its committed offsets."""
        return self.offsets_topic or f"mm2-offsets.{self.alias}.internal"


async def committed_offsets(cluster: Cluster, names: MirrorMaker) -> Mapping[Partition, int] | None:
    """The source offset after the last committed one, by source partition; None without such a topic."""
    offsets, name = ConnectOffsets(names.alias, names.connector), names.offsets
    metadata = await cluster.metadata([name])
    topic = metadata.topics.get(name)
    if topic is None:
        return None
    check(topic.error, f"read the offsets of MirrorMaker 2: grant DESTINATION_API_KEY Describe and Read on {name}")

    def take(records: Iterable[Record]) -> None:
        for record in records:
            offsets.add(record)

    for partition in topic.partitions:
        await CompactedLog(cluster, partition, take).read(metadata)
    return offsets.following


async def require_stopped(cluster: Cluster, names: MirrorMaker) -> bool:
    """See that its workers have left; False where its group is not known any more, or may not be seen."""
    listed = await list_groups(cluster)
    raise_first(listed.failures.values())
    group = listed.groups.get(names.workers)
    if group is not None and group.has_members:
        raise LinkRefused(f"MirrorMaker 2 still runs: its group {group.name} has members ({group.state}): {_ANSWER}")
    return group is not None


async def require_decided(cluster: Cluster, metadata: Metadata, open_in: Collection[Partition]) -> None:
    """Refuse while transactions are open in copies."""
    if not open_in:
        return
    transactions = await open_transactions(cluster, metadata, open_in)
    first = min(open_in)
    opened = transactions.get(first)
    by = f" of {opened.transactional_id}" if opened and opened.transactional_id else ""
    raise LinkRefused(f"a transaction{by} is open in {first}, and in {len(open_in)} copies: {_ANSWER}")
