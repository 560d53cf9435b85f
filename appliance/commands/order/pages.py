"""The pages of the process of an order over HTTP, on CONSOLE_LISTEN: health, metrics, and the view of all clusters.

No failure here disturbs the order: it is logged once, and tried again.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from appliance.clock import loop_seconds, now_ms
from appliance.order.handle import OrderHandle
from appliance.order.model.metrics import OrderCollector, exposition
from appliance.order.model.shown import document, page
from appliance.order.model.view import OrderView
from appliance.order.process import OrderProcess
from appliance.runtime.background import in_background
from appliance.runtime.http import TEXT, HttpServer, Page, json_page
from appliance.settings.order_values import OrderSettings
from appliance.status.model.document import STALE_SECONDS

log = logging.getLogger("appliance.status")

_PAUSE = 3.0
"""Seconds between two looks at all clusters."""


@dataclass
class OrderPages:
    """The pages of the newest view; ``process`` is that of this VM, once it has begun."""

    view: OrderView | None = None
    process: OrderProcess | None = None

    def began(self, process: OrderProcess) -> None:
        """Show what this process hears of its homes."""
        self.process = process

    @contextlib.asynccontextmanager
    async def served(self, settings: OrderSettings) -> AsyncIterator[None]:
        """Look and serve while the block runs."""
        async with OrderHandle.open(settings) as order:
            server = HttpServer(self.page)
            async with in_background(
                log,
                "the status server failed to {}; ordering goes on",
                watch=lambda: self._watch(order),
                serve=lambda: server.serve("CONSOLE_LISTEN", settings.console.listen, log, "listening"),
            ):
                yield

    async def _watch(self, order: OrderHandle) -> None:
        while True:
            self.view = await order.view()
            await asyncio.sleep(_PAUSE)

    async def page(self, path: str) -> Page:
        """The page of a path."""
        view = self.view if self.view and now_ms() - self.view.at <= STALE_SECONDS * 1000 else None
        if path == "/metrics":
            now, runners = loop_seconds(), self.process.runners if self.process else []
            silent = {runner.lane.index: runner.ballot.watch.suspects(now) for runner in runners}
            collector = OrderCollector(self.view, silent, fresh=view is not None)
            return Page(200, CONTENT_TYPE_PLAIN_0_0_4, exposition(collector))
        if path not in ("/", "/health", "/status"):
            return Page(404, TEXT, b"there is /, /health, /metrics, /status\n")
        if path == "/":
            return Page(200, "text/html; charset=utf-8", page(view or self.view, fresh=view is not None).encode())
        if view is None:
            return json_page({"state": "unknown", "at": None, "problems": ["no new look at the clusters"]}, 503)
        told = document(view)
        if path == "/status":
            return json_page(told)
        return json_page({name: told[name] for name in ("state", "at", "problems")}, 200 if view.state.well else 503)
