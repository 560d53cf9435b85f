"""The audit table of a test's link: its writer, kills of it at each await, and the check of its rows."""

import asyncio
import itertools
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pyarrow import parquet

from appliance.audit.model.progress import AuditProgress
from appliance.audit.reading import PositionsLog
from appliance.audit.store import Folder, Store
from appliance.audit.writer import AuditWriter
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.position import Position
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.values import AuditSettings, Side
from appliance.spark.session import Spark, local_spark
from tests.support.engine import Engine, Pair, as_it_is, cluster_settings
from tests.support.patience import PATIENCE
from tests.support.spark_context import forget_context, hide_gateway

AuditedRow = dict[str, Any]


@asynccontextmanager
async def spark_of(env_file: Path) -> AsyncIterator[Spark]:
    """The Spark of ``appliance audit`` with these settings, in the test's own process, where another may follow it."""
    try:
        settings = read_settings(env_file, Role.REPLICATOR, os.environ)
        async with local_spark(settings.engine, f"{settings.replicator}-audit", env_file) as spark:
            hide_gateway()
            yield spark
    finally:
        forget_context()


@asynccontextmanager
async def auditing(
    pair: Pair, store: Store, row_seconds: float = 0, flush_seconds: float = 3600, days: int = 0
) -> AsyncIterator[AuditWriter]:
    """A writer of the link's audit table, on a connection of its own."""
    async with KafkaCluster(cluster_settings(pair.grape, Side.DESTINATION), as_it_is, pair.tag) as destination:
        settings = AuditSettings("/audit", row_seconds, flush_seconds, days)
        yield AuditWriter(PositionsLog(destination, pair.naming), store, settings, AuditProgress("/audit"))


async def write_all(pair: Pair, folder: Path, engine: Engine, row_seconds: float = 0) -> list[AuditedRow]:
    """Write the rows of everything that is copied; the table."""
    async with auditing(pair, Folder(folder), row_seconds) as writer:
        await until_written(writer, folder, engine)
    return rows_in(folder)


async def until_written(writer: AuditWriter, folder: Path, engine: Engine) -> None:
    """Write until the rows reach the positions."""
    positions = await engine.positions()
    async with asyncio.timeout(PATIENCE):
        while _ends(rows_in(folder)) != {of: held.next_offset for of, held in positions.items() if held.records}:
            await writer.step(flush=True)


def _ends(rows: Iterable[AuditedRow]) -> dict[Partition, int]:
    return {(row["topic"], row["partition"]): row["source_to"] for row in in_order(rows)}


def in_order(rows: Iterable[AuditedRow]) -> list[AuditedRow]:
    """The rows in the order of their commits."""
    return sorted(rows, key=lambda row: (row["committed"], row["positions_offset"]))


def rows_in(folder: Path) -> list[AuditedRow]:
    """All rows of all files, as a reader of the folder gets them."""
    files = sorted(folder.glob("day=*/*.parquet"))
    return [row for file in files for row in parquet.ParquetFile(file).read().to_pylist()]


def assert_exact(rows: Sequence[AuditedRow], positions: Mapping[Partition, Position], begins: int | None = 0) -> None:
    """Require that the rows of each partition are what its position counts: offsets without gap or overlap.

    ``begins`` is where copying began; None where the audit began later.
    """
    copied = {of: held for of, held in positions.items() if held.records}
    by_partition: dict[Partition, list[AuditedRow]] = {}
    for row in in_order(rows):
        by_partition.setdefault((row["topic"], row["partition"]), []).append(row)
    assert by_partition.keys() == copied.keys()
    for partition, held in copied.items():
        own = by_partition[partition]
        assert_tiled(own, begins)
        assert own[-1]["source_to"] == held.next_offset
        assert held.copy_end is not None
        assert own[-1]["copy_to"] == held.copy_end.offset
        sums = [sum(row[name] for row in own) for name in ("records", "bytes")]
        assert sums == [held.records, held.bytes], partition
        if begins is not None:
            assert sum(row["rebuilt"] for row in own) == held.rebuilt


def assert_tiled(own: Sequence[AuditedRow], begins: int | None) -> None:
    """Require that a partition's rows lie one after the other, on both sides."""
    assert own[0]["source_from"] == begins
    for before, after in itertools.pairwise(own):
        assert after["source_from"] == before["source_to"], (before, after)
        assert after["copy_from"] == before["copy_to"], (before, after)
        assert after["committed"] >= before["committed"]
    assert len({(row["lane"], row["positions_offset"]) for row in own}) == len(own)


class KilledError(Exception):
    """The step was killed at one of its awaits."""


class KilledAt:
    """A coroutine that is killed where it waits for the ``number``-th time."""

    def __init__(self, work: Coroutine[Any, Any, None], number: int) -> None:
        self._work = work
        self._number = number

    def __await__(self) -> Generator[Any, Any, None]:
        inner, sent = self._work.__await__(), None
        for _ in range(self._number):
            try:
                waits_for = inner.send(sent)
            except StopIteration:
                return
            try:
                sent = yield waits_for
            except BaseException as error:
                inner.throw(error)
                raise
        inner.close()
        raise KilledError


class KilledStore:
    """A store whose process is killed at its ``number``-th change: before it, or just after it."""

    def __init__(self, store: Store, number: int, after: bool) -> None:
        self._store = store
        self._left = number
        self._after = after

    def sizes(self) -> Mapping[str, int]:
        return self._store.sizes()

    def read(self, name: str) -> bytes:
        return self._store.read(name)

    def create(self, name: str, content: bytes) -> bool:
        self._count(not self._after)
        made = self._store.create(name, content)
        self._count(self._after)
        return made

    def replace(self, name: str, content: bytes) -> None:
        self._count(not self._after)
        self._store.replace(name, content)
        self._count(self._after)

    def remove(self, name: str) -> None:
        self._count(not self._after)
        self._store.remove(name)
        self._count(self._after)

    def _count(self, counts: bool) -> None:
        self._left -= counts
        if counts and self._left == 0:
            raise KilledError


class SuspendedStore(Folder):
    """A folder whose writer is suspended at its first claim, or at the file of it, until it is told to go on."""

    def __init__(self, path: Path, at_claim: bool) -> None:
        super().__init__(path)
        self._at_claim = at_claim
        self.suspended, self.goes_on = threading.Event(), threading.Event()

    def create(self, name: str, content: bytes) -> bool:
        if self._at_claim:
            self._suspend()
        return super().create(name, content)

    def replace(self, name: str, content: bytes) -> None:
        if not self._at_claim:
            self._suspend()
        super().replace(name, content)

    def _suspend(self) -> None:
        self.suspended.set()
        assert self.goes_on.wait(PATIENCE)
