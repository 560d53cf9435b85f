"""The invariants of a total order, checked whenever a T-global grows: P, Q and S; and the records of all origins.

Letters are those of docs/total-order.md.
"""

from dataclasses import dataclass, field

from tests.simulation.invariants import Violation
from tests.simulation.log import Entry, Log, Record, placed, seen


@dataclass(slots=True)
class OrderTruth:
    """One order of one partition; ``origins`` are the logs of T, by cluster and partition."""

    name: str
    origins: dict[tuple[str, int], Log] = field(default_factory=dict)
    order: list[Record] = field(default_factory=list)
    """All that was ever visible in a T-global."""
    ranks: dict[Log, int] = field(default_factory=dict)
    """How many records each T-global shows."""
    places: dict[Record, tuple[tuple[str, int], int]] = field(default_factory=dict)
    """The origin of each record that was ever written to T, and its offset there."""
    _ends: dict[Log, int] = field(default_factory=dict)
    """The offset up to which each log was looked at."""
    _seen: set[Record] = field(default_factory=set)

    def look(self, log: Log) -> None:
        """Check what a T-global shows now."""
        for entry in self._news(log, log.stable_end):
            if entry.outcome and not entry.marker:
                for _, record in placed(entry):
                    self._show(log, record)

    def learn(self, origin: tuple[str, int], log: Log) -> None:
        """Note where the records of an origin lie, whatever becomes of them."""
        for entry in self._news(log, log.end):
            if not entry.marker:
                for offset, record in placed(entry):
                    self.places[record] = origin, offset

    def _news(self, log: Log, end: int) -> list[Entry]:
        at = self._ends.get(log, 0)
        self._ends[log] = end
        return [entry for entry in log.entries[log.index(at) :] if at <= entry.base < end]

    def _show(self, log: Log, record: Record) -> None:
        rank = self.ranks.get(log, 0)
        self.ranks[log] = rank + 1
        if rank < len(self.order):
            if self.order[rank] != record:
                raise Violation(f"P: {log} shows {record} at rank {rank}, and {self.order[rank]} was visible before")
            return
        if record in self._seen:
            raise Violation(f"Q: {log} shows {record} again at rank {rank}")
        self._seen.add(record)
        self.order.append(record)

    def forget(self, log: Log) -> int:
        """A T-global has shown what is declared lost: the others may show another order after what they have.

        Returns the rank from which on they may.
        """
        others = max((rank for each, rank in self.ranks.items() if each is not log), default=0)
        self._seen.difference_update(self.order[others:])
        del self.order[others:]
        self.ranks.pop(log, None)
        self._ends[log] = 2**63
        return others

    def check_origins(self, whole: bool) -> None:
        """Each origin's records are there in their order; with ``whole`` all of them."""
        of = {record: origin for origin, log in self.origins.items() for _, record in seen(log)}
        for record in self.order:
            if record not in of:
                raise Violation(f"Q: {self.name} has {record}, which no origin has committed")
        for origin, log in self.origins.items():
            own = [record for record in self.order if of[record] == origin]
            there = [record for _, record in seen(log)]
            if own != there[: len(own)] or (whole and len(own) < len(there)):
                raise Violation(f"Q: of {origin} the order has {len(own)} of {len(there)} records, or out of order")

    def missing(self) -> list[str]:
        """What is not everywhere yet."""
        there = sum(len(seen(log)) for log in self.origins.values())
        return [f"{log}: {rank} of {there}" for log, rank in self.ranks.items() if rank < there]
