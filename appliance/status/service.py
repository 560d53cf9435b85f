"""The replicator's pages over HTTP, on CONSOLE_LISTEN: health, metrics and the snapshot.

No failure here disturbs the replicator. A taken port, or a defect of ours, is logged once and tried again. A cluster
that does not answer is shown in the snapshot, and the replicator logs it itself.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from appliance.audit.model.progress import AuditProgress
from appliance.clock import now_ms
from appliance.groups.model.newest_groups import NewestGroups
from appliance.link.client.membership import Membership
from appliance.link.handle import Link
from appliance.link.model.problems import Problems
from appliance.runtime.background import in_background
from appliance.runtime.http import TEXT, HttpServer, Page, json_page
from appliance.settings.engine import Bound
from appliance.settings.values import Settings
from appliance.status.model.document import document, health, is_fresh
from appliance.status.model.metrics import exposition
from appliance.status.model.running import Running
from appliance.status.watcher import Watcher

log = logging.getLogger("appliance.status")

_PAUSE = 3.0
_PAUSE_MAX = 15.0
_PARTITIONS_A_SECOND = 700
"""Partitions for each second of pause: collecting takes some 30 microseconds of processor for each partition."""


@contextlib.asynccontextmanager
async def status_server(
    settings: Settings, bound: Bound, newest: NewestGroups, audit: AuditProgress, problems: Problems, me: Membership
) -> AsyncIterator[None]:
    """Watch and serve while the block runs; ``problems`` are the replicator's open ones."""

    async def running() -> Running:
        return Running(dict(problems), stands_by=bool(me.assignment.active) and not me.active)

    async with Link.open(settings) as link:
        watcher = Watcher(link, settings, bound, newest, audit, running)
        server = HttpServer(Pages(watcher).page)
        async with in_background(
            log,
            "the status server failed to {}; copying goes on",
            watch=lambda: watch(watcher),
            serve=lambda: server.serve("CONSOLE_LISTEN", settings.console.listen, log, "listening"),
        ):
            yield


async def watch(watcher: Watcher) -> None:
    """Collect again and again, more rarely if there are many partitions."""
    while True:
        snapshot = await watcher.collect()
        count = sum(len(topic.partitions) for topic in snapshot.topics)
        await asyncio.sleep(min(_PAUSE_MAX, max(_PAUSE, count / _PARTITIONS_A_SECOND)))


class Pages:
    """The pages of the newest snapshot. Another thread makes them into text, since that can take a while."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._by_path: dict[str, Callable[[], Page]] = {
            "/health": self._health,
            "/metrics": self._metrics,
            "/status": self._status,
        }

    async def page(self, path: str) -> Page:
        """The page of a path."""
        make = self._by_path.get(path)
        if make is None:
            return Page(404, TEXT, f"there is {', '.join(self._by_path)}\n".encode())
        return await asyncio.to_thread(make)

    def _health(self) -> Page:
        well, answer = health(self._watcher.snapshot, now_ms())
        return json_page(answer, 200 if well else 503)

    def _metrics(self) -> Page:
        snapshot = self._watcher.snapshot
        fresh = snapshot is not None and is_fresh(snapshot, now_ms())
        return Page(200, CONTENT_TYPE_PLAIN_0_0_4, exposition(snapshot, fresh))

    def _status(self) -> Page:
        snapshot = self._watcher.snapshot
        if snapshot is None:
            return json_page(health(None, now_ms())[1], 503)
        return json_page(document(snapshot))
