"""The dropping of segments from a lane's partition of the topic of the maps, once their copies' records are deleted."""

import itertools
from collections.abc import Sequence

from appliance.clock import loop_seconds
from appliance.engine.model.map_growth import KnownSegments
from appliance.engine.write.lane import Lane
from appliance.errors import ApplianceError
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets, try_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.checkpoint_log import read_records
from appliance.link.model.replicas import Replica

_INTERVAL = 600.0
"""Interval of checks of the starts of the copies, in seconds."""

_DROPPED_A_COMMIT = 500
"""Most segments dropped in one transaction."""


class MapCleaner:
    """The segments in a lane's partition of the topic of the maps, and the time of their next check."""

    def __init__(self, lane: Lane, destination: Cluster) -> None:
        self._lane = lane
        self._cluster = destination
        self._known = KnownSegments()
        self._due: float | None = None

    async def step(self, replicas: Sequence[Replica]) -> None:
        """Continue reading by one Fetch, or drop some segments of these partitions, in one transaction."""
        now = loop_seconds()
        self._due = now + _INTERVAL if self._due is None else self._due
        if now < self._due:
            return
        try:
            starts = await self._starts(replicas) if await self._read() else None
        except ApplianceError:
            self._due = now + _INTERVAL  # copying does not depend on it
            return
        if starts is None:
            return
        growing = self._lane.growing_segments
        keys = list(itertools.islice(self._known.below(starts, growing), _DROPPED_A_COMMIT))
        if not keys or not self._lane.keeps_offsets:
            self._due = now + _INTERVAL
            return
        await self._lane.drop_segments(keys)

    async def _read(self) -> bool:
        """Continue by one Fetch; true at the log's end, which nobody else moves (invariant B)."""
        partition = self._lane.offsets
        metadata = await self._cluster.metadata([partition[0]])
        end = (await list_offsets(self._cluster, metadata, [partition], Bound.END))[partition]
        if self._known.read_to > end:
            self._known = KnownSegments()  # the log was truncated, or recreated
        if self._known.read_to < end:
            self._known.take(*await read_records(self._cluster, metadata, partition, self._known.read_to))
        return self._known.read_to >= end

    async def _starts(self, replicas: Sequence[Replica]) -> dict[Partition, int]:
        """The start of each copy with segments, by its source partition."""
        copies = {each.copy: each.source for each in replicas if each.source in self._known.partitions}
        metadata = await self._cluster.metadata(sorted({topic for topic, _ in copies}))
        starts, _ = await try_offsets(self._cluster, metadata, list(copies), Bound.START)
        return {copies[copy]: start for copy, start in starts.items()}
