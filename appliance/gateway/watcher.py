"""Poll the source cluster's brokers through the tunnel, and open the endpoints that the allow-list allows.

Law: forwarding works without it. A silent cluster, a refused key and an untrusted certificate are logged once, shown,
and tried again.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from appliance.clock import epoch_seconds
from appliance.errors import ApplianceError, NameUnresolved, SettingsError
from appliance.gateway.endpoints import Endpoints
from appliance.gateway.model.brokers import BrokerState, BrokerView, Change, Fault, compare
from appliance.kafka.client.interface import Cluster
from appliance.settings.target import AllowedTargets, Target
from appliance.tunnel.model.allowlist import why_refused

PAUSE = 3.0
"""Seconds between two polls: a broker that joined is noticed after it at the latest."""
RETRY, RETRY_MAX = 1.0, 12.0
"""Seconds between two polls while they fail: the first pause, and the longest; they double in between."""

log = logging.getLogger("appliance.gateway")


class BrokerWatcher:
    """Keeps the endpoints in step with the cluster.

    ``view`` holds the known brokers, ``failures`` counts the failed polls.
    """

    def __init__(self, cluster: Cluster, allowed: AllowedTargets, endpoints: Endpoints) -> None:
        self._cluster = cluster
        self._allowed = allowed
        self._endpoints = endpoints
        self._unopened: dict[Target, str] = {}
        self.view = BrokerView()
        self.failures: Counter[Fault] = Counter()

    async def run(self) -> None:
        """Poll until cancelled."""
        retry = RETRY
        while True:
            if await self.poll():
                retry = RETRY
                await asyncio.sleep(PAUSE)
            else:
                await asyncio.sleep(retry)
                retry = min(2 * retry, RETRY_MAX)

    async def poll(self) -> bool:
        """Poll once; True if the cluster listed its brokers."""
        try:
            metadata = await self._cluster.metadata([])
        except ApplianceError as error:
            self._failed(error)
            return False
        if self.view.fault:
            log.info("the source cluster tells its brokers again", extra={"fields": {"brokers": len(metadata.brokers)}})
        change = compare(self._allowed, self.view.brokers, metadata.brokers)
        self._tell(change)
        state = {target: await self._opened(target) for target in change.open}
        refused = dict.fromkeys(change.refused, BrokerState.REFUSED)
        self.view = BrokerView(epoch_seconds(), change.brokers, {**state, **refused})
        return True

    async def _opened(self, target: Target) -> BrokerState:
        try:
            await self._endpoints.open(target)
        except SettingsError as error:
            if self._unopened.get(target) != str(error):
                log.error("endpoint not opened", extra={"fields": {"broker": str(target), "cause": str(error)}})
            self._unopened[target] = str(error)
            return BrokerState.CLOSED
        self._unopened.pop(target, None)
        return BrokerState.OPEN

    def _failed(self, error: ApplianceError) -> None:
        fault = Fault.of(error)
        self.failures[fault] += 1
        if fault is not self.view.fault:
            fields = {"fault": fault.value, "cause": str(error)}
            log.warning("the source cluster does not tell its brokers", extra={"fields": fields})
        before = self.view
        self.view = BrokerView(before.at, before.brokers, before.state, fault, str(error))

    def _tell(self, change: Change) -> None:
        for target in change.joined:
            log.info("source broker joined", extra={"fields": {"broker": str(target)}})
        for before, target in change.moved:
            log.info("source broker moved", extra={"fields": {"broker": str(target), "before": str(before)}})
        for target in change.left:
            log.info("source broker left", extra={"fields": {"broker": str(target)}})
        for target in change.refused:
            if self.view.state.get(target) is not BrokerState.REFUSED:
                fields = {"broker": str(target), "reason": why_refused(self._allowed, target)}
                log.warning(f"source broker refused: {self._allowed.variables}", extra={"fields": fields})


def resolver(endpoints: Endpoints) -> Callable[[str], Awaitable[Sequence[str]]]:
    """Resolves a broker to its endpoint, as the shim does, in this process."""

    async def resolve(host: str) -> Sequence[str]:
        address = await endpoints.lookup(host)
        if address is None:
            raise NameUnresolved(f"{host} is on no endpoint: {endpoints.allowed.variables}")
        return (str(address),)

    return resolve
