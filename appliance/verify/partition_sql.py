"""The SQL that has copied a partition, as values, and as JSON for the process that verifies it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.kafka.records.batch import Header
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.link_sql import LinkSql, SqlChange, history
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import Replica

_END = 2**63 - 1


class BroughtBack(NamedTuple):
    """The records of failbacks at the source: spans of its offsets, and where no map says so, by producer ids."""

    producer_ids: Collection[int] = ()
    spans: Collection[tuple[int, int]] = ()

    def has(self, header: Header) -> bool:
        """True of a batch that a failback has written."""
        at, writer = header.base_offset, header.producer_id
        return writer in self.producer_ids or any(first <= at < end for first, end in self.spans)


NOTHING = BroughtBack()


@dataclass(frozen=True, slots=True)
class PartitionSql:
    """The statements of a partition's copy, each with the source offset from which on it holds; the first from 0 on.

    What the link's failbacks have ``brought_back`` came from the copy as it is.
    """

    statements: tuple[tuple[int, LinkSql], ...]
    brought_back: BroughtBack = NOTHING

    def has_passed(self, header: Header) -> bool:
        """True if records of a batch have passed SQL."""
        return not self.brought_back.has(header) and any(
            sql.text and first <= header.last_offset and header.base_offset < end for first, end, sql in self.spans()
        )

    def spans(self) -> Iterator[tuple[int, int, LinkSql]]:
        """Each statement with its first offset, and the one that follows its last."""
        ends = [*(first for first, _ in self.statements[1:]), _END]
        for (first, sql), end in zip(self.statements, ends, strict=True):
            yield first, end, sql


def sql_of(
    changes: Collection[SqlChange], replicas: Iterable[Replica], brought_back: Mapping[Partition, BroughtBack]
) -> dict[Partition, PartitionSql]:
    """The SQL of those partitions of which records may have passed some, by all changes of the link's."""
    sql_by_partition = {}
    for partition in (replica.source for replica in replicas):
        # What a statement makes of a record does not depend on the statement's number.
        statements = tuple((first, replace(sql, number=0)) for first, sql in history(changes, partition))
        if any(sql.text for _, sql in statements):
            sql_by_partition[partition] = PartitionSql(statements, brought_back.get(partition, NOTHING))
    return sql_by_partition


def statements_of(sqls: Iterable[PartitionSql]) -> list[LinkSql]:
    """The different statements, in order."""
    return list(dict.fromkeys(sql for each in sqls for _, sql in each.statements if sql.text))


@dataclass(frozen=True, slots=True)
class ServedSql:
    """The SQL of some partitions, for the process that verifies them.

    ``sockets`` are by statement those at which the process serves the Spark jobs that evaluate it. ``refused`` are the
    statements that cannot be evaluated, each with the reason.
    """

    partitions: Mapping[Partition, PartitionSql]
    sockets: Mapping[LinkSql, Path]
    refused: Mapping[LinkSql, str]

    def of(self, partitions: Collection[Partition]) -> "ServedSql":
        """That of some of the partitions."""
        return replace(self, partitions={key: sql for key, sql in self.partitions.items() if key in partitions})

    def encoded(self) -> dict[str, Any]:
        """It as JSON."""
        statements = list(dict.fromkeys([LinkSql(), *self.sockets, *self.refused]))
        numbers = {sql: number for number, sql in enumerate(statements)}
        return {
            "statements": [[sql.text, sql.salt] for sql in statements],
            "sockets": [[numbers[sql], str(path)] for sql, path in self.sockets.items()],
            "refused": [[numbers[sql], why] for sql, why in self.refused.items()],
            "partitions": [
                [*partition, [[first, numbers[sql]] for first, sql in each.statements], each.brought_back]
                for partition, each in self.partitions.items()
            ],
        }


def decode_served_sql(fields: Mapping[str, Any]) -> ServedSql:
    """That of ``ServedSql.encoded``."""
    statements = [LinkSql(0, text, salt) for text, salt in fields["statements"]]

    def decoded(described: Sequence[Sequence[int]]) -> tuple[tuple[int, LinkSql], ...]:
        return tuple((first, statements[number]) for first, number in described)

    return ServedSql(
        {
            Partition(topic, number): PartitionSql(decoded(each), BroughtBack(*back))
            for topic, number, each, back in fields["partitions"]
        },
        {statements[number]: Path(path) for number, path in fields["sockets"]},
        {statements[number]: why for number, why in fields["refused"]},
    )


async def brought_back(
    source: KafkaCluster, naming: Naming, replicas: Collection[Replica]
) -> dict[Partition, BroughtBack]:
    """The records that the link's failbacks have brought back from these copies, by the maps of the link in reverse.

    What came from a copy that was made anew since has passed the SQL on its way to the present one.
    """
    maps = OffsetMaps(source, naming.failback)
    await maps.read({each.copy for each in replicas})
    ids, by_source = sorted(maps.producer_ids), {}
    for each in replicas:
        if (position := maps.position(each.copy)) and not is_another(position.source_id, each.destination_id):
            spans = [(segment.range.copy_from, segment.range.copy_to) for segment in maps.segments(each.copy)]
            by_source[each.source] = BroughtBack(ids, spans)
    return by_source
