"""MirrorMaker 2's checkpoints: where the source's groups are in the copies, for its Java client.

A checkpoint is written when what it says is committed in the copy, and again when it changes. It follows its group
backwards too. It cannot be withdrawn: the client does not bear tombstones.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from appliance.failover.mirror_topics import MirrorTopics
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.mirror_records import MirrorCheckpoint, encode_checkpoint
from appliance.link.model.naming import Naming


@dataclass(slots=True)
class MirrorCheckpoints:
    """The checkpoints of one link, as far as this process has written them."""

    destination: Cluster
    naming: Naming
    replication_factor: int = -1
    _written: dict[tuple[str, Partition], MirrorCheckpoint] = field(default_factory=dict)
    _topics: MirrorTopics = field(init=False)

    def __post_init__(self) -> None:
        names = (self.naming.checkpoints_topic,)
        self._topics = MirrorTopics(self.destination, names, self.replication_factor)

    async def write(self, checkpoints: Iterable[MirrorCheckpoint]) -> int:
        """Write those that have changed; how many they were.

        Raises:
            ApplianceError: some are not written; done again, they are.
        """
        changed = [each for each in checkpoints if self._written.get((each.group, each.copy)) != each]
        now = time.time_ns() // 1_000_000
        if changed:
            records = [encode_checkpoint(each, now) for each in changed]
            await self._topics.append(self.naming.checkpoints_topic, records)
        self._written |= {(each.group, each.copy): each for each in changed}
        return len(changed)
