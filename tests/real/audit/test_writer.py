"""The audit table of a real link: its rows are what was committed, whenever its writer is killed."""

import asyncio
import errno
import itertools
import os
from pathlib import Path

import pytest

from appliance.audit import writer as writer_module
from appliance.audit.model import files
from appliance.audit.model.files import listing
from appliance.audit.store import Folder
from appliance.commands.lanes import lanes
from appliance.commands.resumption import Choice, resume
from appliance.settings.values import OnGap
from tests.support.administration import COMPACTED, configure, delete_before
from tests.support.audit import (
    KilledAt,
    KilledError,
    KilledStore,
    SuspendedStore,
    assert_exact,
    assert_tiled,
    auditing,
    in_order,
    rows_in,
    until_written,
    write_all,
)
from tests.support.engine import Engine, Pair, copying
from tests.support.operating import YES, command, run_command
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import read_rows

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
    assert listing(Folder(tmp_path).sizes()).holding[0].last > 1, "nothing was merged"


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


@pytest.mark.parametrize("at_claim", [True, False], ids=["claim", "file"])
async def test_a_writer_that_is_suspended_before_its_claim_or_its_file_doubles_nothing(
    pair: Pair, tmp_path: Path, at_claim: bool
) -> None:
    topic = pair.topic("orders", PARTITIONS)
    asleep = SuspendedStore(tmp_path, at_claim)
    async with pair.engine() as engine, auditing(pair, asleep) as older:
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
        stopped = asyncio.create_task(older.step(flush=True), name="suspended")
        assert await asyncio.to_thread(asleep.suspended.wait, PATIENCE)
        for partition in (0, 1):
            produce(pair.producer(), topic, 5, partition)
            await engine.copy_all()
            await write_all(pair, tmp_path, engine)
        asleep.goes_on.set()
        await stopped
        produce(pair.producer(), topic, 5, 2)
        await engine.copy_all()
        await write_all(pair, tmp_path, engine)
        positions = await engine.positions()
    assert_exact(rows_in(tmp_path), positions)


