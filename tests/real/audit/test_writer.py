"""The audit table of a real link: its rows are what was committed, whenever its writer is killed."""

import asyncio
import itertools
from pathlib import Path

import pytest

from appliance.audit.model import files
from appliance.audit.store import Folder
from tests.support.audit import (
    KilledAt,
    KilledError,
    KilledStore,
    assert_exact,
    auditing,
    rows_in,
    until_written,
    write_all,
)
from tests.support.engine import Pair, copying
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARTITIONS = 3


async def test_the_rows_of_each_partition_are_its_copied_offsets_without_gap_or_overlap(
    pair: Pair, tmp_path: Path
) -> None:
    topic = pair.topic("orders", PARTITIONS)
    async with pair.engine() as engine:
        for round_ in range(5):
            for partition in range(PARTITIONS):
                produce(pair.producer(), topic, 20 + round_, partition)
            await engine.copy_all()
        positions = await engine.positions()
        rows = await write_all(pair, tmp_path, engine)
        run = engine.run
    assert_exact(rows, positions)
    assert {row["kind"] for row in rows} == {"copied"}
    assert {row["run"] for row in rows} == {run}
    assert {row["copy"] for row in rows} == {pair.naming.destination(topic)}
    assert {row["transactions"] for row in rows} == {1}
    for partition in range(PARTITIONS):
        assert sum(row["records"] for row in rows if row["partition"] == partition) == sum(range(20, 25))


async def test_the_writer_is_killed_wherever_it_waits_and_every_row_is_there_once(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("orders", PARTITIONS)
    async with pair.engine() as engine:
        await engine.prepare()
        async with copying(engine):
            for number in itertools.count(1):
                produce(pair.producer(), topic, 3, number % PARTITIONS)
                async with auditing(pair, Folder(tmp_path)) as writer:
                    try:
                        await KilledAt(writer.step(flush=True), number)
                    except KilledError:
                        continue
                    break
        await engine.copy_all()
        positions = await engine.positions()
        assert number > 10
        rows = await write_all(pair, tmp_path, engine)
    assert_exact(rows, positions)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_the_writer_is_killed_at_each_change_of_the_files_and_every_row_is_there_once(
    pair: Pair, tmp_path: Path, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FILES_A_MERGE", 3)
    topic = pair.topic("orders", PARTITIONS)
    async with pair.engine() as engine:
        for number in itertools.chain(range(1, 12), range(1, 12)):
            produce(pair.producer(), topic, 5, number % PARTITIONS)
            await engine.copy_all()
            for _ in range(2):
                async with auditing(pair, KilledStore(Folder(tmp_path), number, after)) as writer:
                    try:
                        await writer.step(flush=True)
                    except KilledError:
                        break
        positions = await engine.positions()
        async with auditing(pair, Folder(tmp_path)) as writer:
            await until_written(writer, tmp_path, engine)
        async with auditing(pair, Folder(tmp_path)) as writer:
            await writer.step()  # removes what a killed merge has left
    assert_exact(rows_in(tmp_path), positions)
    assert any(file.stem[:20] != file.stem[21:] for file in tmp_path.glob("day=*/*.parquet")), "nothing was merged"


async def test_of_two_writers_each_writes_what_the_other_has_not(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("orders", PARTITIONS)
    async with (
        pair.engine() as engine,
        auditing(pair, Folder(tmp_path)) as one,
        auditing(pair, Folder(tmp_path)) as two,
    ):
        for number in range(6):
            produce(pair.producer(), topic, 5, number % PARTITIONS)
            await engine.copy_all()
            await asyncio.gather(one.step(flush=True), two.step(flush=True))
        await until_written(one, tmp_path, engine)
        assert_exact(rows_in(tmp_path), await engine.positions())
