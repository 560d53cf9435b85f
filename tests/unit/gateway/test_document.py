from collections import Counter
from dataclasses import replace

from appliance.dns.responder import Outcome
from appliance.gateway.model.brokers import BrokerView, Fault
from appliance.gateway.model.document import Process, both_ends, destination_document, source_document
from appliance.gateway.model.far_view import FarView, Json
from appliance.gateway.model.health import Keys, destination_health, source_health
from appliance.gateway.model.metrics import DestinationNumbers
from appliance.settings.target import Target
from appliance.tunnel.limits.counters import Counters, Refusal
from appliance.version import VERSION
from tests.support.brokers import ALLOWED, B0, B1, NOW, REFUSED_KEY, SEEN
from tests.support.exposition import source_vms
from tests.support.tunnel import SECRET, tunnel_settings

SINCE = NOW - 3600
SETTINGS = tunnel_settings(B0, port=15060)
KEYS = Keys(90.5, previous_secret=False, peer_days_left=29.9)
NO_DURATIONS = {"count": 0, "mean_seconds": None, "p50_seconds": None, "p99_seconds": None}
NO_REFUSALS = dict.fromkeys((cause.value for cause in Refusal), 0)


def source(counters: Counters, keys: Keys = KEYS) -> Json:
    health = source_health(SETTINGS.link, True, counters, keys)
    return source_document(Process(SETTINGS, counters, SINCE), keys, health, Target("0.0.0.0", 15060), NOW)


def destination(view: BrokerView = SEEN, server_fault: str | None = "") -> Json:
    counters = Counters(server_fault=server_fault, servers=source_vms("refused"))
    health = destination_health(SETTINGS.link, ALLOWED, "", counters, KEYS, view, NOW)
    endpoints = {B0: "127.64.0.1", B1: "127.64.0.2"}
    numbers = DestinationNumbers(server_fault, 2, Counter({Outcome.MAPPED: 3}), view, {Fault.CREDENTIALS: 2})
    return destination_document(Process(SETTINGS, counters, SINCE), KEYS, health, endpoints, numbers, NOW)


def test_the_sources_end_has_all_that_it_has_counted() -> None:
    counters = Counters(accepted=7, open=3, carrying=1, refused=Counter({Refusal.IDENTITY: 2}))
    counters.to_target.bytes, counters.from_target.bytes = 10, 20
    counters.ended["COMPLETE"] = 4
    counters.handshakes.observe(0.003)
    assert source(counters) == {
        "side": "source",
        "link": "orange-grape",
        "version": VERSION,
        "carrier": "tcp",
        "since": "2027-01-15T07:00:00.000Z",
        "at": "2027-01-15T08:00:00.000Z",
        "troubles": [],
        "remarks": [],
        "connections": {"accepted": 7, "open": 3, "waiting": 2},
        "refused": {**NO_REFUSALS, "identity": 2},
        "bytes": {"to_target": 10, "from_target": 20},
        "relays_ended": {"complete": 4, "near_lost": 0, "far_lost": 0, "silent": 0, "idle": 0},
        "handshakes": {"count": 1, "mean_seconds": 0.003, "p50_seconds": 0.00375, "p99_seconds": 0.004975},
        "dials": NO_DURATIONS,
        "certificate_days_left": 90,
        "peer_certificate_days_left": 29,
        "previous_secret": False,
        "listening": {"address": "0.0.0.0", "port": 15060},
    }


def test_an_end_that_does_not_listen_has_no_address() -> None:
    counters = Counters()
    health = source_health(SETTINGS.link, False, counters, KEYS)
    document = source_document(Process(SETTINGS, counters, SINCE), KEYS, health, None, NOW)
    assert (document["listening"], document["troubles"]) == (None, ["the tunnel does not listen"])


def test_the_destinations_end_has_its_endpoints_its_queries_and_its_brokers_too() -> None:
    document = destination()
    more = {"server", "source_vms", "endpoints", "dns", "dns_queries", "brokers", "metadata_failures"}
    assert document.keys() - source(Counters()).keys() == more
    assert document["side"] == "destination"
    assert document["server"] == {"address": "127.0.0.1", "port": 15060, "reached": True, "fault": None}
    since = "2027-01-15T08:00:00.000Z"
    assert document["source_vms"] == [
        {"server": "203.0.113.7:15060", "condition": "well", "since": since, "connections": 0, "fault": None},
        {"server": "203.0.113.8:15060", "condition": "failed", "since": since, "connections": 0, "fault": "refused"},
    ]
    assert document["remarks"] == ["the source VM at 203.0.113.8:15060 is failed, another one carries: refused"]
    assert document["endpoints"] == [
        {"address": "127.64.0.1", "port": B0.port, "broker": str(B0)},
        {"address": "127.64.0.2", "port": B1.port, "broker": str(B1)},
    ]
    assert document["dns"] == {"answers": True}
    assert document["dns_queries"] == {
        "mapped": 3, "forwarded": 0, "refused": 0, "servfail": 0, "malformed": 0, "dropped": 0
    }  # fmt: skip
    assert document["brokers"] == {
        "age_seconds": 2.0,
        "fault": None,
        "cause": None,
        "open": [str(B0), str(B1)],
        "closed": [],
        "refused": ["b3.orange.example:9999"],
    }
    failures = document["metadata_failures"]
    assert isinstance(failures, dict)
    assert (failures["credentials"], failures["identity"]) == (2, 0)
    refused = destination(REFUSED_KEY)["brokers"]
    assert isinstance(refused, dict)
    assert (refused["age_seconds"], refused["fault"], refused["cause"], refused["open"]) == (
        60.0,
        "credentials",
        "check SOURCE_API_KEY",
        [str(B0)],
    )


def test_what_is_unknown_is_null() -> None:
    document = destination(BrokerView(), server_fault=None)
    server, brokers = document["server"], document["brokers"]
    assert isinstance(server, dict)
    assert isinstance(brokers, dict)
    assert (server["reached"], server["fault"], set(brokers.values())) == (None, None, {None})
    assert source(Counters(), replace(KEYS, peer_days_left=None))["peer_certificate_days_left"] is None
    away = destination(server_fault="connection refused")["server"]
    assert isinstance(away, dict)
    assert (away["reached"], away["fault"]) == (False, "connection refused")


def test_both_ends_are_one_document() -> None:
    near, far = destination(), source(Counters())
    known = {"at": "2027-01-15T08:00:00.000Z", "near": near, "far": far, "far_at": "2027-01-15T07:59:58.000Z"}
    assert both_ends(near, FarView().answered(far, NOW - 2), NOW) == {**known, "far_unknown": None}
    failed = FarView().answered(far, NOW - 2).failed(RuntimeError(SECRET), NOW)
    assert both_ends(near, failed, NOW) == {
        **known,
        "far_unknown": {"since": "2027-01-15T08:00:00.000Z", "reason": "a defect of this end: RuntimeError"},
    }
    never = both_ends(near, FarView(), NOW)
    assert (never["far"], never["far_at"]) == (None, None)
    assert never["far_unknown"] is not None
