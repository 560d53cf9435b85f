"""The watch over a lane's copies beside its transactions: losses, room for refused batches, maps of deleted records."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from appliance.clock import loop_seconds
from appliance.engine.model.admission import too_few_replicas
from appliance.engine.model.map_growth import KnownSegments
from appliance.engine.write.dead_letters import raised_limits
from appliance.engine.write.lane import Lane
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.errors import ApplianceError
from appliance.kafka.client.compacted_log import read_records
from appliance.kafka.client.configs import write_limits
from appliance.kafka.client.offsets import Bound, list_offsets, try_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.replicas import Replica

_INTERVAL = 5.0
"""Interval of checks of the leaders of the copies and their replicas in sync, in seconds."""

_ROOM_INTERVAL = 3.0
"""Interval of checks for another limit of a copy that refused a batch, in seconds."""

_STARTS_INTERVAL = 600.0
"""Interval of checks of the starts of the copies, in seconds."""

_DROPPED_A_COMMIT = 500
"""Most map segments dropped in one transaction."""


@dataclass(slots=True)
class CopyWatch:
    """The watch over the copies of one lane."""

    partitions: LanePartitions
    _checked: float = 0.0
    _retried: float = 0.0

    async def check(self) -> None:
        """Notice changes of copies that were not written to for a while.

        A copy with a new leader may have lost records (invariant J), and a recreated one has (invariant G): only a
        start finds out, since no write is in flight then. Too few replicas in sync would keep a transaction, and so the
        lane, from ending.
        """
        partitions, began = self.partitions, loop_seconds()
        if not partitions.taken_in or began < self._checked + _INTERVAL:
            return
        metadata = await partitions.lane.learn({replica.destination_topic for replica in partitions.taken_in})
        self._checked = loop_seconds()
        if partitions.have_changed(metadata):
            partitions.lane.restart()
            return
        for replica in list(partitions.taken_in):
            if error := too_few_replicas(replica, metadata, partitions.limits):
                partitions.leave_out(replica, error)

    async def retry_refused(self) -> None:
        """Retry refused batches where the limits have changed by now, or can be changed: see ``dead_letters``."""
        partitions, now = self.partitions, loop_seconds()
        refused = {
            r: each.refused_by for r, each in partitions.refused.items() if each.position and each.position.stopped
        }
        if not refused or now < self._retried + _ROOM_INTERVAL:
            return
        self._retried = now
        letters = {
            topic: each.destination_topic for each, (topic, _) in refused.items() if topic != each.destination_topic
        }
        limits, _ = await write_limits(partitions.lane.cluster, {replica.destination_topic for replica in refused})
        partitions.limits |= limits | (await raised_limits(partitions.lane.cluster, letters) if letters else {})
        for replica, (topic, before) in refused.items():
            if partitions.limits.get(topic) != before:
                partitions.take_in_again(replica)


class MapCleaner:
    """The segments in a lane's partition of the topic of the maps, and the time of their next check."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._cluster = lane.cluster
        self._known = KnownSegments()
        self._due: float | None = None

    async def step(self, replicas: Sequence[Replica]) -> None:
        """Continue reading by one Fetch, or drop some segments of these partitions, in one transaction."""
        now = loop_seconds()
        self._due = now + _STARTS_INTERVAL if self._due is None else self._due
        if now < self._due:
            return
        try:
            starts = await self._starts(replicas) if await self._read() else None
        except ApplianceError:
            self._due = now + _STARTS_INTERVAL  # copying does not depend on it
            return
        if starts is None:
            return
        growing = self._lane.growing_segments
        keys = list(itertools.islice(self._known.below(starts, growing), _DROPPED_A_COMMIT))
        if not keys or not self._lane.keeps_offsets:
            self._due = now + _STARTS_INTERVAL
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
