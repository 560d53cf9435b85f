"""The layout of a link: the number of its lanes, and the lane of each source partition. Pure.

A lane belongs to one layout. Each lane's partition of the positions topic says which number of layout may write there,
and a lane reads that after it has fenced its predecessor (invariant C): so a process that knows an older layout, or a
newer one, writes no copy. The link record has the layout itself.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from appliance.kafka.protocol.metadata import Partition

LANES_MAX = 1000
"""Largest number of lanes, each a transactional id."""


PLACED_MAX = 500
"""Largest number of placed partitions: the link record names them, and has to fit into one batch."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The number of ``lanes``, and the partitions that are ``placed`` in another lane than that of their hash.

    ``number`` counts the changes of the link's layout: that with which it was made is 0.
    """

    lanes: int
    number: int = 0
    placed: Mapping[Partition, int] = field(default_factory=dict)

    def lane_of(self, topic: str, partition: int) -> int:
        """The lane of a source partition; those of a topic are distributed over the lanes round-robin."""
        placed = self.placed.get(Partition(topic, partition))
        return (zlib.crc32(topic.encode()) + partition) % self.lanes if placed is None else placed


@dataclass(frozen=True, slots=True)
class LayoutRecord:
    """The number of the layout whose lane may write a partition of the positions topic, and its number of lanes.

    While ``changing`` no lane may: that layout is being made, since ``since`` in milliseconds, by user@host. ``run`` is
    the replicator of an older release that makes it by itself, as long as it is being made; empty for a command.
    """

    number: int
    lanes: int
    since: int
    by: str
    why: str = ""
    changing: bool = False
    run: str = ""
