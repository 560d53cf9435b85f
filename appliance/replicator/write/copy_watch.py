"""Looks at copies that are written to: what may have happened to them meanwhile, and room for what they refused."""

import asyncio
from dataclasses import dataclass

from appliance.kafka.client.configs import write_limits
from appliance.replicator.write.admission import too_few_replicas
from appliance.replicator.write.lane_partitions import LanePartitions

_INTERVAL = 5.0
"""Interval of looks at the leaders of the copies and their replicas in sync, in seconds."""

_ROOM_INTERVAL = 3.0
"""Interval of looks whether a copy that refused a batch takes larger ones by now, in seconds."""


@dataclass(slots=True)
class CopyWatch:
    """The watch over the copies of one lane."""

    partitions: LanePartitions
    _looked: float = 0.0
    _looked_for_room: float = 0.0

    async def look(self) -> None:
        """Notice what may have happened to copies that nothing was written to for a while.

        A copy with a new leader may have lost something (invariant J), and one that was deleted and made anew has
        (invariant G): only a start finds out, since nothing is under way then. One with too few replicas in sync would
        keep a transaction, and so the lane, from ending.

        Raises:
            Unreachable, BrokerRefused: nothing has changed.
        """
        partitions, began = self.partitions, _clock()
        if not partitions.taken_in or began < self._looked + _INTERVAL:
            return
        metadata = await partitions.lane.learn({replica.destination_topic for replica in partitions.taken_in})
        self._looked = _clock()
        if partitions.have_changed(metadata):
            partitions.lane.begin_anew()
            return
        for replica in list(partitions.taken_in):
            if error := too_few_replicas(replica, metadata, partitions.limits):
                partitions.leave_out(replica, error)

    async def look_for_room(self) -> None:
        """Try again what was refused where a copy takes larger batches by now."""
        partitions, now = self.partitions, _clock()
        if not partitions.refused or now < self._looked_for_room + _ROOM_INTERVAL:
            return
        self._looked_for_room = now
        topics = {replica.destination_topic for replica in partitions.refused}
        limits, _ = await write_limits(partitions.destination, topics)
        partitions.limits |= limits
        for replica, refused in list(partitions.refused.items()):
            if partitions.limits[replica.destination_topic].batch_bytes > refused.batch_bytes:
                partitions.take_in_again(replica)


def _clock() -> float:
    return asyncio.get_running_loop().time()
