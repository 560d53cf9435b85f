"""The reach of SOURCE_BROKER_PATTERN: made-up names below it are resolved or dialled."""

from secrets import token_hex

from appliance.dns.invented import Resolve, known_names, labels, remedy
from appliance.doctor.brokers import RemoteDial
from appliance.doctor.step import Finding, passed, skipped, warning
from appliance.errors import NameUnresolved, TargetRefused, Unreachable
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings

NO_PATTERN = skipped("SOURCE_BROKER_PATTERN is empty: the brokers that are named are all")


def _random_label() -> str:
    return f"nobody-{token_hex(4)}"


async def examine_here(settings: TunnelSettings, resolve: Resolve) -> Finding:
    """Ask this VM's resolver for made-up names; for the source VM."""
    if not settings.allowed.patterns:
        return NO_PATTERN
    if settings.broker_networks:
        return passed(f"bounded by TUNNEL_BROKER_NETWORKS={','.join(map(str, settings.broker_networks))}")
    known = await known_names(settings.allowed, resolve, _random_label(), [settings.server.host])
    if known:
        return warning("; ".join(map(str, known)), remedy(known[0].pattern))
    return passed("no name that was made up has an address")


async def examine_through(settings: TunnelSettings, remote_dial: RemoteDial) -> Finding:
    """Let the source VM dial made-up names; for the destination VM. A name that it may not dial counts as unknown."""
    if not settings.allowed.patterns:
        return NO_PATTERN
    asked = labels(_random_label(), [settings.server.host])
    for pattern in settings.allowed.patterns:
        for target in (Target(f"{label}.{pattern.domain}", pattern.port) for label in asked):
            if target not in settings.allowed.exact and await _is_dialled(target, remote_dial):
                return warning(f"{target} was made up just now, and the source VM dials it", remedy(pattern))
    return passed("no name that was made up is dialled by the source VM")


async def _is_dialled(target: Target, remote_dial: RemoteDial) -> bool:
    try:
        await remote_dial(target)
    except (NameUnresolved, TargetRefused):
        return False
    except Unreachable:
        return True
    return True
