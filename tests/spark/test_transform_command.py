"""``appliance transform --dry-run``: records of a real broker beside what the SQL makes of them; nothing is written."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.spark.test_one_topic import four, start
from tests.support.administration import topics
from tests.support.engine import Pair
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

SQL = """
SELECT string(100 / int(string(value))) AS value, array_append(headers, named_struct('key', 'by', 'value', salted)) AS
    headers
FROM (SELECT *, binary(sha2(concat(salt, topic), 256)) AS salted FROM records)
WHERE string(value) <> '3'
"""
SALT = "MtQ1vR8kX0sJ4yWbN7cLzG2hUe5pAoDf9iTqKxB3"


async def tried(pair: Pair, topic: str, directory: Path, sql: str, *options: str) -> tuple[int | None, str]:
    """The exit code and the output of a dry run."""
    file, salt = directory / "transform.sql", directory / "salt"
    file.write_text(sql)
    salt.touch(0o600)
    salt.write_text(f"{SALT}\n")
    files = {"REPLICA_TRANSFORM_SQL_FILE": str(file), "REPLICA_TRANSFORM_SALT_FILE": str(salt)}
    command = await start("transform", {**four(pair, topic), **files}, directory, "--dry-run", *options)
    code = await command.wait(PATIENCE)
    return code, command.log_file.read_text()


def own_topics(pair: Pair) -> set[str]:
    """The destination's topics of this test; other tests have theirs there too."""
    return {name for name in topics(pair.grape) if pair.tag in name}


async def test_records_are_shown_before_and_after_and_nothing_is_written(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("source", 2)
    before = own_topics(pair)
    producer, now = pair.producer(), time.time_ns() // 1_000_000
    for number in range(6):
        producer.produce(topic, b"%d" % number, b"\xff%d" % number, number % 2, timestamp=now + number)
    assert producer.flush(PATIENCE) == 0
    code, output = await tried(pair, topic, tmp_path, SQL, "--records", "5", "--topic", topic, "--json")
    assert code == 0
    document: dict[str, Any] = json.loads(output[output.index("{") :])
    found = {(each["partition"], each["offset"]): each for each in document["records"]}
    assert {place: each["outcome"] for place, each in found.items()} == {
        (0, 1): "changed",
        (0, 2): "changed",
        (1, 0): "changed",
        (1, 1): "left out",
        (1, 2): "changed",
    }
    changed = found[0, 2]
    assert changed["before"] == {"key": {"hex": "ff34"}, "value": "4", "headers": []}
    assert (changed["after"]["key"], changed["after"]["value"]) == ({"hex": "ff34"}, "25.0")
    assert [header["key"] for header in changed["after"]["headers"]] == ["by"]
    code, output = await tried(pair, topic, tmp_path, SQL, "--from", "earliest", "--records", "100")
    assert code == 1, output
    assert "6 records: 4 changed, 1 fails, 1 left out; nothing is written" in output
    assert "DIVIDE_BY_ZERO" in output
    assert "0xff30" in output
    assert SALT not in output
    assert own_topics(pair) == before


@pytest.mark.release  # held by test_statement_checks.py, and as a refusal by test_transform_verify.py
async def test_sql_that_is_refused_is_shown_with_its_place(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("source")
    code, output = await tried(pair, topic, tmp_path, "SELECT key,\n  rand() AS value FROM records")
    assert code == 2
    name = f"appliance transform: REPLICA_TRANSFORM_SQL_FILE={tmp_path / 'transform.sql'}"
    assert f"{name}: line 2, column 3: rand is random" in output
    assert "  rand() AS value FROM records\nappliance transform:       ^^^^^^" in output


async def test_case_959_a_batch_that_is_too_large_is_named_and_the_others_are_tried(pair: Pair, tmp_path: Path) -> None:
    # All of a topic's newest batches were decoded whole: a few KB took gigabytes.
    topic = pair.topic("source", 2)
    producer = pair.producer(**{"compression.type": "zstd", "message.max.bytes": 10**9})
    producer.produce(topic, bytes(200_000_000), partition=0)
    producer.produce(topic, b"50", partition=1)
    assert producer.flush(PATIENCE) == 0
    code, output = await tried(pair, topic, tmp_path, SQL, "--json")
    assert code == 1
    document: dict[str, Any] = json.loads(output[output.index("{") :])
    large, small = document["records"]
    assert (large["partition"], large["offset"], large["outcome"]) == (0, 0, "fails")
    assert "the batch at offset 0 does not decompress: it takes more than" in large["reason"]
    assert (small["partition"], small["outcome"], small["after"]["value"]) == (1, "changed", "2.0")
