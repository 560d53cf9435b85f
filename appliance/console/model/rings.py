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
        return ("lag_records", "copied", *(() if self.topic else ("bytes", "lag_seconds", "latency_ms")))


@dataclass(slots=True)
class Rings:
    """``steps`` steps of ``step`` milliseconds; ``at`` has the time of each one's newest sample, 0 for none.

    A ring has all steps of a subject's first number, then those of the next one.
    """

    step: int
    steps: int
    at: "array[int]" = field(init=False)
    of: dict[Subject, "array[float]"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.at = array("q", bytes(8 * self.steps))

    @property
    def since(self) -> int:
        """The beginning of the time that they show."""
        return max(self.at) - self.step * self.steps

    def keep(self, subjects: Iterable[Subject]) -> None:
        """Have rings of these subjects alone."""
        empty = array("d", [UNKNOWN]) * self.steps
        self.of = {one: self.of.get(one) or empty * len(one.measures) for one in subjects}

    def peak(self, subject: Subject) -> float:
        """The largest lag, -1 if none is known."""
        return max(self.of[subject][: self.steps]) if subject in self.of else UNKNOWN

    def add(self, at: int, values: Mapping[Subject, Numbers]) -> None:
        """Add numbers of the subjects that have rings; forget what a clock has seen that was set back since."""
        self.at = array("q", [then if then <= at else 0 for then in self.at])
        place = at // self.step % self.steps
        begun, self.at[place] = self.at[place] // self.step == at // self.step, at
        for subject, ring in self.of.items():
            known = values.get(subject) or [None] * len(subject.measures)
            for number, (name, given) in enumerate(zip(subject.measures, known, strict=True)):
                where, value = number * self.steps + place, UNKNOWN if given is None else float(given)
                ring[where] = max(value, ring[where]) if begun and (name not in RATES or given is None) else value

    def curves(self, subjects: Iterable[Subject]) -> tuple[list[int], list[dict[str, list[float | None]]]]:
        """The times, the oldest first, and each subject's numbers by their names; unknown where samples lack."""
        shown: list[tuple[int, int | None]] = []
        for at, place in sorted((at, place) for place, at in enumerate(self.at) if at > self.since + self.step):
            if shown and at - shown[-1][0] > max(_HOLE_MS, 2 * self.step):
                shown.append((shown[-1][0] + 1, None))
            shown.append((at, place))
        times, found = [at for at, _ in shown], list[dict[str, list[float | None]]]()
        for subject in subjects:
            found.append({})
            for number, name in enumerate(subject.measures):
                own = self.of[subject][number * self.steps :]
                values = [None if at is None or own[at] == UNKNOWN else own[at] for _, at in shown]
                found[-1][RATES.get(name, name)] = rates(times, values) if name in RATES else values
        return times, found


def rates(times: Sequence[int], counts: Numbers) -> list[float | None]:
    """The growth of a count a second, since the last time at which it was known."""
    found: list[float | None] = []
    then, before = 0, float("inf")
    for at, count in zip(times, counts, strict=True):
        grown = count is not None and count >= before and at > then
        found.append((count - before) * 1000 / (at - then) if grown and count is not None else None)
        then, before = (then, before) if count is None else (at, count)
    return found
