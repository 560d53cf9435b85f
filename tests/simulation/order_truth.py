"""The invariants of a total order, checked whenever a T-global grows: P and Q; and the records of all origins.

Letters are those of docs/run/total-order.md.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from appliance.link.model.order import Origin
from tests.simulation.invariants import Violation
from tests.simulation.log import Entry, Log, Record, placed


class Source(NamedTuple):
    """The place of a record in an origin; ``log`` is that of T as it was then."""

    origin: Origin
    offset: int
    log: Log


@dataclass(slots=True)
class OrderTruth:
    """One order of one partition; ``origins`` are the logs of T, by cluster and partition, the newest last."""

    name: str
    origins: dict[Origin, list[Log]] = field(default_factory=dict)
    order: list[Record] = field(default_factory=list)
    """All that was ever visible in a T-global."""
    ranks: dict[Log, int] = field(default_factory=dict)
    """The number of records that each T-global shows."""
    places: dict[Log, list[int]] = field(default_factory=dict)
    """Their offsets there, by rank."""
    sources: dict[Record, Source] = field(default_factory=dict)
    """The places of all records that were ever written to T."""
    ignored: set[Log] = field(default_factory=set)
    """T-globals that somebody has made in the place of deleted ones."""
    _committed: dict[Log, list[tuple[int, Record]]] = field(default_factory=dict)
    _lost: set[Record] = field(default_factory=set)
    """Committed records that an origin has lost."""
    _truncated: set[Log] = field(default_factory=set)
    _ends: dict[tuple[Log, bool], int] = field(default_factory=dict)
    """The offset up to which the records of each log are known, and up to which the committed ones are."""
    _seen: set[Record] = field(default_factory=set)

    def look(self, log: Log) -> None:
        """Check what a T-global shows now."""
        for entry in self._news(log, log.stable_end, committed=True):
            if entry.outcome and not entry.marker and log not in self.ignored:
                for offset, record in placed(entry):
                    self.places.setdefault(log, []).append(offset)
                    self._show(log, record)

    def learn(self, origin: Origin) -> None:
        """Note where the records of an origin lie, whatever becomes of them."""
        log = self.origins[origin][-1]
        for entry in self._news(log, log.end, committed=False):
            if not entry.marker:
                self.sources.update((record, Source(origin, offset, log)) for offset, record in placed(entry))
        for entry in self._news(log, log.stable_end, committed=True):
            if entry.outcome and not entry.marker:
                self._committed.setdefault(log, []).extend(placed(entry))
                self._lost.difference_update(record for _, record in placed(entry))

    def truncated(self, origin: Origin) -> None:
        """An origin has lost its end; what a reader saw there may be decided otherwise from now on."""
        log = self.origins[origin][-1]
        committed = self._committed.get(log, [])
        self._lost.update(record for offset, record in committed if offset >= log.stable_end)
        self._committed[log] = [each for each in committed if each[0] < log.stable_end]
        self._ends[log, True], self._ends[log, False] = log.stable_end, log.end
        self._truncated.add(log)

    def is_plain(self, origin: Origin) -> bool:
        """True if nothing but retention has befallen an origin."""
        logs = self.origins[origin]
        return len(logs) == 1 and logs[0] not in self._truncated

    def check_origins(self, whole: bool) -> None:
        """Each origin's records are there in their order; with ``whole`` all of them that must be."""
        for record in self.order:
            if record not in self.sources:
                raise Violation(f"Q: {self.name} has {record}, which is of no origin")
        owed = [text for origin in self.origins if (text := self._owed(origin))]
        if whole and owed:
            raise Violation(f"Q: {owed}")

    def missing(self, logs: Collection[Log], clusters: Collection[str]) -> list[str]:
        """The records of these clusters' T that not all of these T-globals have, although nothing keeps them away."""
        behind = [log for log in logs if log not in self.ignored and self.ranks.get(log, 0) < len(self.order)]
        owed = [text for origin in self.origins if origin.cluster in clusters and (text := self._owed(origin))]
        return [f"{log}: {self.ranks.get(log, 0)} of {len(self.order)}" for log in behind] + owed

    def _owed(self, origin: Origin) -> str:
        """The records of an origin that the order lacks, unless it may have stopped; empty if there are none."""
        own = [record for record in self.order if self.sources[record].origin == origin]
        log = self.sources[own[0]].log if own else self.origins[origin][-1]
        if any(self.sources[record].log is not log for record in own):
            raise Violation(f"Q: {self.name} has records of {origin} from before and after it was made anew")
        if log in self._truncated:  # its transactions may have ended otherwise than they did before
            offsets = [self.sources[record].offset for record in own if record not in self._lost]
            if offsets != sorted(offsets):
                raise Violation(f"Q: of {origin} {self.name} has {len(own)} records out of order: {offsets}")
            return ""
        there = self._committed.get(log, [])
        first = next((at for at, (_, record) in enumerate(there) if own and record == own[0]), 0)
        following = first + len(own)
        if own != [record for _, record in there[first:following]]:
            raise Violation(f"Q: of {origin} {self.name} has {len(own)} records, with holes or out of order")
        if first and there[first - 1][0] >= log.start:
            raise Violation(f"Q: of {origin} {self.name} lacks {first} records before its first one")
        # What retention has deleted past the last record may have been records, for all that the home knows.
        may_stop = len(self.origins[origin]) > 1 or log.start > (self.sources[own[-1]].offset + 1 if own else 0)
        if following == len(there) or there[following][0] < log.start or may_stop:
            return ""
        return f"{len(there) - following} records of {origin} from offset {there[following][0]} on"

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
        self.ignored.add(log)
        return others

    def _news(self, log: Log, end: int, *, committed: bool) -> list[Entry]:
        at = self._ends.get((log, committed), 0)
        self._ends[log, committed] = max(at, end)
        return [entry for entry in log.entries[log.index(at) :] if at <= entry.base < end]
