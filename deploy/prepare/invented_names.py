"""What the source VM would reach that nobody has named, as far as its DNS shows before anything runs."""

import asyncio
from secrets import token_hex

from appliance.dns.invented import known_names, remedy
from appliance.dns.stub import StubResolver
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings


def reach_warnings(settings: TunnelSettings, resolver: Target | None) -> list[str]:
    """A line for each pattern below which a name that nobody gave has an address.

    Args:
        resolver: the VM's, which is asked where the settings name none.
    """
    server = settings.resolver or resolver
    if not settings.allowed.patterns or settings.broker_networks or server is None:
        return []
    random, own = f"nobody-{token_hex(4)}", [settings.server.host]
    known = asyncio.run(known_names(settings.allowed, StubResolver(server).addresses, random, own))
    return [f"{one}: {remedy(one.pattern)}" for one in known]
