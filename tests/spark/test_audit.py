"""The audit table of a replicator that was killed while it copied, and its readers."""

import asyncio
import csv
import io
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pandas
import psutil
import pytest
import pytest_asyncio

from appliance.audit.command import as_json, newest, query
from appliance.errors import SqlRefused
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.position import Position
from appliance.spark.session import Spark
from testbed.cluster import Cluster
from testbed.process import OwnedProcess
from tests.support.audit import assert_exact, rows_in, spark_of
from tests.support.commands import command, command_line, settings_file
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARTITIONS, ROUNDS, RECORDS = 3, 2, 400
DOCUMENT = (Path(__file__).parents[2] / "docs" / "run" / "audit.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.DOTALL)


@dataclass(frozen=True, slots=True)
class Audited:
    """A link that has copied a topic, its table, and the positions that it ended with."""

    pair: Pair
    topic: str
    folder: Path
    settings: Path
    positions: Mapping[Partition, Position]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def spark(audited: Audited) -> AsyncIterator[Spark]:
    async with spark_of(audited.settings) as made:
        yield made


async def start(settings: Path, directory: Path) -> OwnedProcess:
    log = directory / f"replicate-{time.monotonic_ns()}.log"
    return await OwnedProcess.start("replicate", command_line("replicate", settings), log, dict(os.environ))


async def until_audited(folder: Path, records: int) -> None:
    """Wait for rows of this many records."""
    async with asyncio.timeout(PATIENCE):
        while sum(row["records"] for row in rows_in(folder)) < records:
            await asyncio.sleep(0.2)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def audited(
    clusters: tuple[Cluster, Cluster], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Audited]:
    """A replicator is killed while it copies and audits, and started again, until all is copied and audited."""
    directory = tmp_path_factory.mktemp("audited")
    folder = directory / "audit"
    pair = Pair(*clusters, tag=f"{os.getpid()}-audited")
    topic = pair.topic("orders", PARTITIONS)
    changed = {"AUDIT_PATH": str(folder), "AUDIT_ROW_SECONDS": "0.2", "AUDIT_FLUSH_SECONDS": "0.1", "TASKS": "2"}
    settings = settings_file(pair, directory, CONSOLE_LISTEN="127.0.0.1:0", **changed)
    for round_ in range(1, ROUNDS + 1):
        for partition in range(PARTITIONS):
            produce(pair.producer(), topic, RECORDS, partition)
        replicator = await start(settings, directory)
        try:
            if round_ < ROUNDS:  # killed between its copies and its files
                await until_rows(pair.grape, pair.naming.destination(topic), (round_ - 1) * RECORDS + 1)
                psutil.Process(replicator.pid).send_signal(signal.SIGKILL)
                await replicator.wait(PATIENCE)
                continue
            await until_audited(folder, PARTITIONS * ROUNDS * RECORDS)
            psutil.Process(replicator.pid).send_signal(signal.SIGTERM)
            assert await replicator.wait(PATIENCE) == 0
        finally:
            await replicator.kill()
    async with pair.engine() as engine:
        await engine.establish()
        yield Audited(pair, topic, folder, settings, await engine.positions())


async def test_the_replicator_is_killed_and_every_committed_record_is_in_one_row(audited: Audited) -> None:
    rows = rows_in(audited.folder)
    assert_exact(rows, audited.positions)
    for partition in range(PARTITIONS):
        own = [row for row in rows if row["partition"] == partition]
        assert sum(row["records"] for row in own) == ROUNDS * RECORDS
    assert len({row["run"] for row in rows}) == ROUNDS


async def test_the_command_shows_the_last_hours_as_a_table_and_a_query_as_csv(audited: Audited) -> None:
    shown = await command("audit", audited.settings, "--last", "1h")
    assert shown.returncode == 0, shown.stderr
    head, *lines, total = shown.stdout.splitlines()
    assert head.split()[:4] == ["committed", "topic", "partition", "kind"]
    assert len(lines) == len(rows_in(audited.folder))
    assert total.startswith(f"{len(lines)} rows")
    as_csv = await command("audit", audited.settings, "SELECT sum(records) AS n, NULL AS none FROM audit", "--csv")
    assert list(csv.reader(io.StringIO(as_csv.stdout))) == [["n", "none"], [str(PARTITIONS * ROUNDS * RECORDS), ""]]


async def test_a_day_as_json_has_an_object_for_each_row(
    audited: Audited, spark: Spark, capsys: pytest.CaptureFixture[str]
) -> None:
    await asyncio.to_thread(
        lambda: as_json(query(spark, str(audited.folder), newest(timedelta(days=1), datetime.now(UTC))))
    )
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum(each["records"] for each in objects) == PARTITIONS * ROUNDS * RECORDS
    assert {each["topic"] for each in objects} == {audited.topic}


async def test_the_queries_of_the_documentation_run_on_a_table_of_a_real_link(audited: Audited, spark: Spark) -> None:
    assert len(QUERIES) == 5
    answers = []
    for text in QUERIES:
        names, rows = query(spark, str(audited.folder), text.replace("'orders'", f"'{audited.topic}'"))
        answers.append([dict(zip(names, row, strict=True)) for row in rows])
    by_hour, of_one_offset, missing, others, rebuilt = answers
    assert sum(row["records"] for row in by_hour) == PARTITIONS * ROUNDS * RECORDS
    (found,) = of_one_offset
    assert found["copy_from"] <= 17 < found["copy_to"]
    assert missing == others == []
    assert [row["topic"] for row in rebuilt] == [audited.topic]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("INSERT OVERWRITE DIRECTORY '/tmp/never' USING parquet SELECT * FROM audit", "near 'INSERT'"),
        ("SELECT nothing FROM audit", "with name `nothing` cannot be resolved"),
        ("SELECT * FROM", "Invalid usage of '*'"),
        ("SELECT records / 0 FROM audit", "Division by zero"),
    ],
)
async def test_a_text_that_is_no_query_is_refused_in_few_lines(
    audited: Audited, spark: Spark, text: str, said: str
) -> None:
    with pytest.raises(SqlRefused) as refused:
        list(query(spark, str(audited.folder), text)[1])
    first, *others = str(refused.value).splitlines()
    assert said in first
    assert len(others) < 5


