"""The loads of partitions over a window of time, which consists of parts. Pure.

A group is a lane or a task: a number for each partition. The load of a partition is what was copied of it, and what was
due at the end.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.link_load import LoadSample

Loads = Mapping[Partition, float]
Groups = Mapping[Partition, int]

_LATE_MAX = 60.0
"""Seconds by which a sample may be late: after a longer silence, nobody knows how it was meanwhile."""


@dataclass(frozen=True, slots=True)
class LoadPart:
    """The bytes ``copied`` of partitions within so many seconds, and those ``due`` at their end."""

    seconds: float
    copied: Loads
    due: Loads

    @classmethod
    def between(cls, before: LoadSample, after: LoadSample) -> "LoadPart":
        """The part between two samples; a partition without a position before it counts from the next part on."""
        seen = before.copied
        copied = {key: float(now - seen[key]) for key, now in after.copied.items() if now > seen.get(key, now)}
        return cls(after.at - before.at, copied, after.due)

    def loads(self, moving: Iterable[Partition]) -> Loads:
        """The load of each of these partitions."""
        return {key: self.copied.get(key, 0.0) + self.due.get(key, 0.0) for key in moving}

    def behind(self, moving: Iterable[Partition], groups: Groups, seconds: float) -> set[int]:
        """The groups that have copied, and at their pace would take at least these seconds for what is due yet."""
        due = grouped({key: self.due.get(key, 0.0) for key in moving}, groups)
        copied = grouped(self.copied, groups)
        return {group for group, done in copied.items() if due[group] >= seconds * done / self.seconds}


class LoadWindow:
    """The newest ``parts`` parts, of ``part`` seconds each, or a little more."""

    def __init__(self, part: float, parts: int) -> None:
        self._part = part
        self._parts: deque[LoadPart] = deque(maxlen=parts)
        self._last: LoadSample | None = None

    def clear(self) -> None:
        """Begin anew."""
        self._parts.clear()
        self._last = None

    def add(self, sample: LoadSample) -> bool:
        """Take in a sample; True when it ends a part."""
        before = self._last
        if before is None or not before.at <= sample.at <= before.at + self._part + _LATE_MAX:
            self.clear()
            self._last = sample
            return False
        if sample.at < before.at + self._part:
            return False
        self._parts.append(LoadPart.between(before, sample))
        self._last = sample
        return True

    @property
    def is_full(self) -> bool:
        """True when all parts are known."""
        return len(self._parts) == self._parts.maxlen

    @property
    def seconds(self) -> float:
        """Length of the known parts."""
        return sum(part.seconds for part in self._parts)

    @property
    def _moving(self) -> set[Partition]:
        """The partitions of which something was copied: one that waits for a broker is in no lane's way."""
        return {key for part in self._parts for key in part.copied}

    def loads(self) -> Loads:
        """The load of each partition with a position, over all parts."""
        loads = dict.fromkeys(self._last.copied, 0.0) if self._last else {}
        for part in self._parts:
            for key, copied in part.copied.items():
                loads[key] = loads.get(key, 0.0) + copied
        for key in self._moving:
            loads[key] += self._parts[-1].due.get(key, 0.0)
        return loads

    def behind(self, groups: Groups, seconds: float) -> set[int]:
        """The groups that were behind at the end of every part."""
        moving = self._moving
        found = [part.behind(moving, groups, seconds) for part in self._parts]
        return set.intersection(*found) if found else set()

    def each(self) -> Iterator[Loads]:
        """The loads of each part, and over all."""
        moving = self._moving
        yield from (part.loads(moving) for part in self._parts)
        yield self.loads()


def grouped(loads: Loads, groups: Groups) -> dict[int, float]:
    """The load of each group that has any."""
    held: dict[int, float] = {}
    for key, load in loads.items():
        group = groups[key]
        held[group] = held.get(group, 0.0) + load
    return held
