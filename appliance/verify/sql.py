"""The source's records as the link's SQL has made them, for the comparison with their copies.

The positions topic says which statement has copied which offsets. Its records are evaluated anew, by the same Spark
jobs as for the copy, so that one that was left out, or that the statement fails on, must be absent from it. What a
failback has brought back from the copy to the source has passed no SQL.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from appliance.engine.model.ranges import Outcome, Range
from appliance.errors import BatchCorrupt
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.arrays.columns import columns_of, joined, placed
from appliance.kafka.records.arrays.encoding import Columns
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.outgoing import UNLIMITED, outgoing
from appliance.link.model.link_sql import LinkSql
from appliance.logs.reader import Choose
from appliance.verify.partition_sql import PartitionSql

Evaluate = Callable[[LinkSql, Range], Awaitable[Outcome]]
"""Gives the outcome of a range by a statement."""


class CopiedBySql:
    """Makes the records of the source what the SQL of their offsets has made of them."""

    def __init__(self, partitions: Mapping[Partition, PartitionSql], evaluate: Evaluate) -> None:
        self._partitions = partitions
        self._evaluate = evaluate
        self._lacking: set[Partition] = set()
        self.failed_at: dict[Partition, int] = {}
        """The last offset that was read so far at which a partition's SQL fails."""

    def may_lack_keys(self, partition: Partition) -> bool:
        """True if some of a partition's records that were read so far are left out, failed, or have another key.

        Then compaction may have taken the only record of a copied key from the source.
        """
        return partition in self._lacking

    def of(self, partition: Partition, choose: Choose | None, *, by_key: bool = True) -> Choose | None:
        """The batches that are to be compared, of those that ``choose`` returns, as the SQL has made them.

        Unless they are compared ``by_key``, nobody asks for keys that differ, and none are looked for.
        """
        sql = self._partitions.get(partition)
        if sql is None:
            return choose

        async def transformed(batches: list[Batch]) -> list[Batch]:
            chosen = await choose(batches) if choose else batches
            batches_of_sql = [each for each in chosen if sql.has_passed(each.header)]
            as_they_are = [each for each in chosen if not sql.has_passed(each.header)]
            some = await self._made(partition, sql, batches_of_sql, by_key=by_key) if batches_of_sql else []
            return sorted([*some, *as_they_are], key=lambda each: each.header.base_offset)

        return transformed

    async def _made(
        self, partition: Partition, sql: PartitionSql, batches: Sequence[Batch], *, by_key: bool
    ) -> list[Batch]:
        """The batches without what is left out; each keeps its records' offsets."""
        start, end = batches[0].header.base_offset, batches[-1].header.last_offset + 1
        whole = Range(partition, start, end, tuple(outgoing(batches, 0)), UNLIMITED, keeps_codec=False)
        records = joined([await self._kept(each, statement) for each, statement in _by_statement(whole, sql)])
        is_new = by_key and partition not in self._lacking
        if is_new and (len(records) < whole.records or not _keys_of(whole).equals(records.keys)):
            self._lacking.add(partition)
        return [placed(each) for each in _by_batch(records, batches)]

    async def _kept(self, each: Range, statement: LinkSql) -> Columns:
        """The records that a statement keeps of a range."""
        if not statement.text:
            return columns_of(each.batches).between(each.start, each.end)
        outcome = await self._evaluate(statement, each)
        if outcome.stop is not None:
            raise BatchCorrupt(outcome.stop.reason)
        if outcome.failures:
            last = outcome.failures[-1].offset
            self.failed_at[each.partition] = max(last, self.failed_at.get(each.partition, last))
        return columns_of(outcome.batches)


def _by_statement(whole: Range, sql: PartitionSql) -> Iterator[tuple[Range, LinkSql]]:
    """The parts of a range that have records, each with its statement."""
    for first, end, statement in sql.spans():
        part = whole
        if first > part.start:
            _, part = part.divide(min(first, part.end))
        if end < part.end:
            part, _ = part.divide(max(end, part.start))
        if part.records:
            yield part, statement


def _keys_of(each: Range) -> pa.BinaryArray:
    return columns_of(each.batches).between(each.start, each.end).keys


def _by_batch(records: Columns, batches: Sequence[Batch]) -> Iterator[Columns]:
    """Records by the batches in which they were, without batches of which none is left."""
    begin = 0
    for batch in batches:
        end = int(np.searchsorted(records.offsets, batch.header.last_offset + 1))
        if begin < end:
            yield records.slice(begin, end)
        begin = end
