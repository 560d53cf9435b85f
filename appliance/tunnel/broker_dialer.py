"""The source VM's dial to the source brokers.

In this order: check the target against the allow-list, resolve its name, check the addresses, connect.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

from appliance.clock import deadline
from appliance.errors import ApplianceError, OutOfDescriptors, TargetRefused, Unreachable
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.tunnel.limits.connection_limit import FD_REMEDY
from appliance.tunnel.limits.counters import Counters
from appliance.tunnel.model.allowlist import check_target, dialable
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.outage_log import OutageLog
from appliance.tunnel.stream.channel import Channel
from appliance.tunnel.stream.relay import relay
from appliance.tunnel.stream.tcp_channel import TcpChannel, dial

log = logging.getLogger("appliance.tunnel")

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""The addresses of a host; raises NameUnresolved or Unreachable."""

_LINES = (
    (TargetRefused, "target refused: check SOURCE_BROKER_SERVERS, SOURCE_BROKER_PATTERN and TUNNEL_BROKER_NETWORKS"),
    (OutOfDescriptors, FD_REMEDY),
    (Unreachable, "target not reached: check that this VM resolves and reaches the source brokers"),
)


class BrokerDialer:
    """Dials targets, and carries connections to them."""

    def __init__(self, settings: TunnelSettings, resolve: Resolve, timeouts: Timeouts, counters: Counters) -> None:
        self._settings = settings
        self._resolve = resolve
        self._timeouts = timeouts
        self._counters = counters
        self._report = OutageLog("target", _LINES, "target reached again")

    async def dial(self, target: Target) -> TcpChannel:
        """A connection to ``target``; changes of a target's state are logged.

        Raises:
            TargetRefused: it is not on the allow-list, or its name resolves to a forbidden address.
        """
        try:
            with self._counters.dials.timed():
                channel = await self._dial(target)
        except ApplianceError as error:
            self._report.failed(str(target), error)
            self._counters.target_failed(error)
            raise
        self._report.succeeded(str(target))
        return channel

    async def carry(self, near: Channel, far: Channel, target: Target) -> None:
        """Relay between the peer's ``near`` and the ``far`` of ``dial``; its begin and end are logged, with bytes."""
        log.info("tunnel connection opened", extra={"fields": {"peer": near.peer, "target": str(target)}})
        summary = await relay(near, far, self._timeouts.linger, self._settings.idle_seconds, self._counters)
        fields = {"peer": near.peer, "target": str(target), **summary.fields()}
        log.info("tunnel connection closed", extra={"fields": fields})

    async def _dial(self, target: Target) -> TcpChannel:
        check_target(target, self._settings)
        async with deadline(self._timeouts.resolve, f"{target.host} not resolved"):
            addresses = await self._resolve(target.host)
        return await dial(dialable(target, addresses, self._settings), target.port, self._timeouts.dial, TcpChannel)
