"""The page of a run's replicator, asked at random moments; and scraped as Prometheus does it, for the alerts."""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp

from appliance.errors import ProcessFailed
from appliance.timestamps import milliseconds
from testbed.comparison import Track
from tests.faults.checker import Violation, denied
from tests.faults.history import Partition
from tests.faults.supervised import Supervised
from tests.simulation.scrapes import EVERY, UP, Series

_PAUSES = 0.3, 1.5
"""Shortest and longest time between two looks, in seconds."""

_LAG_MS = 10_000
"""The longest time by which a view may be behind a consumer, as where a new leader learns what is committed."""

_SILENT_LAG_MS = 45_000
"""The same of a view that says that the destination did not answer: it has waited 30 s for that."""

Counts = Mapping[Partition, int]


class Views:
    """The statuses of a replicator, with the number of the source's records that a consumer had seen before each."""

    def __init__(self, replicator: Callable[[], Supervised], seen: Callable[[], Counts], chance: random.Random) -> None:
        self.series = Series()
        self.looks: list[tuple[Counts, Any]] = []
        self._replicator, self._seen, self._chance = replicator, seen, chance
        self._counts: list[tuple[int, Counts]] = []
        self._looking = asyncio.create_task(self._look_again_and_again(), name="views")

    async def stop(self) -> None:
        """Look no more."""
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)

    def denied_by(self, sources: Mapping[Partition, Track]) -> list[Violation]:
        """The statements that the source's logs deny."""
        return [
            violation
            for seen, said in self.looks
            for partition, source in sources.items()
            for violation in denied(said, partition, source, seen[partition])
        ]

    async def _look_again_and_again(self) -> None:
        due = 0.0
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5.0)) as session:
            while True:
                self._counts.append((time.time_ns() // 1_000_000, self._seen()))
                if body := await self._page(session, "status"):
                    self._note(json.loads(body))
                if time.monotonic() >= due:
                    due = max(due + EVERY, time.monotonic())
                    await self._scrape(session)
                await asyncio.sleep(self._chance.uniform(*_PAUSES))

    def _note(self, said: Any) -> None:
        if not said.get("topics") or (self.looks and self.looks[-1][1]["at"] == said["at"]):
            return
        lag = _SILENT_LAG_MS if said["destination"]["unknown"] else _LAG_MS
        latest = milliseconds(said["at"]) - lag
        if before := [counts for at, counts in self._counts if at <= latest]:
            self.looks.append((before[-1], said))

    async def _scrape(self, session: aiohttp.ClientSession) -> None:
        page = await self._page(session, "metrics")
        self.series.add(UP, bool(page))
        self.series.take(page)
        self.series.scrapes += 1

    async def _page(self, session: aiohttp.ClientSession, path: str) -> bytes:
        """The page, empty where nobody answers."""
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, ProcessFailed):
            address = await self._replicator().process.wait_for_address("status: listening", 1.0)
            async with session.get(f"http://{address}/{path}") as answer:
                return await answer.read()
        return b""
