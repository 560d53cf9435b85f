"""SQL that makes records much larger: Spark's JVM would end where its buffers are full."""

from pathlib import Path

import pytest

from appliance.engine.model.ranges import Range
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import Outgoing
from appliance.kafka.records.records import pack
from tests.support.record_batches import outgoing_of, record
from tests.support.sql import range_of, running_sql, values_of

ZSTD = 4


@pytest.mark.asyncio
async def test_case_502_records_that_sql_makes_much_larger_pass_within_the_memory(
    tmp_path: Path,
) -> None:
    # Records that became twelve times as large ended Spark's JVM, again after each restart.
    statement = "SELECT repeat(string(value), int(string(key))) AS value FROM records"
    async with running_sql(tmp_path, statement) as sql:
        for times, count in ((1_500, 2_000), (100_000, 10)):
            values: list[bytes | None] = [b"%020d" % number for number in range(count)]
            (outcome,) = await sql.service.transform([range_of(values, key=b"%d" % times)])
            assert values_of(outcome) == [(value or b"") * times for value in values]
        (outcome,) = await sql.service.transform([range_of([b"x"] * 3, key=b"9000000")])
        assert outcome.stop is not None
        assert (outcome.stop.offset, "it may make over 8 MB of it" in outcome.stop.reason) == (0, True)
    assert sql.problems == []


@pytest.mark.release  # held by tests/unit/kafka/test_memory.py
@pytest.mark.asyncio
async def test_case_958_a_batch_that_is_too_large_for_sql_stops_its_partition_alone_and_many_pass_in_parts(
    tmp_path: Path,
) -> None:
    # Ranges came back whole in the codec of their first batch: of 5 x 200 MB of zeros without one, a gigabyte.
    zeros = [record(at, bytes(1_000_000)) for at in range(120)]
    large = Outgoing(pack(zeros[:80], ZSTD), 80, 0, 80, 1000, raw=True)
    bomb = Range(Partition("bombs", 0), 0, 80, (large,), 10**6)
    first, rest = outgoing_of(zeros[:1], 1), [outgoing_of(zeros[at : at + 30], at + 30, ZSTD) for at in (1, 31, 61)]
    many = Range(Partition("many", 0), 0, 91, (*first, *(batch for batches in rest for batch in batches)), 10**6)
    # What it makes of zeros, no codec makes smaller: so the range is divided.
    made = "aes_encrypt(value, salt, 'GCM', 'DEFAULT', unhex('000102030405060708090a0b'))"
    statement = f"SELECT IF(topic = 'many', {made}, value) AS value FROM records"
    async with running_sql(tmp_path, statement, salt="0123456789abcdef") as sql:
        stopped, small = await sql.service.transform([bomb, range_of([b"1", b"2"])])
        (passed,) = await sql.service.transform([many])
    assert stopped.stop is not None
    assert (stopped.stop.offset, stopped.stop.damaged, stopped.batches) == (0, True, ())
    assert "the batch at offset 0 does not decompress: it takes more than" in stopped.stop.reason
    assert values_of(small) == [b"1", b"2"]
    assert [len(value or b"") > 1_000_000 for value in values_of(passed)] == [True] * 91
    assert b"is asked for again in parts" in sql.event_log()  # of the first try, by Spark; its next one gets the parts
