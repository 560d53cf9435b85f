from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.console.model.tunnel_end import TunnelEnd, both_ends

SOURCE: dict[str, Any] = {
    "side": "source",
    "version": "0.2.0",
    "carrier": "tcp",
    "since": "2026-11-25T06:04:31.000Z",
    "troubles": ["the tunnel does not listen"],
    "remarks": [],
    "listening": {"address": "0.0.0.0", "port": 15060},
    "connections": {"accepted": 1200, "open": 7, "waiting": 0},
    "refused": {"identity": 3, "full": 0},
    "relays_ended": {"complete": 0},
    "bytes": {"to_target": 31526, "from_target": 6144785},
    "handshakes": {"count": 8, "p50_seconds": 0.0025, "p99_seconds": 0.0096},
    "dials": {"count": 0, "p50_seconds": None, "p99_seconds": None},
    "certificate_days_left": 26698.4,
    "peer_certificate_days_left": None,
}


def near(document: object) -> TunnelEnd:
    ends = both_ends({"near": document})
    assert ends
    return ends[0]


def shown(document: object) -> dict[str, str]:
    return {row.name: row.value for row in near(document).rows}


def test_an_end_is_shown_in_words() -> None:
    found = shown(SOURCE)
    assert found["Listens on"] == "0.0.0.0:15060"
    assert found["Connections"] == "7 open, 1,200 accepted"
    assert (found["Refused"], found["Ended"]) == ("3 identity", "none")
    assert (found["To the brokers"], found["From the brokers"]) == ("31.5 kB", "6.1 MB")
    assert (found["Handshakes"], found["Dials"]) == ("8: median 2 ms, p99 10 ms", "0")
    assert (found["Certificate"], found["Other end's certificate"]) == ("valid for 26,698 days", "unknown")
    assert "Brokers open" not in found
    assert [*near(SOURCE).troubles] == ["the tunnel does not listen"]


def test_the_destinations_end_has_its_brokers() -> None:
    brokers = {"age_seconds": 2.5, "open": ["b0:9092"], "refused": [], "closed": None}
    found = shown(
        SOURCE | {"brokers": brokers, "endpoints": [{"address": "127.64.0.1", "port": 9092, "broker": "b0:9092"}]}
    )
    assert found["Brokers open"] == "b0:9092"
    assert (found["Brokers refused"], found["Brokers without endpoint"]) == ("none", "unknown")
    assert found["Endpoints"] == "b0:9092 at 127.64.0.1:9092"


def test_each_source_vm_is_shown_with_its_condition_and_its_connections() -> None:
    vms = [{"server": "10.1.0.2:15060", "condition": "well", "connections": 1200}, {"server": "b:15060"}]
    found = shown(SOURCE | {"source_vms": vms})
    assert found["Source VM 10.1.0.2:15060"] == "well, 1,200 open"
    assert found["Source VM b:15060"] == "unknown, unknown open"


@pytest.mark.parametrize("vms", [5, True, {"a": 1}, "text"], ids=repr)
def test_case_1510_source_vms_that_are_no_list_are_not_shown(vms: object) -> None:
    # Before, a number in their place was an error of the whole page.
    assert not [name for name in shown(SOURCE | {"source_vms": vms}) if name.startswith("Source VM")]


KEYS = st.sampled_from([*SOURCE, "open", "port", "reached"])
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.just(10**400) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


@given(
    JSON,
    st.dictionaries(st.sampled_from([*SOURCE, "brokers", "endpoints", "server", "source_vms", "dns_queries"]), JSON),
)
def test_any_document_is_shown_with_unknown_for_what_is_missing_or_of_another_type(whole: object, part: object) -> None:
    both_ends(whole)
    ends = both_ends({"near": part, "far": whole, "far_at": whole, "far_unknown": whole})
    assert ends
    assert all(row.value for end in ends for row in end.rows)


@pytest.mark.parametrize("reason", [[[[]]], {"a": 1}, 5, None], ids=repr)
def test_case_1064_a_reason_that_is_no_text_is_unknown(reason: object) -> None:
    # Before, one of almost a thousand levels was an error of the whole page.
    ends = both_ends({"near": SOURCE, "far_unknown": {"since": 1, "reason": reason}})
    assert ends
    assert (ends[1].unknown_since, ends[1].reason) == ("unknown", "unknown")


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 10**400], ids=["inf", "nan", "huge"])
def test_case_283_a_number_beyond_all_measure_is_unknown(number: float) -> None:
    found = shown(SOURCE | {"certificate_days_left": number, "brokers": {"age_seconds": number}})
    assert (found["Certificate"], found["List of brokers"]) == ("unknown", "unknown old")


@pytest.mark.parametrize("reached", [[], {}, 1, 0, "yes", None], ids=repr)
def test_case_252_an_odd_answer_to_whether_the_other_end_is_reached_is_unknown(reached: object) -> None:
    """Before, a list or an object was an error of the whole page."""
    server = {"address": "10.0.0.1", "port": 15060, "reached": reached}
    assert shown(SOURCE | {"server": server})["Other end"] == "10.0.0.1:15060, unknown"
