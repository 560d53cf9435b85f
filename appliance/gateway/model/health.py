"""The answers of the health endpoint of either end of the tunnel; pure.

An answer is a JSON object; all is well when its ``troubles`` are empty. Its ``remarks`` can wait for some days.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from appliance.gateway.model.brokers import BrokerState, BrokerView
from appliance.settings.target import AllowedTargets
from appliance.settings.values import Side
from appliance.tls.identity import DAYS_WARNING, RENEWAL_REMEDY
from appliance.tunnel.limits.counters import Counters
from appliance.tunnel.model.allowlist import why_refused
from appliance.tunnel.model.servers import Condition

STALE_SECONDS = 30.0
"""Oldest metadata that counts as current, in seconds."""

Answer = dict[str, object]


@dataclass(frozen=True, slots=True)
class Keys:
    """An end's keys: the days that its certificate has left; True with SHARED_SECRET_PREVIOUS.

    ``peer_days_left`` are the days of the certificate that the other end showed last; None before the first.
    """

    days_left: float
    previous_secret: bool
    peer_days_left: float | None = None


def source_health(link: str, listening: bool, counters: Counters, keys: Keys) -> Answer:
    """The health of the source VM's end, which only waits for the other one."""
    troubles = [] if listening else ["the tunnel does not listen"]
    return {
        "side": Side.SOURCE,
        "link": link,
        "troubles": troubles,
        "remarks": _remarks(keys, counters),
        "tunnel": _tunnel(counters, keys),
    }


def destination_health(
    link: str, allowed: AllowedTargets, shim_fault: str, counters: Counters, keys: Keys, view: BrokerView, now: float
) -> Answer:
    """The destination VM's end.

    ``shim_fault`` is why the DNS shim does not answer, empty if it does; ``now`` is in seconds since 1970.
    """
    troubles = [f"the DNS shim does not answer: {shim_fault}"] if shim_fault else []
    if counters.server_fault:
        troubles.append(f"the tunnel server was not reached at the last attempt: {counters.server_fault}")
    return {
        "side": Side.DESTINATION,
        "link": link,
        "troubles": [*troubles, *_metadata_troubles(view, now), *_broker_troubles(allowed, view)],
        "remarks": _remarks(keys, counters),
        "tunnel": {
            **_tunnel(counters, keys),
            "server_reached": None if counters.server_fault is None else not counters.server_fault,
        },
        "dns": {"answers": not shim_fault},
        "brokers": _brokers(view, now),
    }


def order_health(ways: Mapping[str, Answer]) -> Answer:
    """The health of an order's gateway, from the ways to the other clusters by their ids."""

    def gathered(key: str) -> list[str]:
        return [f"{cluster}: {text}" for cluster, answer in ways.items() for text in cast("list[str]", answer[key])]

    return {
        "side": Side.DESTINATION,
        "link": next(iter(ways.values()))["link"],
        "troubles": gathered("troubles"),
        "remarks": gathered("remarks"),
        "clusters": dict(ways),
    }


def _tunnel(counters: Counters, keys: Keys) -> Answer:
    return {
        "connections_open": counters.open,
        "connections_waiting": counters.open - counters.carrying,
        "certificate_days_left": math.floor(keys.days_left),
        "previous_secret": keys.previous_secret,
    }


def _remarks(keys: Keys, counters: Counters) -> list[str]:
    """Tasks of the operator for the next days, and the source VMs for which another one stands in."""
    well = any(each.condition is Condition.WELL for each in counters.servers)
    away = [each for each in counters.servers if each.fault] if well else []
    remarks = [f"the source VM at {each.name} is {each.condition}, another one carries: {each.fault}" for each in away]
    if keys.days_left < DAYS_WARNING:
        remarks.append(f"this VM's certificate ends in {math.floor(keys.days_left)} days: {RENEWAL_REMEDY}")
    if keys.previous_secret:
        remarks.append("SHARED_SECRET_PREVIOUS is set: remove it as soon as the source VM has the new SHARED_SECRET")
    return remarks


def _brokers(view: BrokerView, now: float) -> Answer:
    answer: Answer = {"age_seconds": None if view.at is None else round(now - view.at, 1), "fault": view.fault}
    return answer | {state.value: [str(target) for target in view.in_state(state)] for state in BrokerState}


def _metadata_troubles(view: BrokerView, now: float) -> list[str]:
    if view.fault:
        return [f"the source cluster does not tell its brokers ({view.fault}): {view.cause}"]
    if view.at is None:
        return ["the source cluster has not told its brokers yet"]
    age = now - view.at
    return [f"the source cluster told its brokers {age:.0f} s ago, and not since"] if age > STALE_SECONDS else []


def _broker_troubles(allowed: AllowedTargets, view: BrokerView) -> list[str]:
    refused = [
        f"broker {target} is refused, {why_refused(allowed, target)}: {allowed.variables}"
        for target in view.in_state(BrokerState.REFUSED)
    ]
    return refused + [
        f"broker {target} has no endpoint: TUNNEL_ENDPOINT_NETWORK" for target in view.in_state(BrokerState.CLOSED)
    ]
