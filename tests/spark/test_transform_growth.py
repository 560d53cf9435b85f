"""SQL that makes records much larger: Spark's JVM would end where its buffers are full."""

from pathlib import Path

import pytest

from tests.support.sql import range_of, running_sql, values_of


@pytest.mark.asyncio
async def test_case_502_records_that_sql_makes_much_larger_pass_within_the_memory(
    tmp_path: Path,
) -> None:
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
