"""Trials: what the SQL is given first in a process is written down before, because a record may end the process. Pure.

A trial stays with the position at its start until copying passes it: it is found there if the process, or its Spark,
has ended in it. The next process tries it alone, and each one after that a part of it, down to one record.
"""

from typing import NamedTuple, Self

from appliance.link.model.position import Position, Trial

_PARTS = 16
TRIES_MAX = 4
"""Trials of a record until it is stopped. Those of others end with it, where they share its Java: hence several."""


class Trying(NamedTuple):
    """The trials of a process: of ``size`` offsets each, from an offset up to another; ``tries`` numbers them."""

    until: int
    size: int
    tries: int = 1
    start: int = 0

    @classmethod
    def of(cls, held: Position, end: int) -> Self:
        """Those of what was read of a partition up to ``end``."""
        start, found = held.next_offset, held.trial
        if found is None or found.start != start:
            return cls(end, end - start, 1, start)
        size = found.end - start
        if size == 1 or found.tries == 1:
            return cls(found.end, size, found.tries + 1, start)
        return cls(found.end, -(-size // _PARTS), 2, start)

    def trial(self, start: int, end: int) -> Trial:
        """The one at an offset, of what was read up to ``end``: all of that past the last trial."""
        return Trial(start, min(start + self.size, self.until, end) if start < self.until else end, self.tries)
