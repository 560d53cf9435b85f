import contextlib

import pytest

from appliance.tunnel.limits.pending_handshakes import HANDSHAKES_AT_ONCE, STRANGERS_OF_ONE_MAX, Room, Strangers
from appliance.tunnel.model.counters import Tally

PEER = "198.51.100.9"


@pytest.fixture
def strangers():
    return Strangers((PEER,), Tally(), limit=6, limit_of_one=4)


@contextlib.contextmanager
def crowd(strangers, *addresses):
    with contextlib.ExitStack() as stack:
        for address in addresses:
            stack.enter_context(strangers.present(address))
        yield stack


def test_one_address_has_its_share_and_no_more(strangers):
    with crowd(strangers, *["192.0.2.1"] * 3):
        assert strangers.room("192.0.2.1") is Room.FREE
        with strangers.present("192.0.2.1"):
            assert strangers.room("192.0.2.1") is Room.ONE_FULL
            assert strangers.room("192.0.2.2") is Room.FREE
        assert strangers.room("192.0.2.1") is Room.FREE


def test_many_addresses_cannot_take_the_share_of_the_expected_peer(strangers):
    with crowd(strangers, *(f"192.0.2.{number}" for number in range(6))):
        assert strangers.room("192.0.2.9") is Room.ALL_FULL
        assert strangers.room(PEER) is Room.FREE
        with crowd(strangers, *[PEER] * 4):
            assert strangers.room(PEER) is Room.ONE_FULL


def test_nor_that_of_the_address_from_which_the_peer_proved_itself_last(strangers):
    strangers.proved("198.51.100.77")
    with crowd(strangers, *(f"192.0.2.{number}" for number in range(6))):
        assert strangers.room("198.51.100.77") is Room.FREE


def test_the_expected_peer_takes_nothing_of_what_the_others_have(strangers):
    with crowd(strangers, *[PEER] * 4, *["192.0.2.1"] * 3, *["192.0.2.2"] * 2):
        assert strangers.room("192.0.2.3") is Room.FREE


def test_a_crowd_is_told_once_when_it_comes_and_once_when_it_has_gone(strangers, caplog):
    caplog.set_level("INFO")
    with crowd(strangers, *["192.0.2.1"] * 2), crowd(strangers, *["192.0.2.1"] * 2):
        for _ in range(1000):
            strangers.refused("192.0.2.1")
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "connections refused",
        "room for handshakes again",
    ]
    assert caplog.records[0].fields == {"peer": "192.0.2.1", "from_it": 4, "in_all": 4}
    assert caplog.records[1].fields == {"refused": 1000}


def test_a_crowd_that_stays_at_the_limit_is_not_told_again(strangers, caplog):
    with crowd(strangers, *["192.0.2.1"] * 3):
        for _ in range(100):
            with strangers.present("192.0.2.1"):
                strangers.refused("192.0.2.1")
        assert len(caplog.records) == 1


def test_nothing_is_remembered_of_who_has_gone(strangers):
    for number in range(1000):
        with strangers.present(f"192.0.2.{number}"):
            pass
    assert not strangers._present


def test_our_own_client_never_comes_near_its_share():
    assert 2 * HANDSHAKES_AT_ONCE <= STRANGERS_OF_ONE_MAX
