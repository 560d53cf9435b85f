"""A lane's chunks on their way through the link's SQL, between the source's reader and the lane's transaction.

The lane alone knows its positions: each range begins where the one before it ends, the first at the committed position.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from appliance.engine.model.chunk import Chunk
from appliance.engine.model.ranges import Failure, Outcome, Range
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.errors import PartitionStopped
from appliance.grouping import pieces
from appliance.kafka.records.outgoing import COALESCED_BYTES, Outgoing, codec_of, records_at
from appliance.kafka.records.records import Record, body_of, fields_of, newest, pack
from appliance.link.model.replicas import Replica

REASON, TOPIC, PARTITION, OFFSET = (f"transform.{name}" for name in ("error", "topic", "partition", "offset"))
"""The headers that a dead letter has beside its own."""

Stops = dict[Replica, PartitionStopped]


class Transform(Protocol):
    """The SQL; ``TransformService`` runs it in Spark."""

    async def transform(self, ranges: Sequence[Range]) -> list[Outcome]:
        """The outcomes of the ranges, in their order."""


@dataclass(frozen=True, slots=True)
class Transformation:
    """The SQL for one lane's partitions."""

    sql: Transform
    partitions: LanePartitions

    async def of(self, chunks: Sequence[Chunk]) -> tuple[list[Chunk], Stops]:
        """The chunks as the SQL returns them, and the partitions that a record stops, each after its chunks."""
        ranges = self._ranges(chunks)
        outcomes = iter(await self.sql.transform([each for each in ranges if each.records]))
        passed: list[Chunk] = []
        stops: Stops = {}
        for chunk, each in zip(chunks, ranges, strict=True):
            outcome = next(outcomes) if each.records else Outcome((), each.end, 0)
            if chunk.replica in stops:
                continue
            passed.append(_chunk(chunk, outcome, each.limit))
            if outcome.stop is not None:
                stops[chunk.replica] = failed(chunk.replica, outcome.stop)
        self._require_positions(passed, ranges)
        return passed, stops

    def _ranges(self, chunks: Iterable[Chunk]) -> list[Range]:
        """The range of each chunk."""
        ends: dict[Replica, int] = {}
        ranges = []
        for chunk in chunks:
            replica = chunk.replica
            start = ends.get(replica, self.partitions.position(replica).next_offset)
            limit = self.partitions.limits[replica.destination_topic].batch_bytes
            ranges.append(Range(replica.source, start, chunk.next_offset, chunk.batches, limit))
            ends[replica] = chunk.next_offset
        return ranges

    def _require_positions(self, chunks: Iterable[Chunk], ranges: Iterable[Range]) -> None:
        """Check that each partition is where its first range began (invariant E): nothing else moves it meanwhile."""
        checked = set()
        for chunk, each in zip(chunks, ranges, strict=False):
            if chunk.replica not in checked and self.partitions.position(chunk.replica).next_offset != each.start:
                raise AssertionError(f"{chunk.replica.name} has moved from offset {each.start} during its SQL")
            checked.add(chunk.replica)


def _chunk(chunk: Chunk, outcome: Outcome, limit: int) -> Chunk:
    letters = tuple(_dead_letters(chunk, outcome.failures, min(limit, COALESCED_BYTES)))
    passed = replace(chunk, batches=outcome.batches, next_offset=outcome.next_offset, filtered=outcome.filtered)
    return replace(passed, dropped=chunk.dropped_in(0, passed.next_offset), dead_letters=letters)


def _dead_letters(chunk: Chunk, failures: Iterable[Failure], limit: int) -> Iterator[Outgoing]:
    """Batches of the records that failed, of about ``limit`` bytes, with the codec of those that had them."""
    reasons = {failure.offset: failure.reason for failure in failures}
    for batch in chunk.batches if reasons else ():
        failed = [_dead_letter(chunk.replica, each, reasons[each.offset]) for each in records_at(batch, reasons)]
        for some in pieces(((each, len(each.body)) for each in failed), limit):
            data, at = pack(some, codec_of(batch.data)), [each.offset for each in some]
            yield Outgoing(data, len(some), at[0], at[-1] + 1, newest(some), raw=False, runs=tuple((n, 1) for n in at))


def _dead_letter(replica: Replica, record: Record, reason: str) -> Record:
    """The record that failed, with the reason and its place as headers."""
    key, value, headers = fields_of(record.body)
    letter_headers = {
        REASON: reason,
        TOPIC: replica.source_topic,
        PARTITION: str(replica.partition),
        OFFSET: str(record.offset),
    }
    more = [(name.encode(), text.encode()) for name, text in letter_headers.items()]
    return record._replace(body=body_of(key, value, [*headers, *more]))


def failed(replica: Replica, failure: Failure) -> PartitionStopped:
    """The stop of a partition before a record that fails."""
    what = "is damaged" if failure.damaged else "fails in the SQL of REPLICA_TRANSFORM_SQL_FILE"
    return PartitionStopped(f"{replica.name} offset {failure.offset} {what}: {failure.reason}")
