"""``appliance transform --dry-run``: some of the source's records, and what the link's SQL makes of them."""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from appliance.errors import BatchCorrupt, Interrupted, SettingsError
from appliance.grouping import grouped
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records.batch import LOG_APPEND_TIME, Batch
from appliance.kafka.records.decompression import LIMIT
from appliance.kafka.records.records import Record, body, unpack
from appliance.link.client.clusters import source_cluster
from appliance.link.model.naming import Naming
from appliance.link.model.topic_choice import add_topic_options, among
from appliance.logs.reader import LogReader, spans
from appliance.output import say_json
from appliance.runtime.background import unless_stopped
from appliance.runtime.command import Command, add_json, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings
from appliance.spark.session import local_spark
from appliance.sql.evaluation import Evaluation
from appliance.sql.model.dry_run import Tried, as_json, as_table, summary
from appliance.sql.model.statement import Statement
from appliance.tables import cell, show

_WIDTH = 160
"""Columns of a table that is not shown at a terminal."""

_ROOM = LIMIT // 4
"""Bytes of a batch, and about those of a partition's records, that are tried."""

_FURTHER = 1024
"""The offsets in which newest records are searched, as a multiple of their number: compaction leaves holes."""


class _Read(NamedTuple):
    """A record of the source, with the type of its timestamp; the first one of a batch if that cannot be read."""

    partition: Partition
    record: Record
    timestamp_type: int
    reason: str = ""


def _options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dry-run", action="store_true", required=True, help="write nothing, to either cluster")
    add_topic_options(command)
    command.add_argument("--records", type=_count, default=20, metavar="N", help="of each topic (default: 20)")
    command.add_argument(
        "--from", dest="start", choices=["newest", "earliest"], default="newest", help="which (default: newest)"
    )
    add_json(command, "a table")


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 10_000:
        raise argparse.ArgumentTypeError("expected a number from 1 to 10000")
    return number


async def _transform(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> int:
    """Print the records; 1 when the SQL fails on one."""
    statement = Statement.of(settings.transform)
    if statement is None:
        raise SettingsError(["REPLICA_TRANSFORM_SQL_FILE: missing: the file with the SQL to try"])
    tried = await unless_stopped(stopping, _tried(settings, parsed, statement))
    if tried is None:
        raise Interrupted("stopped before the end: nothing is tried")
    if parsed.json:
        say_json(as_json(statement.digest, tried))
    else:
        show(*[as_table(tried)] * bool(tried), cell(summary(tried)), width=_WIDTH)
    return 1 if any(each.reason for each in tried) else 0


async def _tried(settings: Settings, parsed: argparse.Namespace, statement: Statement) -> list[Tried]:
    async with source_cluster(settings) as source:
        metadata = await source.metadata(None)
        topics = _wanted(metadata, Naming.of(settings), parsed.topic)
        reading = [_read(source, metadata, topic, parsed.records, parsed.start == "newest") for topic in topics]
        records_read = [each for records in await asyncio.gather(*reading) for each in records]
    engine, name = replace(settings.engine, tasks=1), f"{settings.replicator}-sql"
    async with local_spark(engine, name, parsed.env_file.absolute()) as spark:
        session = await asyncio.to_thread(spark.sql_session)
        evaluation = await asyncio.to_thread(Evaluation, session, statement, settings.transform.salt)
        return await asyncio.to_thread(_outcomes, evaluation, records_read)


def _wanted(metadata: Metadata, naming: Naming, topics: str) -> list[str]:
    """The chosen topics of those that are copied."""
    copied = [topic.name for topic in naming.copied(metadata.topics)]
    if not copied and not topics:
        raise SettingsError([f"{naming.choice} matches no topic of the source"])
    return among(topics, copied, "no topic of the source that is copied")


async def _read(source: KafkaCluster, metadata: Metadata, topic: str, count: int, newest: bool) -> list[_Read]:
    """This many records of a topic, in the order of partitions and offsets."""
    records_read: list[_Read] = []
    for each, span in (await spans(source, metadata, metadata.topics[topic].partitions)).items():
        records_read += await (_last if newest else _first)(source, each, span.start, span.end, count)
    chosen = (
        sorted(records_read, key=lambda read: read.record.timestamp, reverse=True)[:count]
        if newest
        else records_read[:count]
    )
    return sorted(chosen, key=lambda read: (read.partition, read.record.offset))


async def _last(source: KafkaCluster, partition: Partition, start: int, end: int, count: int) -> list[_Read]:
    span, records_read = count, list[_Read]()
    while len(records_read) < count and span <= _FURTHER * count:
        begin = max(end - span, start)
        records_read = await _first(source, partition, begin, end, span)
        if begin == start:
            break
        span *= 4
    return records_read[-count:]


async def _first(source: KafkaCluster, partition: Partition, start: int, end: int, count: int) -> list[_Read]:
    reader, records_read, room = LogReader(source, partition, "transform", start), list[_Read](), _ROOM
    async for batches in reader.until(end):
        for batch in batches:
            read = [each for each in _unpacked(partition, batch, start) if each.record.offset < end] if room > 0 else []
            records_read, room = records_read + read, room - sum(len(each.record.body) for each in read)
        if len(records_read) >= count or room <= 0:
            break
    return records_read[:count]


def _unpacked(partition: Partition, batch: Batch, start: int) -> list[_Read]:
    kind, header = int(bool(batch.header.attributes & LOG_APPEND_TIME)), batch.header
    try:
        return [_Read(partition, record, kind) for record in unpack(batch, start, _ROOM)]
    except BatchCorrupt as error:
        first = Record(max(header.base_offset, start), header.base_timestamp, body(None, None))
        return [_Read(partition, first, kind, str(error))]


def _outcomes(evaluation: Evaluation, records_read: Sequence[_Read]) -> list[Tried]:
    together = grouped(((read.partition, read.timestamp_type), read.record) for read in records_read if not read.reason)
    tried = [Tried(read.partition, read.record, None, read.reason) for read in records_read if read.reason]
    for (partition, kind), records in together.items():
        for record, outcome in zip(records, evaluation.outcomes(partition, records, kind), strict=True):
            reason = evaluation.reason(partition, record, kind) if outcome.failed else ""
            tried.append(Tried(partition, record, outcome.record, reason))
    return sorted(tried, key=lambda each: (each.partition, each.before.offset))


TRANSFORM = Command(
    "Reads some records of the source, and shows them beside what the SQL of REPLICA_TRANSFORM_SQL_FILE makes of them: "
    "changed, unchanged, left out, or the reason that it fails. It writes nothing. Exit code 1 when it fails on one.",
    with_settings(Role.REPLICATOR, _transform),
    _options,
)
