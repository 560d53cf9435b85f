"""The audit's writers, of which one is suspended after its claim, and a log that loses its end meanwhile."""

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
from appliance.link.model.naming import Naming
from appliance.settings.values import AuditSettings
from tests.unit.audit.test_lost_ends import ten_copied
from tests.unit.audit.test_rows import START, TOPIC, copied

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

    def __init__(self, store: Folder) -> None:
        nowhere, settings = cast("KafkaCluster", None), AuditSettings("/audit", 0, 0, 0)
        super().__init__(nowhere, NAMING, store, settings, AuditProgress("/audit"))

    async def _topic(self) -> tuple[Metadata, Topic | None]:
        return Metadata("", 0, {}, {}), Topic(NAMING.positions_topic, TOPIC, False, (1,))


def records_in(folder: Path) -> list[int]:
    """The records of each row."""
    tables = [parquet.ParquetFile(file).read() for file in folder.glob("day=*/*.parquet")]
    return [row["records"] for table in tables for row in table.to_pylist()]


async def test_case_549_a_writer_that_is_suspended_after_it_saw_a_lost_end_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who found its claim took the log for one that was never cut, and wrote the claim's rows once more, with the next.
    log = ten_copied()

    async def stretches(
        _: Any, __: Any, ___: Any, lanes: Mapping[int, LaneKnown], behind: Collection[int]
    ) -> AsyncIterator[tuple[int, Stretch | None, bool]]:
        for lane in behind:
            is_cut = lanes[lane].read_to > log.entries[-1].record.offset + 2
            yield lane, None if is_cut else log.stretch(max(0, lanes[lane].read_to)), True

    monkeypatch.setattr(writer_module, "stretches", stretches)
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
    assert sum(records_in(tmp_path)) == 50 + 3 + 4
