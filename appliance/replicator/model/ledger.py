"""What a task has copied since it was last asked: a row for each partition, however many transactions there were."""

from collections.abc import Iterable
from dataclasses import replace

from appliance.kafka.protocol.metadata import Partition
from appliance.replicator.model.chunk import LedgerRow


class Ledger:
    """The rows of one task's lanes."""

    def __init__(self) -> None:
        self._rows: dict[Partition, LedgerRow] = {}

    def add(self, rows: Iterable[LedgerRow]) -> None:
        """The rows of one more transaction, in the order in which they were committed."""
        for row in rows:
            key = row.topic, row.partition
            before = self._rows.get(key)
            self._rows[key] = row if before is None else _merged(before, row)

    def take(self) -> list[LedgerRow]:
        """A row for each partition of which anything was copied since the last time."""
        rows, self._rows = list(self._rows.values()), {}
        return rows


def _merged(before: LedgerRow, row: LedgerRow) -> LedgerRow:
    return replace(
        row,
        first_offset=before.first_offset,
        records=before.records + row.records,
        bytes=before.bytes + row.bytes,
        raw_batches=before.raw_batches + row.raw_batches,
        rebuilt_batches=before.rebuilt_batches + row.rebuilt_batches,
    )
