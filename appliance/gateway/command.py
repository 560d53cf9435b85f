"""``appliance source`` and ``appliance destination``: the two ends of the tunnel."""

import asyncio

from appliance.gateway.destination_side import run_destination
from appliance.gateway.source_side import run_source
from appliance.runtime.command import Command, with_settings
from appliance.settings.role import Role


def _uvloop() -> asyncio.AbstractEventLoop:
    """The event loop uvloop, which saves a tenth of the processor time for each message and each new connection."""
    import uvloop

    return uvloop.new_event_loop()


SOURCE = Command(
    "Listens on TUNNEL_LISTEN:TUNNEL_PORT for the destination VM, and carries its connections to the source "
    "brokers that SOURCE_BROKER_SERVERS and SOURCE_BROKER_PATTERN allow, and to no other target.",
    with_settings(Role.SOURCE, lambda settings, _, stopping: run_source(settings, stopping)),
    loop=_uvloop,
)

DESTINATION = Command(
    "Gives every source broker a loopback address, resolves its name on DNS_LISTEN, and carries connections to "
    "that address through the tunnel to SOURCE_SIDE_TUNNEL_IP:TUNNEL_PORT.",
    with_settings(Role.DESTINATION, lambda settings, _, stopping: run_destination(settings, stopping)),
    loop=_uvloop,
)
