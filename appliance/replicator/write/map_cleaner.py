"""Drops the segments of a lane's maps whose copies retention has taken: a little at a time, between transactions."""

import asyncio
from collections.abc import Sequence

from appliance.errors import ApplianceError
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets, try_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.checkpoint_log import read_records
from appliance.link.model.replicas import Replica
from appliance.replicator.model.map_cleaning import KnownSegments
from appliance.replicator.write.lane import Lane

_EVERY = 600.0
"""Seconds between two looks at the starts of the copies."""


class MapCleaner:
    """The segments in a lane's partition of the topic of the maps, and when they are looked at next."""

    def __init__(self, lane: Lane, destination: Cluster) -> None:
        self._lane = lane
        self._cluster = destination
        self._known = KnownSegments()
        self._due: float | None = None

    async def step(self, replicas: Sequence[Replica]) -> None:
        """Do what is due for these partitions: read on by one Fetch, or drop what one transaction takes.

        Raises:
            Fenced, Unreachable, BrokerBusy, BrokerRefused: as ``Lane.commit``.
        """
        now = asyncio.get_running_loop().time()
        self._due = now + _EVERY if self._due is None else self._due
        if now < self._due:
            return
        try:
            starts = await self._starts(replicas) if await self._read() else None
        except ApplianceError:
            self._due = now + _EVERY  # whatever it is, copying does not depend on it
            return
        if starts is not None and not await self._lane.drop_segments(self._known, starts):
            self._due = now + _EVERY

    async def _read(self) -> bool:
        """Read on by one Fetch; true when the log's end has been reached, which nobody else moves (invariant B)."""
        partition = self._lane.offsets
        metadata = await self._cluster.metadata([partition[0]])
        end = (await list_offsets(self._cluster, metadata, [partition], Bound.END))[partition]
        if self._known.read_to > end:
            self._known = KnownSegments()  # the log has lost its tail, or was made anew
        if self._known.read_to < end:
            found = await read_records(self._cluster, metadata, partition, self._known.read_to)
            self._known.take(*found)
        return self._known.read_to >= end

    async def _starts(self, replicas: Sequence[Replica]) -> dict[Partition, int]:
        """The start of each copy that has segments, by its source partition."""
        copies = {each.copy: each.source for each in replicas if each.source in self._known.partitions}
        metadata = await self._cluster.metadata(sorted({topic for topic, _ in copies}))
        starts, _ = await try_offsets(self._cluster, metadata, list(copies), Bound.START)
        return {copies[copy]: start for copy, start in starts.items()}
