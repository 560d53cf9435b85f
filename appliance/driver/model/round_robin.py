"""Round-robin over names, a few each time."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(slots=True)
class RoundRobin:
    """Visits every name once in ``rounds``, but ``at_most`` names at a time: many names take longer."""

    rounds: int
    at_most: int
    _due: deque[str] = field(default_factory=deque)
    _share: int = 0

    def next(self, everybody: Collection[str]) -> list[str]:
        """The next names; new ones wait for the next round, and names that have gone are left out."""
        if not self._due:
            self._due.extend(everybody)
            self._share = min(self.at_most, -(-len(everybody) // self.rounds))
        due = [self._due.popleft() for _ in range(min(self._share, len(self._due)))]
        return [name for name in due if name in everybody]
