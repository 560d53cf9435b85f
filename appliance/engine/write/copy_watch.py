"""The watch over a lane's copies beside its transactions: losses, and room for refused batches."""

from dataclasses import dataclass

from appliance.clock import loop_seconds
from appliance.engine.model.admission import too_few_replicas
from appliance.engine.write.dead_letters import raised_limits
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.kafka.client.configs import write_limits

_INTERVAL = 5.0
"""Interval of looks at the leaders of the copies and their replicas in sync, in seconds."""

_ROOM_INTERVAL = 3.0
"""Interval of looks for another limit of a copy that refused a batch, in seconds."""


@dataclass(slots=True)
class CopyWatch:
    """The watch over the copies of one lane."""

    partitions: LanePartitions
    _looked: float = 0.0
    _looked_for_room: float = 0.0

    async def look(self) -> None:
        """Notice changes of copies that were not written to for a while.

        A copy with a new leader may have lost records (invariant J), and a recreated one has (invariant G): only a
        start finds out, since no write is in flight then. Too few replicas in sync would keep a transaction, and so the
        lane, from ending.
        """
        partitions, began = self.partitions, loop_seconds()
        if not partitions.taken_in or began < self._looked + _INTERVAL:
            return
        metadata = await partitions.lane.learn({replica.destination_topic for replica in partitions.taken_in})
        self._looked = loop_seconds()
        if partitions.have_changed(metadata):
            partitions.lane.begin_anew()
            return
        for replica in list(partitions.taken_in):
            if error := too_few_replicas(replica, metadata, partitions.limits):
                partitions.leave_out(replica, error)

    async def look_for_room(self) -> None:
        """Retry refused batches where the limits have changed by now, or can be changed: see ``dead_letters``."""
        partitions, now = self.partitions, loop_seconds()
        refused = {
            r: each.refused_by for r, each in partitions.refused.items() if each.position and each.position.stopped
        }
        if not refused or now < self._looked_for_room + _ROOM_INTERVAL:
            return
        self._looked_for_room = now
        letters = {
            topic: each.destination_topic for each, (topic, _) in refused.items() if topic != each.destination_topic
        }
        limits, _ = await write_limits(partitions.destination, {replica.destination_topic for replica in refused})
        partitions.limits |= limits | (await raised_limits(partitions.destination, letters) if letters else {})
        for replica, (topic, before) in refused.items():
            if partitions.limits.get(topic) != before:
                partitions.take_in_again(replica)
