"""The status of an end of the tunnel as a JSON object, from the same counters as health and metrics; pure.

Unknown is null, times are ISO 8601 in UTC, durations are seconds. No secret and no client's address is in it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from appliance.dns.responder import Outcome
from appliance.gateway.model.brokers import BrokerState, BrokerView, Fault
from appliance.gateway.model.far_view import FarView, Json
from appliance.gateway.model.health import Answer, Keys
from appliance.gateway.model.metrics import DestinationNumbers
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.timestamps import utc
from appliance.tunnel.limits.counters import Counters, Histogram, Refusal
from appliance.tunnel.stream.relay import End
from appliance.version import VERSION


@dataclass(frozen=True, slots=True)
class Process:
    """A running end of the tunnel, and the time of its start in seconds since 1970."""

    settings: TunnelSettings
    counters: Counters
    since: float


def source_document(process: Process, keys: Keys, health: Answer, listening: Target | None, now: float) -> Json:
    """The source VM's end; ``listening`` None: it does not."""
    return {**_end(process, keys, health, now), "listening": _address(listening) if listening else None}


def destination_document(
    process: Process,
    keys: Keys,
    health: Answer,
    endpoints: Mapping[Target, str],
    numbers: DestinationNumbers,
    now: float,
) -> Json:
    """The destination VM's end; ``endpoints`` are the addresses of the brokers that have one."""
    fault, tunnel, vms = numbers.server_fault, process.settings, process.counters.servers
    pairs = zip(tunnel.of_each_vm, vms, strict=False)
    carrying = next((vm for vm, health in pairs if health.usable), tunnel)
    reached = None if fault is None else not fault
    return {
        **_end(process, keys, health, now),
        "server": {**_address(carrying.server), "reached": reached, "fault": fault or None},
        "source_vms": [
            Json(server=each.name, condition=each.condition, connections=len(each.carried), fault=each.fault or None)
            | Json(since=utc(each.since) if each.since else None)
            for each in vms
        ],
        "endpoints": [
            {"address": address, "port": broker.port, "broker": str(broker)} for broker, address in endpoints.items()
        ],
        "dns": health["dns"],
        "dns_queries": {outcome.value: numbers.queries[outcome] for outcome in Outcome},
        "brokers": _brokers(numbers.view, now),
        "metadata_failures": {fault.value: numbers.failures.get(fault, 0) for fault in Fault},
    }


def both_ends(near: Json, far: FarView, now: float) -> Json:
    """The near end's document, and the knowledge of the far end."""
    unknown = far.unknown(now)
    return {
        "at": utc(now),
        "near": near,
        "far": far.document,
        "far_at": None if far.at is None else utc(far.at),
        "far_unknown": {"since": utc(unknown.since), "reason": unknown.reason} if unknown else None,
    }


def _end(process: Process, keys: Keys, health: Answer, now: float) -> Json:
    """The members that both ends have."""
    counters = process.counters
    return {
        "side": health["side"],
        "link": health["link"],
        "version": VERSION,
        "carrier": process.settings.carrier,
        "since": utc(process.since),
        "at": utc(now),
        "troubles": health["troubles"],
        "remarks": health["remarks"],
        "connections": {
            "accepted": counters.accepted,
            "open": counters.open,
            "waiting": counters.open - counters.carrying,
        },
        "refused": {cause.value: counters.refused[cause] for cause in Refusal},
        "bytes": {"to_target": counters.to_target.bytes, "from_target": counters.from_target.bytes},
        "relays_ended": {end.name.lower(): counters.ended[end.name] for end in End},
        "handshakes": _durations(counters.handshakes),
        "dials": _durations(counters.dials),
        "certificate_days_left": math.floor(keys.days_left),
        "peer_certificate_days_left": None if keys.peer_days_left is None else math.floor(keys.peer_days_left),
        "previous_secret": keys.previous_secret,
    }


def _brokers(view: BrokerView, now: float) -> Json:
    """The brokers by state; null before the source cluster has listed them."""
    return {
        "age_seconds": None if view.at is None else round(now - view.at, 1),
        "fault": view.fault,
        "cause": view.cause or None,
        **{
            state.value: [str(target) for target in view.in_state(state)] if view.at is not None else None
            for state in BrokerState
        },
    }


def _durations(histogram: Histogram) -> Json:
    def rounded(seconds: float | None) -> float | None:
        return None if seconds is None else round(seconds, 6)

    return {
        "count": histogram.count,
        "mean_seconds": rounded(histogram.mean),
        "p50_seconds": rounded(histogram.quantile(0.5)),
        "p99_seconds": rounded(histogram.quantile(0.99)),
    }


def _address(target: Target) -> Json:
    return {"address": target.host, "port": target.port}
