from dataclasses import replace

from appliance.gateway.model.brokers import BrokerState, BrokerView
from appliance.gateway.model.health import Answer, Keys, destination_health, source_health
from appliance.tunnel.limits.counters import Counters
from tests.support.brokers import ALLOWED, B0, NOW, REFUSED_KEY, SEEN, WELL

KEYS = Keys(90.5, previous_secret=False)


def health(view: BrokerView = WELL, shim_fault: str = "", server_fault: str | None = "", now: float = NOW) -> Answer:
    counters = Counters(server_fault=server_fault)
    return destination_health("orange-grape", ALLOWED, shim_fault, counters, KEYS, view, now)


def test_an_end_that_listens_is_well() -> None:
    counters = Counters(open=3, carrying=1)
    assert source_health("orange-grape", True, counters, KEYS) == {
        "side": "source",
        "link": "orange-grape",
        "troubles": [],
        "remarks": [],
        "tunnel": {
            "connections_open": 3,
            "connections_waiting": 2,
            "certificate_days_left": 90,
            "previous_secret": False,
        },
    }
    assert source_health("orange-grape", False, counters, KEYS)["troubles"] == ["the tunnel does not listen"]


def test_an_end_that_reaches_all_is_well_and_says_which_brokers_are_open() -> None:
    assert health() == {
        "side": "destination",
        "link": "orange-grape",
        "troubles": [],
        "remarks": [],
        "tunnel": {
            "connections_open": 0,
            "connections_waiting": 0,
            "certificate_days_left": 90,
            "previous_secret": False,
            "server_reached": True,
        },
        "dns": {"answers": True},
        "brokers": {"age_seconds": 2.0, "fault": None, "open": [str(B0)], "closed": [], "refused": []},
    }


def test_every_trouble_is_shown_and_names_the_change() -> None:
    for answer, *words in (
        (health(shim_fault="no reply"), "DNS shim", "no reply"),
        (health(server_fault="connection refused"), "tunnel server", "connection refused"),
        (health(REFUSED_KEY), "(credentials)", "SOURCE_API_KEY"),
        (health(BrokerView()), "has not told its brokers yet"),
        (health(SEEN), "b3.orange.example:9999 is refused", "other ports only: 9092-9098", "SOURCE_BROKER_PATTERN"),
        (health(replace(WELL, state={B0: BrokerState.CLOSED})), "no endpoint", "TUNNEL_ENDPOINT_NETWORK"),
    ):
        (trouble,) = answer["troubles"]
        assert [word for word in words if word not in trouble] == []


def test_metadata_that_is_too_old_says_nothing_about_now() -> None:
    assert health(now=WELL.at + 30)["troubles"] == []
    (trouble,) = health(now=WELL.at + 31)["troubles"]
    assert trouble == "the source cluster told its brokers 31 s ago, and not since"


def test_before_the_first_connection_the_servers_state_is_unknown() -> None:
    assert health(server_fault=None)["tunnel"]["server_reached"] is None


def test_a_certificate_that_ends_soon_and_a_previous_secret_are_remarks_and_no_trouble() -> None:
    answer = source_health("orange-grape", True, Counters(), Keys(29.9, previous_secret=True))
    soon, previous = answer["remarks"]
    assert ("ends in 29 days" in soon, "TUNNEL_CERTIFICATE_FILE" in soon) == (True, True)
    assert "SHARED_SECRET_PREVIOUS" in previous
    assert answer["troubles"] == []
