"""Health and metrics of one end of the tunnel, and the status of both, over HTTP, on TUNNEL_STATUS_LISTEN.

Law: a failure here leaves the tunnel as it is.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from appliance.clock import epoch_seconds, loop_seconds
from appliance.dns.server import DnsServer
from appliance.dns.stub import StubResolver
from appliance.errors import ApplianceError
from appliance.gateway.endpoints import Endpoints
from appliance.gateway.model.document import Process, both_ends, destination_document, source_document
from appliance.gateway.model.far_view import FarView, Json, read_document
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

_SHIM_TIMEOUTS = (1.0,)


class _End(Protocol):
    """An end of the tunnel, whose pages are made when they are asked for."""

    async def health(self) -> Answer:
        """The answer of the health endpoint."""

    def metrics(self) -> bytes:
        """The text for Prometheus."""

    async def status(self) -> Json:
        """The status document."""


def serving(at: Target, end: _End) -> Work:
    """The work of serving the pages of an end."""

    async def page(path: str) -> Page:
        if path == "/health":
            answer = await end.health()
            return json_page(answer, 503 if answer["troubles"] else 200)
        if path == "/status":
            return json_page(await end.status())
        if path == "/metrics":
            return Page(200, CONTENT_TYPE_PLAIN_0_0_4, end.metrics())
        return Page(404, TEXT, b"there is /health, /metrics, /status\n")

    return lambda: HttpServer(page).serve("TUNNEL_STATUS_LISTEN", at, log, "status listening")


class FarEnd:
    """The status of the far end, asked for through the tunnel, and only while somebody wants to see it.

    Whoever looks gets the last answer at once. If it is old, one request is made in the background: one for all who
    look meanwhile.
    """

    def __init__(self, ask: Callable[[], Awaitable[bytes]], link: str) -> None:
        self._ask = ask
        self._link = link
        self._request = asyncio.Event()
        self._next = 0.0
        self._view = FarView()

    def newest(self) -> FarView:
        """The last answer; a newer one is fetched in the background if this one is old."""
        if loop_seconds() >= self._next:
            self._request.set()
        return self._view

    async def run(self) -> None:
        """Ask when somebody looks, until cancelled."""
        while True:
            await self._request.wait()
            try:
                self._view = self._view.answered(read_document(await self._ask(), self._link), epoch_seconds())
            except ApplianceError as error:
                self._view = self._view.failed(error, epoch_seconds())
            except Exception as error:
                self._view = self._view.failed(error, epoch_seconds())
                raise
            finally:
                self._next = loop_seconds() + self._view.pause
                self._request.clear()


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
        return exposition(*self.collectors())

    def collectors(self) -> tuple[Collector, ...]:
        """The collectors of its metrics."""
        tunnel = TunnelCollector(Side.DESTINATION, self.settings.tunnel, self.client.counters, self.keys)
        return tunnel, DestinationCollector(self._numbers())

    async def status(self) -> Json:
        """The document of both ends; it has the far end asked, and does not wait for its answer."""
        far, health, now = self.far_end.newest(), await self.health(), epoch_seconds()
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
