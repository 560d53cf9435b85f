"""The loads of partitions over a window of time, which consists of parts. Pure.

A group is a lane or a task: a number for each partition. The load of a partition is what was copied of it, and what was
due at the end.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.link_load import LoadSample

Loads = Mapping[Partition, float]
Groups = Mapping[Partition, int]

_LATE_MAX = 60.0
"""Seconds by which a sample may be late: after a longer silence, nobody knows how it was meanwhile."""


@dataclass(frozen=True, slots=True)
class LoadPart:
    """The bytes ``copied`` of partitions within so many seconds, and those ``due`` at their end.

    Only partitions that were copied meanwhile are there: one that waits for a broker is in no lane's way.
    """

    seconds: float
    copied: Loads
    due: Loads

    @classmethod
    def between(cls, before: LoadSample, after: LoadSample) -> "LoadPart":
        """The part between two samples; a partition without a position before it counts from the next part on."""
        seen = before.copied
        copied = {key: float(now - seen[key]) for key, now in after.copied.items() if now > seen.get(key, now)}
        return cls(after.at - before.at, copied, {key: due for key, due in after.due.items() if key in copied})

    @property
    def loads(self) -> Loads:
        """The load of each partition."""
        return {key: copied + self.due.get(key, 0.0) for key, copied in self.copied.items()}

    def behind(self, groups: Groups, seconds: float) -> set[int]:
        """The groups that have copied, and at their pace would take at least these seconds for what is due yet."""
        copied, due = grouped(self.copied, groups), grouped(self.due, groups)
        return {group for group, left in due.items() if left >= seconds * copied[group] / self.seconds}


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

    def loads(self) -> Loads:
        """The load of each partition with a position, over all parts."""
        loads = dict.fromkeys(self._last.copied, 0.0) if self._last else {}
        for part in self._parts:
            for key, copied in part.copied.items():
                loads[key] = loads.get(key, 0.0) + copied
        for key, due in self._parts[-1].due.items() if self._parts else ():
            loads[key] += due
        return loads

    def behind(self, groups: Groups, seconds: float) -> set[int]:
        """The groups that were behind at the end of every part."""
        found = [part.behind(groups, seconds) for part in self._parts]
        return set.intersection(*found) if found else set()

    def each(self) -> Iterator[Loads]:
        """The loads of each part, and over all."""
        yield from (part.loads for part in self._parts)
        yield self.loads()


def grouped(loads: Loads, groups: Groups) -> dict[int, float]:
    """The load of each group that has any."""
    held: dict[int, float] = {}
    for key, load in loads.items():
        group = groups[key]
        held[group] = held.get(group, 0.0) + load
    return held
