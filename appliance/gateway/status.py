"""Health and metrics of one end of the tunnel over HTTP, on TUNNEL_STATUS_LISTEN.

Law: a failure here leaves the tunnel as it is.
"""

import json
import logging
import time
from collections.abc import Awaitable, Callable

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from appliance.dns.server import DnsServer
from appliance.dns.stub import StubResolver
from appliance.errors import ApplianceError
from appliance.gateway.endpoints import Endpoints
from appliance.gateway.model.health import Answer, Keys, destination_health
from appliance.gateway.model.metrics import DestinationCollector, DestinationNumbers, TunnelCollector, exposition
from appliance.gateway.watcher import BrokerWatcher
from appliance.runtime.background import Work
from appliance.runtime.http import TEXT, HttpServer, Page
from appliance.settings.target import Target
from appliance.settings.values import Settings, Side
from appliance.tunnel.client import TunnelClient

log = logging.getLogger("appliance.gateway")

FAILURE = "a background task failed, the tunnel goes on: {}"
"""The log line for an unexpected error in a background task."""


_SHIM_TIMEOUTS = (1.0,)


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


class DestinationStatus:
    """Health and metrics of the running parts."""

    def __init__(
        self,
        settings: Settings,
        client: TunnelClient,
        keys: Callable[[], Keys],
        endpoints: Endpoints,
        dns: DnsServer,
        watcher: BrokerWatcher,
    ) -> None:
        self._keys = keys
        self._settings = settings
        self._client = client
        self._endpoints = endpoints
        self._dns = dns
        self._watcher = watcher
        self._tunnel_collector = TunnelCollector(Side.DESTINATION, settings.tunnel, client.counters, keys)

    @property
    def shim(self) -> Target:
        """The address on which the DNS shim listens."""
        return Target(self._settings.dns.listen.host, self._dns.port)

    async def health(self) -> Answer:
        """The answer of the health endpoint, which sends the shim a query."""
        tunnel = self._settings.tunnel
        shim_fault = await self._shim_fault()
        return destination_health(
            tunnel.link,
            tunnel.allowed,
            shim_fault,
            self._client.counters,
            self._keys(),
            self._watcher.view,
            time.time(),
        )

    def metrics(self) -> bytes:
        """The text for Prometheus."""
        numbers = DestinationNumbers(
            server_fault=self._client.counters.server_fault,
            endpoints=self._endpoints.count,
            queries=self._dns.counters,
            view=self._watcher.view,
            failures=self._watcher.failures,
        )
        return exposition(self._tunnel_collector, DestinationCollector(numbers))

    async def _shim_fault(self) -> str:
        try:
            for target in self._settings.tunnel.allowed.exact[:1]:
                await StubResolver(self.shim, _SHIM_TIMEOUTS).addresses(target.host)
        except ApplianceError as error:
            return str(error)
        return ""
