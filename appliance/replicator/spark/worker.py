"""What a Spark task does, and what its Python process keeps between slices: an event loop, connections, warm lanes."""

import asyncio
import contextlib
import os
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from appliance.errors import ApplianceError, PeerError, SettingsError, Unreachable
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.model.checkpoint import Owner
from appliance.link.model.naming import Naming
from appliance.link.model.states import LaneState
from appliance.replicator.model.chunk import LedgerRow
from appliance.replicator.model.failing import unexpected
from appliance.replicator.read.source_reader import SourceReader
from appliance.replicator.spark.seat_sockets import Stream, dialled_seat, seat_line
from appliance.replicator.spark.seating import (
    STOP,
    Hello,
    Notice,
    Seat,
    decode_seat,
    decode_share,
    encode_hello,
    encode_notice,
)
from appliance.replicator.spark.spark_jvm import ENV_FILE_VARIABLE
from appliance.replicator.write.lane import Lane
from appliance.replicator.write.lane_runner import LaneRunner
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.target import Target
from appliance.settings.values import Settings
from appliance.version import VERSION


@dataclass(frozen=True, slots=True)
class DriverEndpoint:
    """Where a task asks for its seat: a file, or a host and its port, where both ends know the token.

    ``run`` and ``generation`` name the replicator's process, as ``Owner`` has it.
    """

    at: str | tuple[str, int]
    token: str
    run: str
    generation: int


class Worker:
    """One Python process of Spark's."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._naming = Naming.of(settings)
        self._name = uuid.uuid4().hex
        self._invitation: DriverEndpoint | None = None
        self._runner = asyncio.Runner()
        self._source = source_cluster(settings)
        self._destination = destination_cluster(settings)
        self._reader: SourceReader | None = None
        self._runners: dict[int, LaneRunner] = {}
        self._slice = -1
        self._share = 0
        self._stopping = asyncio.Event()
        self._driver: asyncio.StreamWriter | None = None

    def work(self, endpoint: DriverEndpoint) -> list[LedgerRow]:
        """Take a seat and copy until the driver ends the slice."""
        return self._runner.run(self._work(endpoint))

    async def _work(self, endpoint: DriverEndpoint) -> list[LedgerRow]:
        reader, writer = await _dial(endpoint)
        try:
            writer.write(encode_hello(Hello(self._name, self._slice)))
            line = await seat_line(reader)
            if not line:
                return []
            self._driver, self._stopping = writer, asyncio.Event()
            self._invitation = endpoint
            self._bound(decode_share(await seat_line(reader)))
            await self._take(decode_seat(line))
            watch = asyncio.create_task(self._watch(reader), name="driver-watch")
            rows = await self._copy()
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            return rows
        finally:
            self._driver = None
            writer.close()

    def _bound(self, bytes_per_second: int) -> None:
        self._share = bytes_per_second
        if self._reader is not None:
            self._reader.bound(bytes_per_second)

    async def _take(self, seat: Seat) -> None:
        """Keep the lanes that stay, if no slice was missed since; drop the others."""
        missed = seat.slice != self._slice + 1
        for lane in [lane for lane in self._runners if missed or lane not in seat.lanes]:
            runner = self._runners.pop(lane)
            if self._reader is not None:
                self._reader.forget(runner.replicas)
        self._slice = seat.slice
        for lane, replicas in seat.lanes.items():
            runner = self._runners.get(lane) or self._new_runner(lane)
            self._runners[lane] = runner
            runner.assign(replicas, seat.starts)

    def _new_runner(self, lane: int) -> LaneRunner:
        if self._reader is None:
            self._reader = SourceReader(self._source, self._tell)
            self._reader.bound(self._share)
        assert self._invitation is not None
        engine, run, generation = self._settings.engine, self._invitation.run, self._invitation.generation
        owner = Owner(run, self._name, socket.gethostname(), time.time_ns() // 1_000_000, generation)
        owned = Lane(lane, self._destination, self._naming, owner, engine.transaction_timeout)
        return LaneRunner(owned, self._source, self._destination, self._reader, engine, self._tell)

    async def _copy(self) -> list[LedgerRow]:
        results = await asyncio.gather(*(runner.run(self._stopping) for runner in self._runners.values()))
        self._runners = {n: c for n, c in self._runners.items() if c.lane.state is not LaneState.FENCED}
        return [row for rows in results for row in rows]

    async def _watch(self, reader: asyncio.StreamReader) -> None:
        """Heed the driver's words; stop at that word, and when the driver is no more, or is not understood."""
        try:
            with contextlib.suppress(OSError):
                while (line := await seat_line(reader)) not in (b"", STOP):
                    self._bound(decode_share(line))
        except Exception as error:
            self._tell("driver", unexpected(error))
        self._stopping.set()
        for runner in self._runners.values():
            runner.ready.set()

    def _tell(self, subject: str, error: ApplianceError | None) -> None:
        if self._driver is not None:
            kind = type(error).__name__ if error else ""
            self._driver.write(encode_notice(Notice(subject, str(error or ""), kind)))


_worker: Worker | None = None
"""A Python worker of Spark's serves many tasks; this is what it keeps from one to the next."""


def work(version: str, endpoint: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> list[LedgerRow]:
    """What a Spark task calls: the process's one worker does the slice. The arguments are the same in every release.

    Raises:
        PeerError: the driver is of another release.
        SettingsError: this host's settings cannot be used.
        Unreachable: the driver cannot be reached from here.
    """
    global _worker
    if version != VERSION:
        raise PeerError(
            f"{socket.gethostname()} has release {VERSION} of the appliance and the replicator {version}: "
            "install the same on every host of the Spark cluster"
        )
    if _worker is None:
        _worker = Worker(_own_settings(environment))
    return _worker.work(DriverEndpoint(**endpoint))


def _own_settings(environment: Mapping[str, str]) -> Settings:
    """This host's."""
    host = socket.gethostname()
    if ENV_FILE_VARIABLE not in environment:
        raise SettingsError([f"{ENV_FILE_VARIABLE}: missing on {host}: start its worker by `appliance spark worker`"])
    try:
        return read_settings(Path(environment[ENV_FILE_VARIABLE]), Role.REPLICATOR, environment)
    except SettingsError as error:
        raise SettingsError([f"on {host}: {fault}" for fault in error.faults]) from error


async def _dial(endpoint: DriverEndpoint) -> Stream:
    at = Path(endpoint.at) if isinstance(endpoint.at, str) else Target(*endpoint.at)
    try:
        return await dialled_seat(at, endpoint.token)
    except OSError as error:
        cause = f"SPARK_DRIVER_HOST, SPARK_DRIVER_PORT: {error}"
        raise Unreachable(f"{socket.gethostname()} does not reach the replicator at {at}: {cause}") from error
