"""SQL in flight, through real Spark and two real brokers: exactly once, in order, whatever ends in between."""

import json
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from testbed.process import OwnedProcess
from tests.spark.test_one_topic import four, start
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.processes import family, runs
from tests.support.rows import Row, read_rows, until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

MASKED = """
SELECT key, regexp_replace(CAST(value AS STRING), '"card":"[0-9]*"', '"card":"masked"') AS value, headers
FROM records WHERE CAST(get_json_object(CAST(value AS STRING), '$.number') AS INT) % 2 = 0
"""


def value(number: int) -> bytes:
    return json.dumps({"number": number, "card": f"{number:016}"}, separators=(",", ":")).encode()


def produce(pair: Pair, topic: str, numbers: range, partition: int = 0) -> None:
    producer = pair.producer()
    for number in numbers:
        headers = [("first", b"%d" % number), ("none", None), ("first", b"")] if number % 3 else None
        producer.produce(topic, value(number), b"key %d" % number, partition, headers=headers)
    assert producer.flush(PATIENCE) == 0


def masked(rows: list[Row]) -> list[Row]:
    """What the statement makes of these rows."""
    made = []
    for partition, key, content, *rest in rows:
        assert content is not None
        number = json.loads(content)["number"]
        if number % 2 == 0:
            made.append((partition, key, content.replace(b"%016d" % number, b"masked"), *rest))
    return made


@asynccontextmanager
async def transforming(
    pair: Pair, topic: str, directory: Path, statement: str, **more: str
) -> AsyncIterator[OwnedProcess]:
    """The replicator with a statement."""
    file = directory / "transform.sql"
    file.write_text(statement)
    variables: Mapping[str, str] = {"TASKS": "1", "REPLICA_TRANSFORM_SQL_FILE": str(file), **more}
    replicator = await start("replicate", {**four(pair, topic), **variables}, directory)
    try:
        yield replicator
    finally:
        await replicator.kill()


def workers(replicator: OwnedProcess) -> list[psutil.Process]:
    """The Python processes that Spark has forked."""
    daemons = [process for process in family(replicator.pid) if runs(process, "appliance.replicator.spark.daemon")]
    return [worker for daemon in daemons for worker in daemon.children()]


async def test_records_are_masked_and_filtered_exactly_once_though_every_worker_is_killed(
    pair: Pair, tmp_path: Path
) -> None:
    topic = pair.topic("source")
    copy = f"destination-{topic}"
    async with transforming(pair, topic, tmp_path, MASKED) as replicator:
        for round_ in range(1, 5):
            produce(pair, topic, range(2000 * (round_ - 1), 2000 * round_))
            await until_rows(pair.grape, copy, 1000 * (round_ - 1) + 1)
            for worker in workers(replicator)[round_ % 2 :: 2]:
                os.kill(worker.pid, signal.SIGKILL)
        copies = await until_rows(pair.grape, copy, 4000)
    assert copies == masked(read_rows(pair.orange, topic, 0))
