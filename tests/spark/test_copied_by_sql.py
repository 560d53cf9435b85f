"""The source's records as the SQL of their offsets has made them."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from appliance.errors import PartitionStopped
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.records import Record, body, body_of, key_and_value, placed, unpack
from appliance.link.model.link_sql import LinkSql, SqlChange, salt_digest
from appliance.link.model.replicas import Replica
from appliance.settings.secret import Secret
from appliance.spark.session import Spark
from appliance.verify.partition_sql import BroughtBack, decode_served_sql, sql_of
from appliance.verify.sql import CopiedBySql
from appliance.verify.sql_jobs import prepared, running_jobs
from appliance.verify.sql_service import serving
from tests.support.engine import ENGINE
from tests.support.patience import PATIENCE
from tests.support.sql import spark_for_sql

pytestmark = pytest.mark.asyncio(loop_scope="module")

ORDERS = Partition("orders", 0)
SALT = Secret("MtQ1vR8kX0sJ4yWbN7cLzG2hUe5pAoDf9iTqKxB3")
SMALL = LinkSql(1, "SELECT string(6 / int(string(value))) AS value FROM records WHERE string(value) <> '2'")
HASHED = LinkSql(2, "SELECT sha2(concat(salt, string(key)), 256) AS key FROM records", salt_digest(SALT.reveal()))


NOTHING: Mapping[Partition, BroughtBack] = {}


def replica(partition: int) -> Replica:
    return Replica("orders", partition, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))


def batch(first: int, *values: bytes) -> Batch:
    return placed([Record(first + n, 9, body(b"key", value, [("h", b"1")])) for n, value in enumerate(values)])


def contents(batches: list[Batch]) -> list[list[tuple[int, bytes | None]]]:
    """The offsets and values of each batch."""
    return [[(record.offset, key_and_value(record.body)[1]) for record in unpack(each, 0)] for each in batches]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def spark(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Spark]:
    async with spark_for_sql(tmp_path_factory.mktemp("sql"), replace(ENGINE, tasks=2)) as made:
        yield made


@contextlib.asynccontextmanager
async def copied(
    spark: Spark,
    directory: Path,
    changes: Sequence[SqlChange],
    salt: Secret = SALT,
    brought_back: Mapping[Partition, BroughtBack] = NOTHING,
) -> AsyncIterator[CopiedBySql]:
    """The records of two partitions as the SQL has made them, for a process to which all of it went as JSON."""
    partitions = sql_of(changes, [replica(0), replica(1)], brought_back)
    made = await asyncio.to_thread(prepared, spark, partitions, salt, directory, 1)
    sent = json.loads(json.dumps(made.of_process(0).of([ORDERS]).encoded()))
    async with running_jobs(made, 1), serving(decode_served_sql(sent)) as service:
        yield CopiedBySql(partitions, service.evaluate)


async def made(sql: CopiedBySql, batches: list[Batch]) -> list[list[tuple[int, bytes | None]]]:
    """The offsets and values of what is made of the batches of a partition."""
    choose = sql.of(ORDERS, None)
    assert choose is not None
    async with asyncio.timeout(PATIENCE):
        return contents(await choose(batches))


async def test_each_offset_has_what_its_sql_makes_of_it_and_what_that_leaves_out_is_absent(
    spark: Spark, tmp_path: Path
) -> None:
    changes = [SqlChange(SMALL, "run", 1, 0, {ORDERS: 2}), SqlChange(LinkSql(2), "run", 2, 0, {ORDERS: 6})]
    async with copied(spark, tmp_path, changes) as sql:
        await made(sql, [batch(0, b"0", b"1")])
        assert not sql.may_lack_keys(ORDERS)
        found = await made(
            sql, [batch(0, b"0", b"1"), batch(2, b"2", b"3"), batch(4, b"0"), batch(5, b"6", b"0", b"2")]
        )
        assert found == [[(0, b"0"), (1, b"1")], [(3, b"2.0")], [(5, b"1.0"), (6, b"0"), (7, b"2")]]
        assert sql.may_lack_keys(ORDERS)
        assert sql.of(Partition("orders", 1), None) is None


async def test_records_that_were_copied_with_another_salt_are_not_compared(spark: Spark, tmp_path: Path) -> None:
    changes, batches = [SqlChange(HASHED, "run", 1, 0, {ORDERS: 1})], [batch(0, b"a", b"b")]
    async with copied(spark, tmp_path, changes) as sql:
        choose = sql.of(ORDERS, None)
        assert choose is not None
        (found,) = await choose(batches)
    assert [len(key_and_value(record.body)[0] or b"") for record in unpack(found, 0)] == [3, 64]
    async with copied(spark, tmp_path, changes, Secret("another")) as sql:
        with pytest.raises(PartitionStopped, match="records from offset 1 on were copied with another REPLICA_TRANS"):
            await made(sql, batches)


async def test_records_that_were_copied_by_sql_which_is_refused_now_are_not_compared(
    spark: Spark, tmp_path: Path
) -> None:
    changes = [SqlChange(LinkSql(1, "SELECT uuid() AS key FROM records"), "run", 1, 0)]
    async with copied(spark, tmp_path, changes) as sql:
        with pytest.raises(PartitionStopped, match="records from offset 0 on were copied by SQL that is refused"):
            await made(sql, [batch(0, b"a")])


async def test_case_482_what_a_failback_has_brought_back_is_as_it_is(spark: Spark, tmp_path: Path) -> None:
    # The SQL was evaluated for it, though a failback copies records as they are.
    back, key = batch(1, b"2", b"0"), body(b"key", b"6", [("h", b"1")])
    back = replace(back, header=back.header._replace(producer_id=7))
    async with copied(spark, tmp_path, [SqlChange(SMALL, "run", 1, 0)], SALT, {ORDERS: BroughtBack([7])}) as sql:
        found = await made(sql, [batch(0, b"6"), back, placed([Record(3, 9, key)])])
    assert found == [[(0, b"1.0")], [(1, b"2"), (2, b"0")], [(3, b"1.0")]]


async def test_case_520_a_record_that_the_sql_makes_too_large_is_absent_as_in_the_copy(
    spark: Spark, tmp_path: Path
) -> None:
    # It was evaluated without the limit of the copy: one that had become a dead letter was missing there.
    changes = [SqlChange(LinkSql(1, "SELECT repeat('x', int(string(value))) AS value FROM records"), "run", 1, 0)]
    async with copied(spark, tmp_path, changes) as sql:
        assert await made(sql, [batch(0, b"1", b"9000000", b"2")]) == [[(0, b"x"), (2, b"xx")]]


async def test_what_is_made_has_the_same_bytes_however_its_batches_were_read(spark: Spark, tmp_path: Path) -> None:
    odd = placed([Record(9, -5, body_of(b"key", b"6", [(b"\xff", None)])), Record(12, 3, body(None, b"3"))])
    batches = [batch(0, b"6", b"0", b"3"), batch(3, b"2"), batch(4, b"1"), odd, batch(20, *[b"2", b"3"] * 40)]
    async with copied(spark, tmp_path, [SqlChange(SMALL, "run", 1, 0)]) as sql:
        choose = sql.of(ORDERS, None)
        assert choose is not None
        together = await choose(batches)
        one_by_one = [found for each in batches for found in await choose([each])]
    assert [bytes(each.data) for each in together] == [bytes(each.data) for each in one_by_one]
    assert [bytes(each.data) for each in together] == [bytes(placed(unpack(each, 0)).data) for each in together]
    assert [each.header.last_offset for each in together] == [2, 4, 12, 99]
    assert [record.timestamp for record in unpack(together[2], 0)] == [-5, 3]


async def test_case_543_a_key_that_newer_records_of_the_source_no_longer_show_may_have_been_copied(
    spark: Spark, tmp_path: Path
) -> None:
    # One key of the source has several keys in the copy. Compaction leaves its newest record, so that a right copy had
    # keys that "the destination alone has", and differed.
    for key, may_lack in (("key", False), ("value", True)):
        changes = [SqlChange(LinkSql(1, f"SELECT {key} AS key FROM records"), "run", 1, 0)]
        async with copied(spark, tmp_path, changes) as sql:
            await made(sql, [batch(7, b"paid")])
            assert sql.may_lack_keys(ORDERS) is may_lack
