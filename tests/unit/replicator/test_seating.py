import uuid

import pytest

from appliance.errors import PeerError
from appliance.link.model.checkpoint import StartOffsets
from appliance.link.model.replicas import Replica
from appliance.replicator.spark import seating
from appliance.replicator.spark.seating import Hello, Notice, Seat, seat_for

STARTS = {"orders": StartOffsets("orders", uuid.UUID(int=1), (100, -1))}
SEAT = Seat(3, STARTS, {5: (Replica("orders", 1, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2)),)})


def test_what_is_said_is_understood() -> None:
    hello, notice = Hello("worker", 2), Notice("lane 3", "no", "Fenced")
    assert seating.decode_hello(seating.encode_hello(hello)) == hello
    assert seating.decode_seat(seating.encode_seat(SEAT)) == SEAT
    assert seating.decode_notice(seating.encode_notice(notice)) == notice
    assert seating.decode_share(seating.encode_share(500)) == 500


def test_every_line_is_one_line() -> None:
    line = seating.encode_notice(Notice("a\nb", "c\r\nd", "e"))
    assert line.count(b"\n") == 1


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b"[]", b"nonsense", b"\xff", b'{"slice": "x", "lanes": 3}', b'{"worker": "x", "slice": []}'],
)
def test_nonsense_is_the_peers_fault(line: bytes) -> None:
    for decode in (seating.decode_hello, seating.decode_seat, seating.decode_notice, seating.decode_share):
        with pytest.raises(PeerError):
            decode(line)


def test_a_worker_gets_the_seat_it_had_where_its_lanes_are_warm() -> None:
    free = {0: SEAT, 1: SEAT}
    assert seat_for("b", free, {0: "a", 1: "b"}) == 1


def test_a_new_worker_takes_a_seat_that_nobody_had_before_one_that_somebody_may_come_back_to() -> None:
    free = {0: SEAT, 1: SEAT}
    assert seat_for("new", free, {0: "a"}) == 1
    assert seat_for("new", free, {0: "a", 1: "b"}) == 0


def test_there_may_be_no_seat() -> None:
    assert seat_for("a", {}, {0: "a"}) is None
