"""Health and metrics of one end of the tunnel, and the status of both, over HTTP, on TUNNEL_STATUS_LISTEN.

Law: a failure here leaves the tunnel as it is.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from appliance.clock import epoch_seconds
from appliance.dns.server import DnsServer
from appliance.dns.stub import StubResolver
from appliance.errors import ApplianceError
from appliance.gateway.endpoints import Endpoints
from appliance.gateway.far_end import FarEnd
from appliance.gateway.model.document import Process, both_ends, destination_document, source_document
from appliance.gateway.model.far_view import Json
from appliance.gateway.model.health import Answer, Keys, destination_health, source_health
from appliance.gateway.model.metrics import DestinationCollector, DestinationNumbers, TunnelCollector, exposition
from appliance.gateway.watcher import BrokerWatcher
from appliance.runtime.background import Work
from appliance.runtime.http import TEXT, HttpServer, Page, json_page
from appliance.settings.target import Target
from appliance.settings.values import Settings, Side, TunnelSettings
from appliance.tunnel.client import TunnelClient
from appliance.tunnel.server import TunnelServer

log = logging.getLogger("appliance.gateway")

FAILURE = "a background task failed, the tunnel goes on: {}"
"""The log line for an unexpected error in a background task."""

_SHIM_TIMEOUTS = (1.0,)


@dataclass(slots=True)
class StatusPages:
    """The pages, made when they are asked for.

    Args:
        health: gives the answer of the health endpoint.
        metrics: gives the text for Prometheus.
        status: gives the status document.
    """

    health: Callable[[], Awaitable[Answer]]
    metrics: Callable[[], bytes]
    status: Callable[[], Awaitable[Json]]

    async def page(self, path: str) -> Page:
        """The page of a path."""
        if path == "/health":
            answer = await self.health()
            return json_page(answer, 503 if answer["troubles"] else 200)
        if path == "/status":
            return json_page(await self.status())
        if path == "/metrics":
            return Page(200, CONTENT_TYPE_PLAIN_0_0_4, self.metrics())
        return Page(404, TEXT, b"there is /health, /metrics, /status\n")


def serving(at: Target, pages: StatusPages) -> Work:
    """The work of serving the pages."""
    return lambda: HttpServer(pages.page).serve("TUNNEL_STATUS_LISTEN", at, log, "status listening")


class SourceStatus:
    """Health, metrics and status of the running server."""

    def __init__(self, settings: TunnelSettings, keys: Callable[[], Keys], server: TunnelServer) -> None:
        self._settings = settings
        self._keys = keys
        self._server = server
        self._process = Process(settings, server.counters, epoch_seconds())
        self._collector = TunnelCollector(Side.SOURCE, settings, server.counters, keys)

    async def health(self) -> Answer:
        """The answer of the health endpoint."""
        return self._answer()

    def metrics(self) -> bytes:
        """The text for Prometheus."""
        return exposition(self._collector)

    async def status(self) -> Json:
        """The document of this end."""
        return self._document()

    def for_the_other_end(self) -> bytes:
        """The same document, as it goes through the tunnel."""
        return json.dumps(self._document()).encode()

    def _document(self) -> Json:
        listening = Target(self._settings.listen.host, self._server.port) if self._server.listening else None
        return source_document(self._process, self._keys(), self._answer(), listening, epoch_seconds())

    def _answer(self) -> Answer:
        server = self._server
        return source_health(self._settings.link, server.listening, server.counters, self._keys())


@dataclass(slots=True)
class DestinationStatus:
    """Health and metrics of the running parts, and the status of both ends."""

    settings: Settings
    client: TunnelClient
    keys: Callable[[], Keys]
    endpoints: Endpoints
    dns: DnsServer
    watcher: BrokerWatcher
    far_end: FarEnd
    _process: Process = field(init=False)

    def __post_init__(self) -> None:
        self._process = Process(self.settings.tunnel, self.client.counters, epoch_seconds())

    @property
    def shim(self) -> Target:
        """The address on which the DNS shim listens."""
        return Target(self.settings.dns.listen.host, self.dns.port)

    async def health(self) -> Answer:
        """The answer of the health endpoint, which sends the shim a query."""
        tunnel = self.settings.tunnel
        shim_fault = await self._shim_fault()
        return destination_health(
            tunnel.link,
            tunnel.allowed,
            shim_fault,
            self.client.counters,
            self.keys(),
            self.watcher.view,
            epoch_seconds(),
        )

    def metrics(self) -> bytes:
        """The text for Prometheus."""
        tunnel = TunnelCollector(Side.DESTINATION, self.settings.tunnel, self.client.counters, self.keys)
        return exposition(tunnel, DestinationCollector(self._numbers()))

    async def status(self) -> Json:
        """The document of both ends; it has the far end asked, and does not wait for its answer."""
        far, health, now = self.far_end.look(), await self.health(), epoch_seconds()
        endpoints, numbers = self.endpoints.addresses, self._numbers()
        near = destination_document(self._process, self.keys(), health, endpoints, numbers, now)
        return both_ends(near, far, now)

    def _numbers(self) -> DestinationNumbers:
        return DestinationNumbers(
            server_fault=self.client.counters.server_fault,
            endpoints=self.endpoints.count,
            queries=self.dns.counters,
            view=self.watcher.view,
            failures=self.watcher.failures,
        )

    async def _shim_fault(self) -> str:
        try:
            for target in self.settings.tunnel.allowed.exact[:1]:
                await StubResolver(self.shim, _SHIM_TIMEOUTS).addresses(target.host)
        except ApplianceError as error:
            return str(error)
        return ""
