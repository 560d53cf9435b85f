"""The source's records as the SQL of their offsets has made them."""

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from appliance.errors import PartitionStopped
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.records import Record, body, key_and_value, placed, unpack
from appliance.link.model.link_sql import LinkSql, SqlChange, salt_digest
from appliance.settings.secret import Secret
from appliance.verify.sql import CopiedBySql
from tests.support.spark_sql import session

__all__ = ["session"]

ORDERS = ("orders", 0)
SALT = Secret("MtQ1vR8kX0sJ4yWbN7cLzG2hUe5pAoDf9iTqKxB3")
SMALL = LinkSql(1, "SELECT string(6 / int(string(value))) AS value FROM records WHERE string(value) <> '2'")
HASHED = LinkSql(2, "SELECT sha2(concat(salt, string(key)), 256) AS key FROM records", salt_digest(SALT.reveal()))


def batch(first: int, *values: bytes) -> Batch:
    return placed([Record(first + n, 9, body(b"key", value, [("h", b"1")])) for n, value in enumerate(values)])


def contents(batches: list[Batch]) -> list[list[tuple[int, bytes | None]]]:
    """The offsets and values of each batch."""
    return [[(record.offset, key_and_value(record.body)[1]) for record in unpack(each, 0)] for each in batches]


async def test_each_offset_has_what_its_sql_makes_of_it_and_what_that_leaves_out_is_absent(
    session: SparkSession,
) -> None:
    changes = [SqlChange(SMALL, "run", 1, 0, {ORDERS: 2}), SqlChange(LinkSql(2), "run", 2, 0, {ORDERS: 6})]
    sql = CopiedBySql(changes, SALT, session)
    choose = sql.of(ORDERS, None)
    assert choose is not None
    await choose([batch(0, b"0", b"1")])
    assert not sql.may_lack_keys(ORDERS)
    made = await choose([batch(0, b"0", b"1"), batch(2, b"2", b"3"), batch(4, b"0"), batch(5, b"6", b"0", b"2")])
    assert contents(made) == [[(0, b"0"), (1, b"1")], [(3, b"2.0")], [(5, b"1.0"), (6, b"0"), (7, b"2")]]
    assert sql.may_lack_keys(ORDERS)
    assert CopiedBySql(changes, SALT, session).of(("orders", 1), None) is None


async def test_records_that_were_copied_with_another_salt_are_not_compared(session: SparkSession) -> None:
    changes = [SqlChange(HASHED, "run", 1, 0, {ORDERS: 1})]
    choose = CopiedBySql(changes, SALT, session).of(ORDERS, None)
    assert choose is not None
    (made,) = await choose([batch(0, b"a", b"b")])
    assert [len(key_and_value(record.body)[0] or b"") for record in unpack(made, 0)] == [3, 64]
    choose = CopiedBySql(changes, Secret("another"), session).of(ORDERS, None)
    assert choose is not None
    with pytest.raises(PartitionStopped, match="records from offset 1 on were copied with another REPLICA_TRANSFORM"):
        await choose([batch(0, b"a", b"b")])


async def test_case_482_what_a_failback_has_brought_back_is_as_it_is(session: SparkSession) -> None:
    back, key = batch(1, b"2", b"0"), body(b"key", b"6", [("h", b"1")])
    back = replace(back, header=back.header._replace(producer_id=7))
    choose = CopiedBySql([SqlChange(SMALL, "run", 1, 0)], SALT, session, {ORDERS: {7}}).of(ORDERS, None)
    assert choose is not None
    made = await choose([batch(0, b"6"), back, placed([Record(3, 9, key)])])
    assert contents(made) == [[(0, b"1.0")], [(1, b"2"), (2, b"0")], [(3, b"1.0")]]


async def test_case_543_a_key_that_newer_records_of_the_source_no_longer_show_may_have_been_copied(
    session: SparkSession,
) -> None:
    # One key of the source has several keys in the copy. Compaction leaves its newest record, so that a right copy had
    # keys that "the destination alone has", and differed.
    for key, may_lack in (("key", False), ("value", True)):
        changes = [SqlChange(LinkSql(1, f"SELECT {key} AS key FROM records"), "run", 1, 0)]
        sql = CopiedBySql(changes, SALT, session)
        choose = sql.of(ORDERS, None)
        assert choose is not None
        await choose([batch(7, b"paid")])
        assert sql.may_lack_keys(ORDERS) is may_lack


async def test_case_544_a_record_for_which_there_was_no_room_has_failed_in_a_verification_too(
    session: SparkSession,
) -> None:
    # It was a dead letter, and a verification expected it in the copy: a right copy differed.
    growing = LinkSql(1, "SELECT repeat(string(value), 8192000) AS value FROM records")
    choose = CopiedBySql([SqlChange(growing, "run", 1, 0)], SALT, session).of(ORDERS, None)
    assert choose is not None
    (made,) = await choose([batch(0, b"a", b"ab", b"")])
    assert [(record.offset, len(key_and_value(record.body)[1] or b"")) for record in unpack(made, 0)] == [
        (0, 8_192_000),
        (2, 0),
    ]
