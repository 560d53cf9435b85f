"""The audit's writers, and logs that are truncated between their steps."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyarrow import parquet

from appliance.audit.model.entries import LogRange
from appliance.audit.model.progress import AuditProgress
from appliance.audit.model.state import LaneProgress
from appliance.audit.reading import STEPS_WAITED, PositionsLog
from appliance.audit.store import Folder
from appliance.audit.writer import AuditWriter
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Topic
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.checkpoint_records import decode, encode_layout, encode_tombstone
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Suffix
from appliance.link.model.position import Position
from appliance.settings.values import AuditSettings
from tests.support.audit import KilledAt, KilledError
from tests.unit.audit.logs import AT, LOST, PARTITION, START, TOPIC, Log, copied, ten_copied

NAMING = Naming("replicator-orange", Suffix(after=".copy"), re.compile(".*"), re.compile(""))


class Suspended(Folder):
    """A folder whose writer is suspended before its second file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.left: list[tuple[str, bytes]] = []

    def replace(self, name: str, content: bytes) -> None:
        if name.endswith("2.parquet"):
            self.left.append((name, content))
        else:
            super().replace(name, content)


class Logs(dict[int, Log]):
    """The lanes' logs, and those that were ``truncated``, under a leader of epoch 1."""

    def __init__(self) -> None:
        super().__init__()
        self.truncated: set[int] = set()

    def truncate(self, lane: int) -> Position:
        """Lose the end of a log of ``ten_copied``, and copy 3 records after it; the position."""
        del self[lane].entries[7:]
        self.truncated.add(lane)
        self[lane].start()
        return self[lane].position(copied(replace(copied(START, 25), rebuilt=0), 3))


class Positions(PositionsLog):
    """The logs of the lanes; they are read with the greatest lane first, as a leader may answer."""

    def __init__(self, logs: Logs, lanes: int) -> None:
        super().__init__(cast("KafkaCluster", None), NAMING)
        self._logs = logs
        self._lanes = lanes

    async def topic(self) -> Topic | None:
        leaders = (1,) * self._lanes
        return Topic(NAMING.positions_topic, TOPIC, False, leaders, epochs=leaders)

    async def checkpoint(self, lane: int) -> LaneCheckpoint:
        await asyncio.sleep(0)
        checkpoint = LaneCheckpoint(read_to=self._logs[lane].range().following)
        for entry in self._logs[lane].entries:
            checkpoint.add(decode(entry.record))
        return checkpoint

    async def ranges(
        self, _: Topic, lanes: Mapping[int, LaneProgress], behind: Collection[int]
    ) -> AsyncIterator[tuple[int, LogRange | None, bool]]:
        for lane in sorted(behind, reverse=True):
            log = self._logs[lane]
            end = log.entries[-1].record.offset + 2 if log.entries else 0
            read = log.range(max(0, lanes[lane].read_to)) if end else LogRange((), 0)
            epoch = int(lane in self._logs.truncated)
            diverges = lanes[lane].read_to > 0 and lanes[lane].leader_epoch < epoch
            yield lane, None if diverges else replace(read, leader_epoch=epoch), True


def a_writer(logs: Logs, store: Folder, lanes: int = 1, flush_seconds: float = 0) -> AuditWriter:
    settings = AuditSettings("/audit", 0, flush_seconds, 0)
    return AuditWriter(Positions(logs, lanes), store, settings, AuditProgress("/audit"))


@pytest.fixture
def logs() -> Logs:
    return Logs()


def rows_in(folder: Path, column: str) -> list[Any]:
    """A column of all rows, in the order of their writes."""
    files = sorted(folder.glob("day=*/*.parquet"), key=lambda file: file.name)
    tables = [parquet.ParquetFile(file).read() for file in files]
    return [row[column] for table in tables for row in table.to_pylist()]


async def test_a_truncated_log_has_a_row_at_once_and_the_rows_go_on(
    tmp_path: Path, logs: Logs, caplog: pytest.LogCaptureFixture
) -> None:
    logs[0] = ten_copied()
    writer = a_writer(logs, Folder(tmp_path), flush_seconds=3600)
    await writer.step(flush=True)
    held = copied(logs.truncate(0), 4)
    await writer.step()
    assert rows_in(tmp_path, "kind")[-2:] == ["copied", "unaudited"]
    logs[0].position(copied(logs[0].position(held), 7))
    await writer.step(flush=True)
    kinds, counts, ends = (rows_in(tmp_path, column)[-3:] for column in ("kind", "records", "source_to"))
    assert (kinds, counts, ends) == (["unaudited", "unaudited", "copied"], [0, 0, 7], [128, 132, 139])
    assert [record.fields for record in caplog.records] == [{"lane": 0}]  # type: ignore[attr-defined]


