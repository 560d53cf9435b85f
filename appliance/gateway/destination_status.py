"""What the destination VM's end shows of itself: its parts, asked when somebody looks."""

import time
from collections.abc import Callable

from appliance.dns.server import DnsServer
from appliance.dns.stub import StubResolver
from appliance.errors import ApplianceError
from appliance.gateway.endpoints import Endpoints
from appliance.gateway.model.health import Answer, Keys, destination_health
from appliance.gateway.model.metrics import DestinationCollector, DestinationNumbers, TunnelCollector, exposition
from appliance.gateway.watcher import BrokerWatcher
from appliance.settings.target import Target
from appliance.settings.values import Settings, Side
from appliance.tunnel.client import TunnelClient

_SHIM_TIMEOUTS = (1.0,)


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
        """Where the DNS shim listens."""
        return Target(self._settings.dns.listen.host, self._dns.port)

    async def health(self) -> Answer:
        """The answer of the health endpoint; the shim is asked a question for it."""
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
