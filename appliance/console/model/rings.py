"""Numbers over time in rings of a fixed number of steps: the newest count of a step, and the largest other number."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

UNKNOWN = -1.0
RATES = {"copied": "records", "bytes": "bytes"}
"""The rate that is shown of a count: its growth a second between two steps."""
_HOLE_MS = 150_000
"""Time without a sample that shows as a hole: of a large link that nobody views, they are rare."""
Numbers = Sequence[float | None]


class Subject(NamedTuple):
    """A topic, one of its partitions, or with neither the link."""

    topic: str = ""
    partition: int = -1

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of its numbers."""
        own = () if self.topic else ("bytes", "lag_seconds", "latency_ms")
        return ("lag_records", "copied", *own)


@dataclass(slots=True)
class Rings:
    """``steps`` steps of ``step`` milliseconds.

    ``at`` has the time of each step's newest sample, 0 for none. A ring has all steps of a subject's first number, then
    those of the next one.
    """

    step: int
    steps: int
    at: "array[int]" = field(init=False)
    of: dict[Subject, "array[float]"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.at = array("q", bytes(8 * self.steps))

    def keep(self, subjects: Iterable[Subject]) -> None:
        """Have rings of these subjects alone."""
        self.of = {one: self.of.get(one) or array("d", [UNKNOWN]) * self._length(one) for one in subjects}

    def _length(self, subject: Subject) -> int:
        return self.steps * len(subject.measures)

    def peak(self, subject: Subject) -> float:
        """The largest lag, -1 if none is known."""
        return max(self.of[subject][: self.steps]) if subject in self.of else UNKNOWN

    def add(self, at: int, values: Mapping[Subject, Numbers]) -> None:
        """Add numbers of the subjects that have rings; forget what a clock has seen that was set back since."""
        for place, then in enumerate(self.at):
            self.at[place] = then if then <= at else 0
        place = at // self.step % self.steps
        begun, self.at[place] = self.at[place] // self.step == at // self.step, at
        for subject, ring in self.of.items():
            known = values.get(subject) or [None] * len(subject.measures)
            for number, (name, given) in enumerate(zip(subject.measures, known, strict=True)):
                where, value = number * self.steps + place, UNKNOWN if given is None else float(given)
                peak = begun and (name not in RATES or value == UNKNOWN)
                ring[where] = max(value, ring[where]) if peak else value

    def curves(self, subjects: Iterable[Subject]) -> tuple[list[int], list[dict[str, list[float | None]]]]:
        """The times, the oldest first, and each subject's numbers by their names; unknown where samples lack."""
        first = (max(self.at) // self.step - self.steps + 1) * self.step
        shown: list[tuple[int, int]] = []
        for at, place in sorted((at, place) for place, at in enumerate(self.at) if at and at >= first):
            if shown and at - shown[-1][0] > max(_HOLE_MS, 2 * self.step):
                shown.append((shown[-1][0] + 1, -1))
            shown.append((at, place))
        times = [at for at, _ in shown]
        return times, [self._curves(one, times, [place for _, place in shown]) for one in subjects]

    def _curves(self, subject: Subject, times: Sequence[int], places: Sequence[int]) -> dict[str, list[float | None]]:
        found = {}
        for number, name in enumerate(subject.measures):
            own = self.of[subject][number * self.steps :][: self.steps]
            values = [None if place < 0 or own[place] == UNKNOWN else own[place] for place in places]
            found[RATES.get(name, name)] = rates(times, values) if name in RATES else values
        return found


def rates(times: Sequence[int], counts: Numbers) -> list[float | None]:
    """The growth of a count a second, since the last time at which it was known."""
    found: list[float | None] = []
    before: tuple[int, float] | None = None
    for at, count in zip(times, counts, strict=True):
        grown = before is not None and count is not None and at > before[0] and count >= before[1]
        found.append((count - before[1]) * 1000 / (at - before[0]) if grown and before and count is not None else None)
        before = before if count is None else (at, count)
    return found
