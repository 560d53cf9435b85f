"""The source VM: a tunnel server that dials the source brokers, until it is stopped."""

import asyncio
import logging

from appliance.dns.stub import StubResolver, system_addresses
from appliance.gateway.model.health import Keys
from appliance.gateway.status import FAILURE, SourceStatus, StatusPages, serving
from appliance.runtime.background import in_background
from appliance.settings.values import Settings, Side, TunnelSettings
from appliance.tunnel.broker_dialer import Resolve
from appliance.tunnel.certificate_reload import CertificateReload
from appliance.tunnel.limits.connection_limit import raise_fd_limit
from appliance.tunnel.model.connect import DRAIN_SECONDS
from appliance.tunnel.server import TunnelServer
from appliance.tunnel.stream.jams import reset_jammed

log = logging.getLogger("appliance.gateway")


async def run_source(settings: Settings, stopping: asyncio.Event) -> None:
    """Serve the tunnel until ``stopping`` is set, then drain it.

    Raises:
        SettingsError: the port is not available, or a file of the identity cannot be used.
    """
    tunnel = settings.tunnel
    raise_fd_limit(tunnel.connections_max)
    async with CertificateReload(tunnel, Side.SOURCE) as identity:
        server = TunnelServer(tunnel, identity, broker_resolver(tunnel), status=lambda: status.for_the_other_end())
        status = SourceStatus(tunnel, lambda: Keys(identity.days_left(), False, identity.peer_days_left()), server)
        served = serving(tunnel.status, StatusPages(status.health, status.metrics, status.status))
        async with server, in_background(log, FAILURE, memory=reset_jammed, status=served):
            fields = {
                "listen": f"{tunnel.listen.host}:{server.port}",
                "link": tunnel.link,
                "targets": [str(target) for target in (*tunnel.allowed.exact, *tunnel.allowed.patterns)],
                "resolver": str(tunnel.resolver or "the system's"),
            }
            log.info("ready", extra={"fields": fields})
            await stopping.wait()
            log.info("stopping", extra={"fields": {"drain_seconds": DRAIN_SECONDS}})
            await server.drain(DRAIN_SECONDS)


def broker_resolver(settings: TunnelSettings) -> Resolve:
    """The resolver of the brokers' addresses on the source VM."""
    return StubResolver(settings.resolver).addresses if settings.resolver else system_addresses
