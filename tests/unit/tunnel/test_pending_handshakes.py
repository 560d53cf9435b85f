import contextlib

import pytest

from appliance.tunnel.limits.counters import Counters
from appliance.tunnel.limits.pending_handshakes import (
    EXPECTED_A_SECOND,
    HANDSHAKES_AT_ONCE,
    PENDING_MAX,
    PENDING_OF_ONE_MAX,
    PendingHandshakes,
    RateLimit,
    Room,
)

PEER = "198.51.100.9"


@pytest.fixture
def pending():
    return PendingHandshakes((PEER,), Counters(), limit=6, limit_of_one=4)


@contextlib.contextmanager
def crowd(pending, *addresses):
    with contextlib.ExitStack() as stack:
        for address in addresses:
            stack.enter_context(pending.present(address))
        yield stack


def test_one_address_has_its_share_and_no_more(pending):
    with crowd(pending, *["192.0.2.1"] * 3):
        assert pending.room("192.0.2.1") is Room.FREE
        with pending.present("192.0.2.1"):
            assert pending.room("192.0.2.1") is Room.ONE_FULL
            assert pending.room("192.0.2.2") is Room.FREE
        assert pending.room("192.0.2.1") is Room.FREE


def test_many_addresses_cannot_take_the_share_of_the_expected_peer(pending):
    with crowd(pending, *(f"192.0.2.{number}" for number in range(6))):
        assert pending.room("192.0.2.9") is Room.ALL_FULL
        assert pending.room(PEER) is Room.FREE
        with crowd(pending, *[PEER] * 4):
            assert pending.room(PEER) is Room.ONE_FULL


def test_nor_that_of_the_address_from_which_the_peer_proved_itself_last(pending):
    pending.proved("198.51.100.77")
    with crowd(pending, *(f"192.0.2.{number}" for number in range(6))):
        assert pending.room("198.51.100.77") is Room.FREE


def test_the_expected_peer_takes_nothing_of_the_others_share(pending):
    with crowd(pending, *[PEER] * 4, *["192.0.2.1"] * 3, *["192.0.2.2"] * 2):
        assert pending.room("192.0.2.3") is Room.FREE


def test_a_crowd_is_logged_once_when_it_comes_and_once_when_it_has_gone(pending, caplog):
    caplog.set_level("INFO")
    with crowd(pending, *["192.0.2.1"] * 2), crowd(pending, *["192.0.2.1"] * 2):
        for _ in range(1000):
            pending.refused("192.0.2.1")
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "connections refused",
        "room for handshakes again",
    ]
    assert caplog.records[0].fields == {"peer": "192.0.2.1", "from_it": 4, "in_all": 4}
    assert caplog.records[1].fields == {"refused": 1000}


def test_a_crowd_that_stays_at_the_limit_is_not_logged_again(pending, caplog):
    with crowd(pending, *["192.0.2.1"] * 3):
        for _ in range(100):
            with pending.present("192.0.2.1"):
                pending.refused("192.0.2.1")
        assert len(caplog.records) == 1


def test_closed_connections_leave_nothing_behind(pending):
    for number in range(1000):
        with pending.present(f"192.0.2.{number}"):
            pass
    assert not pending.by_host


def test_our_own_client_never_comes_near_its_share():
    assert 2 * HANDSHAKES_AT_ONCE <= PENDING_OF_ONE_MAX


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
    admitted = sum(pending.within_rate(f"192.0.2.{number % 200}") for number in range(10_000))
    assert admitted == PENDING_MAX
    assert sum(pending.within_rate(PEER) for _ in range(10_000)) == EXPECTED_A_SECOND


def test_the_address_from_which_the_peer_proved_itself_last_has_a_rate_of_its_own() -> None:
    pending = PendingHandshakes((PEER,), Counters(), clock=lambda: 0.0)
    pending.proved("192.0.2.1")
    assert not [number for number in range(10_000) if pending.within_rate("192.0.2.9") and number >= PENDING_MAX]
    assert pending.within_rate("192.0.2.1")
    pending.proved("192.0.2.2")
    assert not pending.within_rate("192.0.2.1")
    assert (pending.expects(PEER), pending.expects("192.0.2.2")) == (True, True)


def test_a_flood_of_short_connections_is_logged_once(caplog) -> None:
    now = 0.0
    pending = PendingHandshakes((PEER,), Counters(), clock=lambda: now)
    caplog.set_level("INFO")
    for _ in range(5000):
        if not pending.within_rate("192.0.2.1"):
            pending.refused("192.0.2.1")
        with pending.present("192.0.2.1"):
            pass
        now += 0.0001
    assert [record.message.partition(":")[0] for record in caplog.records] == ["connections refused"]
    now += 60
    with pending.present("192.0.2.1"):
        pass
    assert [record.message.partition(":")[0] for record in caplog.records][1:] == ["room for handshakes again"]
