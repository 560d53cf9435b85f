"""Round-robin over names of which only a few can be looked at each time."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(slots=True)
class RoundRobin:
    """Visits each of few names once in ``rounds``; of many, ``at_most`` at once, and it takes longer."""

    rounds: int
    at_most: int
    _due: deque[str] = field(default_factory=deque)
    _share: int = 0

    def next(self, everybody: Collection[str]) -> list[str]:
        """The next names; one that has come meanwhile waits for the next round, and one that has gone is left out."""
        if not self._due:
            self._due.extend(everybody)
            self._share = min(self.at_most, -(-len(everybody) // self.rounds))
        due = [self._due.popleft() for _ in range(min(self._share, len(self._due)))]
        return [name for name in due if name in everybody]