async def test_a_folder_without_a_table_has_no_rows(spark: Spark, tmp_path: Path) -> None:
    names, rows = query(spark, str(tmp_path), "SELECT * FROM audit")
    assert list(rows) == []
    assert {"topic", "committed", "day"} <= set(names)


async def test_pandas_reads_the_table(audited: Audited) -> None:
    frame = pandas.read_parquet(audited.folder)
    assert frame.groupby("topic").records.sum().to_dict() == {audited.topic: PARTITIONS * ROUNDS * RECORDS}
    assert set(frame.day) == set(frame.committed.dt.strftime("%Y-%m-%d"))


async def test_duckdb_reads_the_table(audited: Audited) -> None:
    read = f"read_parquet('{audited.folder}/day=*/*.parquet')"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW audit AS SELECT * FROM {read}")
        counted = connection.execute("SELECT sum(records), count(DISTINCT run) FROM audit").fetchone()
        assert counted == (PARTITIONS * ROUNDS * RECORDS, ROUNDS)
        for query in QUERIES:
            connection.execute(query).fetchall()


async def test_without_a_table_the_command_names_the_variable(audited: Audited) -> None:
    environment = {**os.environ, "AUDIT_PATH": ""}
    line = command_line("audit", audited.settings, "--last", "1h")
    log = audited.settings.parent / "no-table.log"
    process = await OwnedProcess.start("audit", line, log, environment)
    assert await process.wait(PATIENCE) == 2
    assert "AUDIT_PATH is empty" in log.read_text()
