"""The starts of a lane whose records the audit has read: these tell old records from new in a log that lost its end.

Compaction may take a start's mark, and a producer whose records were all lost may go on. So each record tells by its
own producer and time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from appliance.audit.model.entries import Entry

NO_PRODUCER = (-1, -1)


@dataclass(frozen=True)
class Starts:
    """The newest epoch of each producer id, and the newest timestamp, in milliseconds, -1 if unknown.

    An older release has not kept them: up to the producer ``floor`` all count as read.
    """

    epochs: tuple[tuple[int, int], ...] = ()
    newest: int = -1
    floor: tuple[int, int] = NO_PRODUCER

    def has(self, entry: Entry) -> bool:
        """True if records of this entry's producer, or of a later start with its id, were read."""
        producer = entry.producer_id, entry.producer_epoch
        return producer <= self.floor or entry.producer_epoch <= self._by_id.get(entry.producer_id, -1)

    def covers(self, entry: Entry) -> bool:
        """True of an entry that was read: an old producer's, and no newer than the newest."""
        return self.has(entry) and (self.newest < 0 or entry.record.timestamp <= self.newest)

    def after(self, entries: Iterable[Entry]) -> "Starts":
        """The same after these entries."""
        by_id, newest = dict(self._by_id), self.newest
        for entry in entries:
            if entry.producer_epoch > by_id.get(entry.producer_id, -1):
                by_id[entry.producer_id] = entry.producer_epoch
            newest = max(newest, entry.record.timestamp)
        return Starts(tuple(by_id.items()), newest, self.floor)

    @property
    def latest(self) -> tuple[int, int]:
        """The greatest producer."""
        return max(self.epochs, default=self.floor)

    @cached_property
    def _by_id(self) -> dict[int, int]:
        return dict(self.epochs)


NO_STARTS = Starts()
