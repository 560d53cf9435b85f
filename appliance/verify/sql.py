"""The source's records as the link's SQL has made them, for the comparison with their copies.

The positions topic says which statement has copied which offsets. Its records are evaluated anew, so that one that was
left out, or that the statement fails on, must be absent from the copy. What a failback has brought back from the copy
to the source has passed no SQL.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from appliance.errors import ApplianceError, PartitionStopped
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.kafka.records.batch import LOG_APPEND_TIME, Batch
from appliance.kafka.records.records import Record, key_and_value, placed, unpack
from appliance.link.client.checkpoint_log import peek_checkpoints
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.link_sql import LinkSql, SqlChange, history, salt_digest
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import Replica
from appliance.settings.secret import Secret
from appliance.transform.model.statement import Statement
from appliance.verify.reader import Choose

if TYPE_CHECKING:
    from appliance.transform.evaluation import Evaluation

Session = Callable[[], AbstractAsyncContextManager[Any]]
"""Starts a session of Spark SQL."""


class CopiedBySql:
    """Makes the records of the source what the SQL of their offsets has made of them; one session of Spark for all.

    ``failback`` are by source partition the producer ids of the link's failbacks, whose records came from the present
    copies as they are.
    """

    def __init__(
        self,
        changes: Collection[SqlChange],
        salt: Secret,
        session: Any = None,
        failback: Mapping[Partition, Collection[int]] = MappingProxyType({}),
    ) -> None:
        self._changes = changes
        self._salt = salt
        self._failback = failback
        self._session = session
        self._evaluations: dict[LinkSql, Evaluation] = {}
        self._one_at_a_time = asyncio.Lock()
        self._lacking: set[Partition] = set()

    @property
    def is_needed(self) -> bool:
        """True if some of the records have passed SQL."""
        return bool(self._changes)

    def may_lack_keys(self, partition: Partition) -> bool:
        """True if some of a partition's records that were read so far are left out, failed, or have another key.

        Then compaction may have taken the only record of a copied key from the source.
        """
        return partition in self._lacking

    def of(self, partition: Partition, choose: Choose | None) -> Choose | None:
        """The batches that are to be compared, of those that ``choose`` returns, as the SQL has made them."""
        held = history(self._changes, partition)
        if not any(sql.text for _, sql in held):
            return choose
        brought_back = self._failback.get(partition, ())

        async def made(batches: list[Batch]) -> list[Batch]:
            chosen = await choose(batches) if choose else batches
            as_they_are = [each for each in chosen if each.header.producer_id in brought_back]
            others = [each for each in chosen if each.header.producer_id not in brought_back]
            async with self._one_at_a_time:
                some = await asyncio.to_thread(self._made, partition, held, others)
            return sorted([*some, *as_they_are], key=lambda each: each.header.base_offset)

        return made

    def _made(self, partition: Partition, held: Sequence[tuple[int, LinkSql]], batches: Iterable[Batch]) -> list[Batch]:
        """The batches without what is left out; each keeps its records' offsets."""
        unpacked = [(batch, unpack(batch, 0)) for batch in batches]
        made: dict[int, Record] = {}
        for sql, kind, some in _runs(held, unpacked):
            if sql.text:
                outcomes = self._evaluation(sql, some[0]).outcomes(partition, some, kind)
                kept = [each.record for each in outcomes if each.record is not None and not each.failed]
            else:
                kept = some
            made |= {record.offset: record for record in kept}
        every = [record for _, records in unpacked for record in records]
        if any(each.offset not in made or _key(made[each.offset]) != _key(each) for each in every):
            self._lacking.add(partition)
        left = ([made[record.offset] for record in records if record.offset in made] for _, records in unpacked)
        return [placed(records) for records in left if records]

    def _evaluation(self, sql: LinkSql, first: Record) -> Evaluation:
        from appliance.transform.evaluation import Evaluation  # loads PySpark's SQL, which few links need

        if sql.salt and sql.salt != salt_digest(self._salt.reveal()):
            text = f"records from offset {first.offset} on were copied with another REPLICA_TRANSFORM_SALT"
            raise PartitionStopped(f"{text}: verify with that one")
        if sql not in self._evaluations:
            statement = Statement(sql.text, f"the link's SQL {sql.digest[:12]}")
            salt = self._salt if sql.salt else Secret("")
            self._evaluations[sql] = Evaluation(self._session, statement, salt)
        return self._evaluations[sql]


@contextlib.asynccontextmanager
async def copied_by_sql(
    source: KafkaCluster,
    changes: Collection[SqlChange],
    naming: Naming,
    replicas: Collection[Replica],
    salt: Secret,
    session: Session | None,
) -> AsyncIterator[CopiedBySql]:
    """The SQL that has copied these, by all its ``changes``; starts Spark if that was SQL.

    Raises:
        ApplianceError: there was SQL, and no ``session``.
        ProcessFailed: Spark does not start.
        BrokerBusy, BrokerRefused, Unreachable, PeerError: as everywhere.
    """
    if not any(sql.text for replica in replicas for _, sql in history(changes, replica.source)):
        yield CopiedBySql((), salt)
    elif session is None:
        raise ApplianceError("records were copied by SQL: verify them with `appliance verify`")
    else:
        failback = await _failback(source, naming, replicas)
        async with session() as started:
            yield CopiedBySql(changes, salt, started, failback)


async def _failback(
    source: KafkaCluster, naming: Naming, replicas: Iterable[Replica]
) -> dict[Partition, frozenset[int]]:
    """The producer ids with which the lanes of the link's failbacks have brought records of these copies back.

    What came from a copy that was made anew since has passed the SQL on its way to the present one.
    """
    name = naming.failback.positions_topic
    topic = (await source.metadata([name])).topics.get(name)
    lanes = len(topic.leaders) if topic else 0
    checkpoints = await retry_while_busy(lambda: peek_checkpoints(source, name, lanes))
    held = {key: each for checkpoint in checkpoints for key, each in checkpoint.positions.items()}
    ends = [each.copy_end for each in held.values()]
    marks = [checkpoint.mark for checkpoint in checkpoints]
    ids = frozenset(each.producer_id for each in (*ends, *marks) if each and each.producer_id >= 0)
    present = [each for each in replicas if each.copy in held]
    return {each.source: ids for each in present if not is_another(held[each.copy].source_id, each.destination_id)}


def _key(record: Record) -> bytes | None:
    return key_and_value(record.body)[0]


def _runs(
    held: Sequence[tuple[int, LinkSql]], unpacked: Iterable[tuple[Batch, list[Record]]]
) -> list[tuple[LinkSql, int, list[Record]]]:
    """The records of batches in order, those together that share their SQL and their timestamps' type."""
    runs: list[tuple[LinkSql, int, list[Record]]] = []
    for batch, records in unpacked:
        kind = int(bool(batch.header.attributes & LOG_APPEND_TIME))
        for record in records:
            sql = [sql for first, sql in held if first <= record.offset][-1]
            if not runs or runs[-1][:2] != (sql, kind):
                runs.append((sql, kind, []))
            runs[-1][2].append(record)
    return runs
