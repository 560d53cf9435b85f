"""Logs made of batches, and a reader like a verification's reader of a partition; no cluster."""

from collections.abc import Sequence
from dataclasses import dataclass

from appliance.kafka.records.batch import Batch
from appliance.kafka.records.records import unpack
from appliance.logs.model.span import Span
from appliance.logs.reader import LogReader
from tests.support.batches import Written, made, only, stamped

NOW = 1_700_000_000_000


def rows(count: int, first: int = 0) -> list[Written]:
    """Records, all different, a millisecond apart."""
    return [(NOW + n, b"key %d" % n, b"value %d" % n, [("h", b"1")]) for n in range(first, first + count)]


def log(records: Sequence[Written], *sizes: int, first: int = 0, codec: int = 0, gap: int = 0) -> list[Batch]:
    """Batches of these numbers of records, the last number repeated; ``gap`` offsets lie between two batches."""
    batches: list[Batch] = []
    at, offset, left = 0, first, list(sizes or [10])
    while at < len(records):
        size = left.pop(0) if len(left) > 1 else left[0]
        part = records[at : at + size]
        batches.append(only(made(part, offset, codec)))
        at += len(part)
        offset += len(part) + gap
    return batches


def raw_copy(batches: Sequence[Batch], first: int = 0) -> list[Batch]:
    """The batches as a lane writes them: with new headers, and a marker's offset between two."""
    copies: list[Batch] = []
    offset = first
    for batch in batches:
        copy = stamped(batch.data, 4000, 1)
        copies.append(only(offset.to_bytes(8, "big") + bytes(copy.data[8:])))
        offset += batch.header.records + 1
    return copies


def end(batches: Sequence[Batch]) -> int:
    """The offset after the last record."""
    return batches[-1].header.last_offset + 1 if batches else 0


@dataclass(slots=True)
class MemoryReader:
    """A substitute for a ``LogReader`` of a partition; each answer has two batches."""

    batches: Sequence[Batch]
    position: int
    stable_end: int

    @classmethod
    def of(cls, batches: Sequence[Batch], span: Span) -> "MemoryReader":
        return cls(batches, span.start, span.end)

    def at(self, position: int) -> "MemoryReader":
        return MemoryReader(self.batches, position, self.stable_end)

    until = LogReader.until

    async def read(self, wait: float = 0.0, known_end: int = 0) -> list[Batch]:  # noqa: ARG002
        found = [batch for batch in self.batches if batch.header.last_offset >= self.position][:2]
        self.position = max(self.position, end(found)) if found else self.stable_end
        return found

    async def offset_at(self, timestamp: int) -> int | None:
        records = [record for batch in self.batches for record in unpack(batch, self.position)]
        return next((record.offset for record in records if record.timestamp >= timestamp), None)
