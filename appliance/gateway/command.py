"""``appliance source`` and ``appliance destination``: the two ends of the tunnel."""

import argparse
import asyncio
import logging
from collections.abc import Awaitable, Callable

from appliance.gateway.destination_side import run_destination
from appliance.gateway.source_side import run_source
from appliance.runtime.command import Command, Run, with_settings
from appliance.runtime.confinement import read_only
from appliance.settings.role import Role
from appliance.settings.values import Settings
from appliance.tunnel.dialler import carrier_of

log = logging.getLogger("appliance.gateway")


def _uvloop() -> asyncio.AbstractEventLoop:
    """The event loop uvloop, which saves a tenth of the processor time for each message and each new connection."""
    import uvloop

    return uvloop.new_event_loop()


def _confined(role: Role, run: Callable[[Settings, asyncio.Event], Awaitable[None]]) -> Run:
    """An end that reads only the files that its settings name; a login by token may need any."""

    async def confine_and_run(settings: Settings, _: argparse.Namespace, stopping: asyncio.Event) -> None:
        by_token = False
        if role & Role.DESTINATION:
            carrier_of(settings.tunnel)
            by_token = settings.source.mechanism.by_token
        version = 0 if by_token else read_only(settings.tunnel, settings.source)
        log.info("files confined", extra={"fields": {"landlock": version}})
        await run(settings, stopping)

    return with_settings(role, confine_and_run)


SOURCE = Command(
    "Listens on TUNNEL_LISTEN:TUNNEL_PORT for the destination VM, and carries its connections to the source "
    "brokers that SOURCE_BROKER_SERVERS and SOURCE_BROKER_PATTERN allow, and to no other target.",
    _confined(Role.SOURCE, run_source),
    loop=_uvloop,
)

DESTINATION = Command(
    "Gives every source broker a loopback address, resolves its name on DNS_LISTEN, and carries connections to "
    "that address through the tunnel to SOURCE_SIDE_TUNNEL_IP:TUNNEL_PORT.",
    _confined(Role.DESTINATION, run_destination),
    loop=_uvloop,
)
