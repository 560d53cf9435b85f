"""SQL in flight, through real Spark and two real brokers: exactly once, in order, whatever ends in between."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME

from testbed.process import OwnedProcess
from tests.spark.test_one_topic import four, start
from tests.support.administration import configure, grow
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.processes import family, runs
from tests.support.records import produce as shapes
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
    daemons = [process for process in family(replicator.pid) if runs(process, "appliance.driver.daemon")]
    return [worker for daemon in daemons for worker in daemon.children()]


async def test_records_are_masked_and_filtered_exactly_once_though_every_worker_is_killed(
    pair: Pair, tmp_path: Path
) -> None:
    topic = pair.topic("source")
    copy = f"destination-{topic}"
    async with transforming(pair, topic, tmp_path, MASKED) as replicator:
        for round_ in range(1, 3):
            produce(pair, topic, range(2000 * (round_ - 1), 2000 * round_))
            await until_rows(pair.grape, copy, 1000 * (round_ - 1) + 1)
            killed = workers(replicator)[round_ % 2 :: 2]
            assert killed
            for worker in killed:
                os.kill(worker.pid, signal.SIGKILL)
        copies = await until_rows(pair.grape, copy, 2000)
    assert copies == masked(read_rows(pair.orange, topic, 0))


NUMBERS = "SELECT key, CAST(CAST(CAST(value AS STRING) AS INT) + 1 AS STRING) AS value, headers FROM records"


async def status_of(pair: Pair, topic: str, directory: Path) -> dict[str, Any]:
    """The JSON of ``bin/appliance status``."""
    status = await start("status", four(pair, topic), directory, "--json")
    await status.wait(PATIENCE)
    document: dict[str, Any] = json.loads(status.log_file.read_text())
    return document


def partitions_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    (topic,) = document["topics"]
    partitions: list[dict[str, Any]] = topic["partitions"]
    return partitions


def send(pair: Pair, topic: str, values: Iterable[bytes], partition: int) -> None:
    producer = pair.producer()
    for content in values:
        producer.produce(topic, content, b"key", partition, headers=[("own", b"1")])
    assert producer.flush(PATIENCE) == 0


@pytest.mark.release  # held by tests/real/engine/test_dead_letters.py and test_transform_jobs.py
async def test_failed_records_are_dead_letters_in_the_transaction_that_passes_them(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("source")
    copy = f"destination-{topic}"
    bad = {3, 250, 499}
    send(pair, topic, [b"none %d" % number if number in bad else b"%d" % number for number in range(500)], 0)
    async with transforming(pair, topic, tmp_path, NUMBERS, ON_TRANSFORM_ERROR="dead-letter"):
        copies = await until_rows(pair.grape, copy, 497)
        letters = await until_rows(pair.grape, f"{copy}.dead-letter", 3)
    assert [row[2] for row in copies] == [b"%d" % (number + 1) for number in range(500) if number not in bad]
    originals = read_rows(pair.orange, topic, 0)
    for (partition, key, content, headers, timestamp), number in zip(letters, sorted(bad), strict=True):
        original = originals[number]
        assert (partition, key, content, timestamp) == (0, original[1], original[2], original[4])
        assert headers is not None
        own, reason, *place = headers
        assert own == ("own", b"1")
        assert reason[0] == "transform.error"
        assert reason[1] is not None
        assert reason[1].startswith(b"CAST_INVALID_INPUT: ")
        assert b"none" not in reason[1]
        names = ("transform.topic", "transform.partition", "transform.offset")
        assert place == list(zip(names, (topic.encode(), b"0", b"%d" % number), strict=True))
    (partition,) = partitions_of(await status_of(pair, topic, tmp_path))
    told = partition["copied"], partition["filtered"], partition["dead_letters"], partition["next_offset"]
    assert told == (497, 0, 3, 500)


ALL = """
SELECT key, IF(timestamp_type = 1, CAST('stamped' AS BINARY), value) AS value, headers FROM records
WHERE key IS NULL OR key <> 'dropped'
"""


@pytest.mark.release  # held by test_transform_jobs.py and tests/unit/sql/test_transform_histories.py
async def test_all_that_a_record_has_passes_unchanged_in_every_partition_that_there_is_or_will_be(
    pair: Pair, tmp_path: Path
) -> None:
    topic = pair.topic("source", 2)
    copy = f"destination-{topic}"
    for codec, partition in (("none", 0), ("gzip", 1), ("snappy", 0), ("lz4", 1), ("zstd", 0)):
        shapes(pair.producer(**{"compression.type": codec}), topic, 300, partition)
    transactional = pair.producer(**{"transactional.id": f"source-{topic}"})
    transactional.init_transactions(PATIENCE)
    for committed in (False, True):
        transactional.begin_transaction()
        shapes(transactional, topic, 40, 1)
        await asyncio.to_thread(transactional.commit_transaction if committed else transactional.abort_transaction)
    producer = pair.producer()
    for number in range(100):
        producer.produce(topic, b"%d" % number, b"dropped" if number % 10 == 0 else b"kept", 0, timestamp=number)
    assert producer.flush(PATIENCE) == 0
    async with transforming(pair, topic, tmp_path, ALL, TASKS="2", LANES="2", DISCOVERY_SECONDS="0.5"):
        await until_rows(pair.grape, copy, 990, 0)
        await until_rows(pair.grape, copy, 640, 1)
        grow(pair.orange, topic, 3)
        shapes(pair.producer(), topic, 50, 2)
        configure(pair.orange, topic, **{"message.timestamp.type": "LogAppendTime"})
        shapes(pair.producer(), topic, 50, 1)
        await until_rows(pair.grape, copy, 50, 2)
        await until_rows(pair.grape, copy, 690, 1)
    for partition in range(3):
        originals = [row for row in read_rows(pair.orange, topic, partition) if row[1] != b"dropped"]
        assert read_rows(pair.grape, copy, partition) == [as_copied(row) for row in originals]
    counts = [(each["copied"], each["filtered"]) for each in partitions_of(await status_of(pair, topic, tmp_path))]
    assert counts == [(990, 10), (690, 0), (50, 0)]


def as_copied(row: Row) -> Row:
    """The copy of a row: that of one whose timestamp the source's broker has set has it as a producer's."""
    partition, key, _, headers, (kind, at) = row
    stamped = partition, key, b"stamped", headers, (TIMESTAMP_CREATE_TIME, at)
    return stamped if kind == TIMESTAMP_LOG_APPEND_TIME else row
