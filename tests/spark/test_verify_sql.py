"""``bin/appliance verify`` of what SQL has made, by the tasks of Spark."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from appliance.sql.model.statement import Statement
from tests.spark.test_verify import report
from tests.support.commands import command, settings_file
from tests.support.engine import Pair
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

SAME = Statement("SELECT * FROM records WHERE string(value) <> 'never'")
"""SQL that changes nothing of these records."""

DIVIDED = Statement("""
SELECT IF(int(string(value)) < 100, string(60 / int(string(value))), string(value)) AS value FROM records
WHERE int(string(value)) <> 7
""")
"""SQL that leaves a record out, and fails on another; larger numbers stay."""

NOW = time.time_ns() // 1_000_000
"""The time of the records: retention keeps them."""


def divided(numbers: Iterable[int]) -> list[int]:
    """The numbers of which copies are left."""
    return [number for number in numbers if number not in (0, 7)]


def original(number: int) -> bytes:
    return b"%d" % number


def masked(number: int) -> bytes:
    return str(60 / number).encode()


def write(pair: Pair, cluster: Any, topic: str, partition: int, values: Iterable[tuple[int, bytes]]) -> None:
    """Records with these numbers and values."""
    producer = pair.producer(**cluster.client_configuration())
    for number, value in values:
        key, headers = b"key %d" % number, [("h", b"%d" % number), ("h", None)]
        producer.produce(topic, value, key, partition, headers=headers, timestamp=NOW + number)
    assert producer.flush(PATIENCE) == 0


def produce(pair: Pair, topic: str, partition: int, numbers: Iterable[int]) -> None:
    """Records of the source."""
    write(pair, pair.orange, topic, partition, ((number, original(number)) for number in numbers))


def make(pair: Pair, topic: str, partition: int, numbers: Iterable[int]) -> None:
    """The copies that DIVIDED makes of these."""
    made = ((number, masked(number)) for number in divided(numbers))
    write(pair, pair.grape, pair.naming.destination(topic), partition, made)


async def copied(pair: Pair, topic: str, partitions: int, numbers: range, statement: Statement | None) -> None:
    """Numbers in each partition, and their copies, which the statement leaves as they are."""
    for partition in range(partitions):
        produce(pair, topic, partition, numbers)
    async with pair.engine() as engine:
        engine.statement = statement
        await engine.copy_all()


def states(told: dict[str, Any]) -> list[tuple[str, int]]:
    return [(each["state"], each["records"]) for each in told["partitions"]]


async def compared(pair: Pair) -> list[tuple[str, int]]:
    """Copies that no, other and this SQL has made, and the state and the number of equal records of each partition."""
    topic = pair.topic("made", 4)
    for first, statement in ((100, None), (200, SAME), (300, DIVIDED)):
        await copied(pair, topic, 4, range(first, first + 50), statement)
    for partition, made in enumerate((range(40), range(30), [*range(20), *range(21, 40)], range(45))):
        produce(pair, topic, partition, range(40))
        make(pair, topic, partition, made)
    # The first copy has all that the SQL makes, but no link has passed the number on which that fails.
    return [("behind", 188), ("behind", 178), ("differs", 168), ("differs", 188)]


async def test_the_tasks_of_spark_verify_what_different_sql_has_made(pair: Pair, tmp_path: Path) -> None:
    expected = await compared(pair)
    env_file = settings_file(pair, tmp_path, TASKS="2")
    shared = await command("verify", env_file, "--json", "--wait", "0", "--spark", "yes")
    assert shared.returncode == 1, shared.stderr
    assert states(report(shared.stdout)) == expected