async def test_a_full_disk_stops_the_audit_alone_and_nothing_is_lost(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    caplog.set_level("INFO", "appliance.audit")
    monkeypatch.setattr(writer_module, "_RETRY_MAX", 0.1)
    topic = pair.topic("orders", PARTITIONS)
    async with pair.engine() as engine, auditing(pair, Folder(tmp_path), flush_seconds=0.1) as writer:
        await engine.prepare()
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            running = asyncio.create_task(writer.run(), name="writer")
            produce(pair.producer(), topic, 10)
            await engine.copy_all()
            async with asyncio.timeout(PATIENCE):
                while not writer.progress.problem:
                    await asyncio.sleep(0.01)
            assert f"AUDIT_PATH={tmp_path}" in writer.progress.problem
            assert "No space left on device" in writer.progress.problem
            produce(pair.producer(), topic, 10, 1)
            await engine.copy_all()
        positions = await engine.positions()
        async with asyncio.timeout(PATIENCE):
            while sum(row["records"] for row in rows_in(tmp_path)) < 20:
                await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert_exact(rows_in(tmp_path), positions)
    assert [record.message for record in caplog.records if record.name == "appliance.audit"] == [
        "the audit table is not written",
        "the audit table is written again",
    ]


async def test_a_gap_of_a_real_link_is_a_row_between_the_copied_ones(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("orders")
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
    produce(pair.producer(), topic, 10)
    delete_before(pair.orange, topic, 0, 15)
    async with pair.engine(on_gap=OnGap.RECORD) as engine:
        await engine.copy_all()
        rows = await write_all(pair, tmp_path, engine)
        positions = await engine.positions()
    assert_exact(rows, positions)
    ordered = in_order(rows)
    assert [(row["kind"], row["source_from"], row["source_to"], row["records"]) for row in ordered] == [
        ("copied", 0, 10, 10),
        ("gap", 10, 15, 0),
        ("copied", 15, 20, 5),
    ]
    assert ordered[1]["cause"]


async def test_positions_that_are_deleted_before_they_are_read_have_rows_that_count_nothing(
    pair: Pair, tmp_path: Path
) -> None:
    topic, table = pair.topic("orders"), tmp_path / "table"
    name = pair.naming.positions_topic
    async with pair.engine() as engine:
        for folder in (table, tmp_path / "other"):
            for _ in range(3):
                produce(pair.producer(), topic, 10)
                await engine.copy_all()
            newest = in_order(await write_all(pair, folder, engine))[-1]
        configure(pair.grape, name, **{"cleanup.policy": "compact,delete"})
        delete_before(pair.grape, name, newest["lane"], newest["positions_offset"])
        await write_all(pair, table, engine)
        for _ in range(2):
            produce(pair.producer(), topic, 10)
            await engine.copy_all()
        own = in_order(await write_all(pair, table, engine))
    assert_tiled(own, 0)
    shown = [(row["kind"], row["source_from"], row["source_to"], row["records"]) for row in own[3:]]
    copied = [row[1:] for row in shown if row[0] == "copied"]  # the records may have come in two batches
    assert shown[: -len(copied)] == [("unaudited", 30, 60, 0), ("unaudited", 60, 70, 0)]
    assert (copied[0][0], copied[-1][1], sum(row[2] for row in copied)) == (70, 80, 10)


async def test_an_operators_move_is_a_row_of_its_own(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("orders")
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
    await resume(pair.settings(), Choice(topic, 0, "4"), print)
    async with pair.engine() as engine:
        await engine.copy_all()
        rows = await write_all(pair, tmp_path, engine)
    ordered = in_order(rows)
    assert [(row["kind"], row["source_from"], row["source_to"], row["records"]) for row in ordered] == [
        ("copied", 0, 10, 10),
        ("moved", 10, 4, 0),
        ("copied", 4, 10, 6),
    ]
    assert ordered[1]["run"] == "operator"


async def test_a_change_of_lanes_neither_loses_nor_doubles_a_row(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("orders", PARTITIONS)
    async with pair.engine() as engine:
        for count in (7, 1, 9, 2):
            for partition in range(PARTITIONS):
                produce(pair.producer(), topic, 10, partition)
            engine.runners.clear()
            await engine.copy_all()
            if count != 1:  # what was copied before and after that change is read at once
                await write_all(pair, tmp_path, engine)
            async with command(pair, YES) as running:
                await run_command(running, lanes, count, balance=False, sample=0)
        positions = await engine.positions()
        rows = await write_all(pair, tmp_path, engine)
    assert_exact(rows, positions)
    assert {row["kind"] for row in rows} == {"copied"}
    assert len({row["lane"] for row in rows}) > 2


async def test_compaction_while_the_writer_is_down_makes_rows_coarser_and_loses_none(
    pair: Pair, tmp_path: Path
) -> None:
    topic = pair.topic("orders")
    async with pair.engine() as engine:
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
        before = await write_all(pair, tmp_path / "early", engine)
        configure(pair.grape, pair.naming.positions_topic, **COMPACTED)
        commits = await until_compacted(pair, topic, engine)
        positions = await engine.positions()
        early = await write_all(pair, tmp_path / "early", engine)
        late = await write_all(pair, tmp_path / "late", engine)
    assert [row["kind"] for row in before] == ["copied"]
    assert_exact(early, positions)
    assert {row["kind"] for row in early} == {"copied"}
    assert len(early) < 1 + commits
    assert None in {row["transactions"] for row in early}
    assert_exact(late, positions, begins=None)
    assert (late[0]["kind"], late[0]["cause"]) == ("unaudited", "copied before the audit began")


async def until_compacted(pair: Pair, topic: str, engine: Engine) -> int:
    """Copy record by record until compaction has removed positions of the topic; the number of these copies."""
    lane = next(runner.lane.index for runner in engine.runners if runner.replicas)
    name = pair.naming.positions_topic
    async with asyncio.timeout(PATIENCE):
        for commits in itertools.count(1):
            produce(pair.producer(), topic, 1)
            await engine.copy_all()
            rows = await asyncio.to_thread(read_rows, pair.grape, name, lane)
            if sum(row[1] == b'{"topic":"%s","partition":0}' % topic.encode() for row in rows) < commits:
                return commits
    raise AssertionError
