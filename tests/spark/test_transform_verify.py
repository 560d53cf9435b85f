"""``appliance verify`` of copies that different SQL has made, and the link's SQL in its status."""

import signal
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

from tests.spark.test_one_topic import four, start
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.rows import until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

SALT = "MtQ1vR8kX0sJ4yWbN7cLzG2hUe5pAoDf9iTqKxB3"
HASHED = "SELECT sha2(concat(salt, string(key)), 256) AS key FROM records WHERE int(string(value)) % 2 = 0"


class Link:
    """The link of one topic, whose SQL changes from run to run."""

    def __init__(self, pair: Pair, directory: Path) -> None:
        self.pair = pair
        self.directory = directory
        self.topic = pair.topic("source")
        self.copy = f"destination-{self.topic}"
        self._salt = directory / "salt"
        self._salt.touch(0o600)
        self._salt.write_text(SALT)

    def variables(self, sql: str | None) -> dict[str, str]:
        if sql is None:
            return {"TASKS": "1", **four(self.pair, self.topic)}
        file = self.directory / "transform.sql"
        file.write_text(sql)
        files = {"REPLICA_TRANSFORM_SQL_FILE": str(file), "REPLICA_TRANSFORM_SALT_FILE": str(self._salt)}
        return {"TASKS": "1", **four(self.pair, self.topic), **files}

    def produce(self, numbers: Iterable[int]) -> None:
        producer = self.pair.producer()
        for number in numbers:
            producer.produce(self.topic, b"%d" % number, b"key %d" % number, headers=[("h", b"1")])
        assert producer.flush(PATIENCE) == 0

    async def told(self, name: str, sql: str | None, *options: str) -> tuple[int | None, str]:
        """The exit code of a command, and what it says."""
        self.directory.joinpath(f"{name}.log").unlink(missing_ok=True)
        command = await start(name, self.variables(sql), self.directory, *options)
        return await command.wait(PATIENCE), command.log_file.read_text()


@pytest.mark.release  # held by tests/unit/driver/test_jobs.py
async def test_case_470_records_pass_the_sql_of_a_running_replicator_after_its_lanes_were_changed(
    pair: Pair, tmp_path: Path
) -> None:
    # Before, every job failed from then on: the driver took the SQL for one that had been emptied.
    link = Link(pair, tmp_path)
    link.produce(range(100))
    replicator = await start("replicate", link.variables(HASHED), tmp_path)
    try:
        await until_rows(pair.grape, link.copy, 50)
        code, said = await link.told("lanes", HASHED, "--set", "3", "--yes")
        assert code == 0, said
        await replicator.wait_for_line("lanes changed lanes=3", PATIENCE)
        link.produce(range(100, 200))
        await until_rows(pair.grape, link.copy, 100)
        psutil.Process(replicator.pid).send_signal(signal.SIGTERM)
        assert await replicator.wait(PATIENCE) == 0
    finally:
        await replicator.kill()
    code, said = await link.told("verify", HASHED, "--wait", "1")
    assert code == 0, said


async def test_sql_that_is_refused_ends_the_replicator_before_it_writes(pair: Pair, tmp_path: Path) -> None:
    link = Link(pair, tmp_path)
    code, said = await link.told("replicate", "SELECT uuid() AS key FROM records")
    assert code == 2
    assert "line 1, column 8: uuid is random" in said
    code, said = await link.told("status", None)
    assert "never run" in said
