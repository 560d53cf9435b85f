"""The transactions that end within a stretch of a log, by the headers of its batches alone."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from appliance.kafka.records.batch import CONTROL, DELETE_HORIZON, TRANSACTIONAL, Batch
from appliance.kafka.records.committed import ABORT, marker


class EndedTransaction(NamedTuple):
    """The records of a committed transaction in one partition, from offset ``first`` to ``last``.

    ``began`` is the earliest time of its batches, by the producer's clock, and ``ended`` that of its marker, by the
    broker's; both in milliseconds.
    """

    producer_id: int
    producer_epoch: int
    first: int
    last: int
    marker: int
    began: int
    ended: int


@dataclass(slots=True)
class EndedTransactions:
    """Takes the batches of a partition in order; ``found`` are the transactions with records among them."""

    found: list[EndedTransaction] = field(default_factory=list)
    _open: dict[int, tuple[int, int, int]] = field(default_factory=dict)

    def take(self, batches: Iterable[Batch]) -> None:
        """Add the following batches.

        Raises:
            BatchCorrupt: a control batch without a readable marker.
        """
        for batch in batches:
            header = batch.header
            if header.attributes & CONTROL:
                held = self._open.pop(header.producer_id, None)
                if held is not None and marker(batch) != ABORT:  # compaction empties a marker after its aborted records
                    ids = header.producer_id, header.producer_epoch
                    first, last, began = held
                    self.found.append(EndedTransaction(*ids, first, last, header.base_offset, began, _time(batch)))
            elif header.attributes & TRANSACTIONAL and header.records:
                first, _, began = self._open.get(header.producer_id, (header.base_offset, 0, _time(batch)))
                self._open[header.producer_id] = first, header.last_offset, min(began, _time(batch))


def _time(batch: Batch) -> int:
    """The time of its first record; of a compacted batch that of its newest one."""
    header = batch.header
    return header.max_timestamp if header.attributes & DELETE_HORIZON else header.base_timestamp