async def steps(writer: AuditWriter) -> None:
    for _ in range(3):
        await writer.step(flush=True)


async def test_a_writer_that_is_killed_wherever_it_waits_after_a_truncation_writes_each_row_once(
    tmp_path: Path, logs: Logs
) -> None:
    for number in itertools.count(1):
        folder, killed = tmp_path / str(number), False
        whole, logs[0] = ten_copied(), ten_copied()
        del logs[0].entries[10:]
        writer = a_writer(logs, Folder(folder), flush_seconds=3600)
        await writer.step(flush=True)
        logs[0].entries += whole.entries[10:]
        await writer.step()  # the rows of the last two positions are not written yet
        held = logs.truncate(0)
        try:
            await KilledAt(steps(writer), number)
        except KilledError:
            killed, writer = True, a_writer(logs, Folder(folder))
        await steps(writer)
        held = logs[0].position(copied(held, 1))
        held = logs[0].position(copied(held, 4))
        await writer.step(flush=True)
        starts, ends, counts = (rows_in(folder, column) for column in ("source_from", "source_to", "records"))
        assert starts == [100, *ends[:-1]], number
        assert (ends[-1], sum(counts)) in ((held.next_offset, 50 + 4), (held.next_offset, 40 + 4)), number
        logs.truncated.clear()
        if not killed:
            break
    assert number > 5


async def test_case_549_a_writer_that_is_suspended_after_it_saw_a_truncated_log_doubles_nothing(
    tmp_path: Path, logs: Logs
) -> None:
    # Who found its claim took the log for one that was never cut, and wrote the claim's rows once more, with the next.
    logs[0] = log = ten_copied()
    asleep = Suspended(tmp_path)
    older, newer = a_writer(logs, asleep), a_writer(logs, Folder(tmp_path))
    await older.step(flush=True)
    held = logs.truncate(0)
    for _ in range(2):
        await older.step(flush=True)
    assert len(asleep.left) == 1
    for _ in range(3):
        await newer.step(flush=True)
    log.position(copied(log.position(copied(held, 1)), 4))
    await newer.step(flush=True)
    for name, content in asleep.left:
        Folder(tmp_path).replace(name, content)
    assert sum(rows_in(tmp_path, "records")) == 50 + 4


async def test_case_550_a_truncated_log_is_known_before_the_lane_is_read_to_which_a_partition_has_gone_since(
    tmp_path: Path, logs: Logs
) -> None:
    # The audit was down while all that happened, and a leader answered for the new lane first: what was copied again
    # up to as many records as before had no row, and nothing said so.
    logs |= {0: ten_copied(), 1: Log(1)}
    old, new = logs[0], logs[1]
    writer = a_writer(logs, Folder(tmp_path), 2)
    await writer.step(flush=True)
    held = old.position(copied(logs.truncate(0), 40))
    for lane, log in logs.items():
        log.add(encode_layout(lane, LayoutRecord(1, 2, AT, "me@host"), AT))
    old.add(encode_tombstone(PARTITION, old.at))
    new.position(copied(new.position(held), 2))
    for _ in range(4):
        await writer.step(flush=True)
    assert [cause for cause in rows_in(tmp_path, "cause") if cause] == [LOST]
    assert sum(rows_in(tmp_path, "records")) == 50 + 2


async def test_case_561_a_change_of_lanes_is_read_though_a_lane_has_lost_its_record_of_it(
    tmp_path: Path, logs: Logs
) -> None:
    # The audit waits for the other lanes at a change of lanes; a lane that was down would have held it up for good.
    logs |= {0: Log(), 1: Log(1)}
    old, new = logs[0], logs[1]
    held = old.position(copied(old.position(START), 2))
    new.add(encode_layout(1, LayoutRecord(1, 2, AT, "me@host"), AT))
    new.position(copied(new.position(held), 3))
    writer = a_writer(logs, Folder(tmp_path), 2)
    for _ in range(3):
        await writer.step(flush=True)
    assert sum(rows_in(tmp_path, "records")) == 2
    for _ in range(STEPS_WAITED):
        await writer.step(flush=True)
    assert sum(rows_in(tmp_path, "records")) == 2 + 3
