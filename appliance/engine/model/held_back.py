"""Partitions that are not copied now, each tried at growing intervals, so that others lose little."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from appliance.link.model.replicas import Replica

_FIRST = 0.1
_GROWTH = 2.0
_LONGEST = 30.0
"""Seconds."""


@dataclass(slots=True)
class HeldBack:
    """The partitions that wait for a try; times are seconds of any monotonic clock."""

    _due: dict[Replica, float] = field(default_factory=dict)
    _pauses: dict[Replica, float] = field(default_factory=dict)

    def add(self, replica: Replica, now: float) -> None:
        """Retry it after a pause, twice as long as the one before."""
        pause = min(_GROWTH * self._pauses[replica], _LONGEST) if replica in self._pauses else _FIRST
        self._pauses[replica] = pause
        self._due[replica] = now + pause

    def add_due(self, replicas: Iterable[Replica]) -> None:
        """Try these now; those that wait already keep waiting."""
        for replica in replicas:
            self._due.setdefault(replica, -math.inf)

    def due(self, now: float) -> list[Replica]:
        """Those that may be tried now."""
        return [replica for replica, at in self._due.items() if at <= now]

    def tried(self, replica: Replica) -> None:
        """Count a new try; if it fails, the partition is added again and waits longer."""
        self._due.pop(replica, None)

    def pause(self, now: float) -> float:
        """Seconds until the next one may be tried; infinite when none waits."""
        return max(0.0, min(self._due.values(), default=math.inf) - now)

    def went_well(self, replica: Replica) -> bool:
        """Forget a partition that is copyable again; True when it was held back."""
        self._due.pop(replica, None)
        return self._pauses.pop(replica, None) is not None

    def keep(self, replicas: Collection[Replica]) -> None:
        """Forget all others."""
        for replica in {*self._due, *self._pauses}.difference(replicas):
            self.went_well(replica)
