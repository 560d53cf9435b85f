"""Health and metrics of one end of the tunnel over HTTP, on TUNNEL_STATUS_LISTEN.

Law: whatever goes wrong here, the tunnel does not feel it.
"""

import json
import logging
from collections.abc import Awaitable, Callable

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from appliance.gateway.model.health import Answer
from appliance.runtime.background import Work
from appliance.runtime.http import TEXT, HttpServer, Page
from appliance.settings.target import Target

log = logging.getLogger("appliance.gateway")

FAILURE = "this failed beside the tunnel, which carries on: {}"
"""What is said of a defect in the work beside the tunnel."""


class StatusPages:
    """The two pages, made when they are asked for.

    Args:
        health: gives the answer of the health endpoint.
        metrics: gives the text for Prometheus.
    """

    def __init__(self, health: Callable[[], Awaitable[Answer]], metrics: Callable[[], bytes]) -> None:
        self._health = health
        self._metrics = metrics

    async def page(self, path: str) -> Page:
        """The page of a path."""
        if path == "/health":
            answer = await self._health()
            body = json.dumps(answer, indent=2).encode() + b"\n"
            return Page(503 if answer["troubles"] else 200, "application/json", body)
        if path == "/metrics":
            return Page(200, CONTENT_TYPE_PLAIN_0_0_4, self._metrics())
        return Page(404, TEXT, b"there is /health, /metrics\n")


def serving(at: Target, pages: StatusPages) -> Work:
    """The work of serving the pages."""
    return lambda: HttpServer(pages.page).serve("TUNNEL_STATUS_LISTEN", at, log, "status listening")
