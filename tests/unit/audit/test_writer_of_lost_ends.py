"""The audit's writers, and logs that lose their ends between their steps."""

import re
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyarrow import parquet

from appliance.audit import writer as writer_module
from appliance.audit.model.entries import Stretch
from appliance.audit.model.progress import AuditProgress
from appliance.audit.model.state import LaneKnown
from appliance.audit.store import Folder
from appliance.audit.writer import AuditWriter
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Metadata, Topic
from appliance.link.model.checkpoint_records import encode_forgotten, encode_layout
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.naming import Naming
from appliance.settings.values import AuditSettings
from tests.unit.audit.test_lost_ends import LOST_END, ten_copied
from tests.unit.audit.test_rows import AT, PARTITION, START, TOPIC, Log, copied

NAMING = Naming("replicator-orange", "copy", re.compile(".*"), re.compile(""))


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


class Writer(AuditWriter):
    """A writer of one lane's log, without a cluster."""

    def __init__(self, store: Folder, lanes: int = 1) -> None:
        self._lanes = lanes
        nowhere, settings = cast("KafkaCluster", None), AuditSettings("/audit", 0, 0, 0)
        super().__init__(nowhere, NAMING, store, settings, AuditProgress("/audit"))

    async def _topic(self) -> tuple[Metadata, Topic | None]:
        return Metadata("", 0, {}, {}), Topic(NAMING.positions_topic, TOPIC, False, (1,) * self._lanes)


def reading(logs: Mapping[int, Log]) -> Any:
    """Reads these logs, the greatest lane first, as a leader may answer."""

    async def stretches(
        _: Any, __: Any, ___: Any, lanes: Mapping[int, LaneKnown], behind: Collection[int]
    ) -> AsyncIterator[tuple[int, Stretch | None, bool]]:
        for lane in sorted(behind, reverse=True):
            end = logs[lane].entries[-1].record.offset + 2 if logs[lane].entries else 0
            is_cut = lanes[lane].read_to > end
            read = logs[lane].stretch(max(0, lanes[lane].read_to)) if end else Stretch((), 0)
            yield lane, None if is_cut else read, True

    return stretches


def rows_in(folder: Path, column: str) -> list[Any]:
    """A column of all rows."""
    tables = [parquet.ParquetFile(file).read() for file in folder.glob("day=*/*.parquet")]
    return [row[column] for table in tables for row in table.to_pylist()]


async def test_case_549_a_writer_that_is_suspended_after_it_saw_a_lost_end_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who found its claim took the log for one that was never cut, and wrote the claim's rows once more, with the next.
    log = ten_copied()

    monkeypatch.setattr(writer_module, "stretches", reading({0: log}))
    asleep = Suspended(tmp_path)
    older, newer = Writer(asleep), Writer(Folder(tmp_path))
    await older.step(flush=True)
    del log.entries[7:]
    log.start()
    held = log.position(copied(replace(copied(START, 25), rebuilt=0), 3))
    for _ in range(2):
        await older.step(flush=True)
    assert len(asleep.left) == 1
    for _ in range(3):
        await newer.step(flush=True)
    log.position(copied(held, 4))
    await newer.step(flush=True)
    for name, content in asleep.left:
        Folder(tmp_path).replace(name, content)
    assert sum(rows_in(tmp_path, "records")) == 50 + 3 + 4


async def test_case_550_a_lost_end_is_known_before_the_lane_is_read_to_which_a_partition_has_gone_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The audit was down while all that happened, and a leader answered for the new lane first: what was copied again
    # up to as many records as before had no row, and nothing said so.
    old, new = ten_copied(), Log(1)
    monkeypatch.setattr(writer_module, "stretches", reading({0: old, 1: new}))
    writer = Writer(Folder(tmp_path), 2)
    await writer.step(flush=True)
    del old.entries[7:]
    old.start()
    held = old.position(copied(replace(copied(START, 25), rebuilt=0), 40))
    for lane, log in enumerate((old, new)):
        log.add(encode_layout(lane, LayoutRecord(1, 2, AT, "me@host"), AT))
    old.add(encode_forgotten(PARTITION, old.at))
    new.position(copied(new.position(held), 2))
    for _ in range(3):
        await writer.step(flush=True)
    causes = [cause for cause in rows_in(tmp_path, "cause") if cause]
    assert sum(rows_in(tmp_path, "records")) == 50 + 40 + 2 or causes == [LOST_END]


async def test_case_561_a_change_of_lanes_is_read_though_a_lane_has_lost_its_record_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The audit waits for the other lanes at a change of lanes; a lane that was down would have held it up for good.
    old, new = Log(), Log(1)
    monkeypatch.setattr(writer_module, "stretches", reading({0: old, 1: new}))
    held = old.position(copied(old.position(START), 2))
    new.add(encode_layout(1, LayoutRecord(1, 2, AT, "me@host"), AT))
    new.position(copied(new.position(held), 3))
    writer = Writer(Folder(tmp_path), 2)
    for _ in range(3):
        await writer.step(flush=True)
    assert sum(rows_in(tmp_path, "records")) == 2
    monkeypatch.setattr(writer_module, "_STEPS_WAITED", 2)
    await writer.step(flush=True)
    assert sum(rows_in(tmp_path, "records")) == 2 + 3
