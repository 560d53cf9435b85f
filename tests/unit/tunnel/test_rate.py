from appliance.tunnel.limits.pending_handshakes import EXPECTED_A_SECOND, PENDING_MAX, PendingHandshakes
from appliance.tunnel.limits.rate import RateLimit
from appliance.tunnel.model.counters import Counters

PEER = "198.51.100.9"


def test_a_burst_is_admitted_and_then_so_many_a_second() -> None:
    now = 0.0
    limit = RateLimit(10, 5, lambda: now)
    assert [limit.admits() for _ in range(7)] == [True] * 5 + [False] * 2
    now = 0.25
    assert [limit.admits() for _ in range(3)] == [True, True, False]
    now = 100.0
    assert [limit.admits() for _ in range(6)] == [True] * 5 + [False]


def test_strangers_that_come_and_go_at_once_are_no_more_a_second_than_they_may_be() -> None:
    now = 0.0
    pending = PendingHandshakes((PEER,), Counters(), clock=lambda: now)
    admitted = sum(pending.in_time(f"192.0.2.{number % 200}") for number in range(10_000))
    assert admitted == PENDING_MAX
    assert sum(pending.in_time(PEER) for _ in range(10_000)) == EXPECTED_A_SECOND


def test_the_address_from_which_the_peer_proved_itself_last_has_a_rate_of_its_own() -> None:
    pending = PendingHandshakes((PEER,), Counters(), clock=lambda: 0.0)
    pending.proved("192.0.2.1")
    assert not [number for number in range(10_000) if pending.in_time("192.0.2.9") and number >= PENDING_MAX]
    assert pending.in_time("192.0.2.1")
    pending.proved("192.0.2.2")
    assert not pending.in_time("192.0.2.1")
    assert (pending.expects(PEER), pending.expects("192.0.2.2")) == (True, True)


def test_a_flood_of_the_short_lived_is_told_once(caplog) -> None:
    now = 0.0
    pending = PendingHandshakes((PEER,), Counters(), clock=lambda: now)
    caplog.set_level("INFO")
    for _ in range(5000):
        if not pending.in_time("192.0.2.1"):
            pending.refused("192.0.2.1")
        with pending.present("192.0.2.1"):
            pass
        now += 0.0001
    assert [record.message.partition(":")[0] for record in caplog.records] == ["connections refused"]
    now += 60
    with pending.present("192.0.2.1"):
        pass
    assert [record.message.partition(":")[0] for record in caplog.records][1:] == ["room for handshakes again"]
