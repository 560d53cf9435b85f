"""The SQL of a process that verifies, whose Spark has ended or fails again and again: nobody waits for ever."""

import asyncio
from pathlib import Path

import pytest

from appliance.engine.model.ranges import Range
from appliance.errors import PartitionStopped, ProcessFailed
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.link_sql import LinkSql
from appliance.sql.flight.connection import read_message
from appliance.sql.flight.messages import encode
from appliance.verify.partition_sql import ServedSql
from appliance.verify.sql_service import serving
from tests.support.patience import PATIENCE

RANGE = Range(Partition("orders", 0), 7, 9, (), 0)
SQL, REFUSED = LinkSql(0, "SELECT key FROM records"), LinkSql(0, "SELECT uuid() AS key FROM records")


def served(directory: Path) -> ServedSql:
    return ServedSql({}, {SQL: directory / "socket"}, {REFUSED: "were copied by SQL that is refused"})


async def test_whoever_waits_learns_that_spark_has_ended(tmp_path: Path) -> None:
    async with serving(served(tmp_path)) as service:
        waiting = [asyncio.create_task(service.evaluate(SQL, RANGE)) for _ in range(2)]
        while not (tmp_path / "socket").exists():
            await asyncio.sleep(0)
        service.give_up(ProcessFailed("Spark's JVM ended with status 1"))
        async with asyncio.timeout(PATIENCE):
            for each in waiting:
                with pytest.raises(ProcessFailed, match="Spark's JVM ended with status 1"):
                    await each


async def test_whoever_waits_learns_that_every_job_fails_and_why(tmp_path: Path) -> None:
    async with serving(served(tmp_path)) as service, asyncio.timeout(PATIENCE):
        waiting = asyncio.create_task(service.evaluate(SQL, RANGE))
        while not (tmp_path / "socket").exists():
            await asyncio.sleep(0)
        answers, driver = await asyncio.open_unix_connection(tmp_path / "socket")
        driver.write(encode({"role": "driver"}))
        for reason in [*["no memory"] * 19, "", *["no memory"] * 19]:
            driver.write(encode({"ended": reason, "of_record": False}))
            await read_message(answers)
        assert not waiting.done()
        driver.write(encode({"ended": "no memory", "of_record": False}))
        with pytest.raises(ProcessFailed, match="a Spark job failed: no memory"):
            await waiting
        driver.close()


async def test_a_statement_that_cannot_be_evaluated_stops_its_partition_alone(tmp_path: Path) -> None:
    async with serving(served(tmp_path)) as service:
        with pytest.raises(PartitionStopped, match="records from offset 7 on were copied by SQL that is refused"):
            await service.evaluate(REFUSED, RANGE)
