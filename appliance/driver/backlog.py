"""Source records that copies lack still, of those that their source topics held when somebody first asked."""

from collections.abc import Collection
from dataclasses import dataclass, field

from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.link.client.checkpoint_log import NewestStates
from appliance.link.model.checkpoint import start_place
from appliance.link.model.replicas import Replica


@dataclass(slots=True)
class Backlog:
    """Tells which copies have not come to the ends that their sources had then; after a restart, to later ones."""

    source: Cluster
    states: NewestStates
    _ends: dict[Replica, int] = field(default_factory=dict)

    async def of(self, replicas: Collection[Replica], looked_at: Collection[str]) -> set[str]:
        """Those of their source topics whose copies lack records; of others ``looked_at`` the ends are dropped."""
        self._ends = {
            each: end for each, end in self._ends.items() if each in replicas or each.source_topic not in looked_at
        }
        if not replicas:
            return set()
        there = await self.source.metadata(sorted({replica.source_topic for replica in replicas}))
        partitions = [replica.source for replica in replicas]
        ends, _ = await try_offsets(self.source, there, partitions, Bound.END)
        starts, _ = await try_offsets(self.source, there, partitions, Bound.START)
        lanes = await self.states.checkpoints()
        positions = {key: position for lane in lanes for key, position in lane.positions.items()}
        behind = set()
        for replica in replicas:
            start = start_place(*replica.source, replica.source_id, lanes[0].starts) if lanes else None
            copied_to, held = start.offset if start else -1, positions.get(replica.source)
            if held and (held.source_id, held.destination_id) == (replica.source_id, replica.destination_id):
                copied_to = held.next_offset
            if replica.source in ends:
                self._ends.setdefault(replica, ends[replica.source])
            reached = max(copied_to, starts.get(replica.source, -1))
            if replica not in self._ends or reached < self._ends[replica]:
                behind.add(replica.source_topic)
        return behind
