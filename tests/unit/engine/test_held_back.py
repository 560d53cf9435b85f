import math
import uuid

import pytest

from appliance.engine.model.held_back import HeldBack
from appliance.link.model.replicas import Replica

ZERO, ONE = (Replica("orders", number, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2)) for number in range(2))


def test_a_partition_that_fails_again_and_again_is_tried_less_and_less_often() -> None:
    held, now, pauses = HeldBack(), 100.0, []
    for _ in range(12):
        held.add(ZERO, now)
        pauses.append(held.pause(now))
        assert held.due(now) == []
        now += held.pause(now)
        assert held.due(now) == [ZERO]
        held.tried(ZERO)
        assert held.due(now) == []
    assert pauses == sorted(pauses)
    assert pauses[0] < 1
    assert pauses[-1] == pauses[-2] == 30


def test_a_new_partition_is_due_now_and_a_waiting_one_goes_on_waiting() -> None:
    held = HeldBack()
    held.add(ZERO, 100.0)
    held.add_due([ZERO, ONE])
    assert held.due(100.0) == [ONE]
    assert held.pause(100.0) == 0.0


def test_a_partition_that_went_well_begins_anew() -> None:
    held = HeldBack()
    held.add(ZERO, 0.0)
    first = held.pause(0.0)
    held.add(ZERO, 10.0)
    assert held.went_well(ZERO)
    assert not held.went_well(ZERO)
    assert held.pause(10.0) == math.inf
    held.add(ZERO, 20.0)
    assert held.pause(20.0) == pytest.approx(first)


def test_a_partition_that_is_no_longer_copied_is_forgotten() -> None:
    held = HeldBack()
    held.add(ZERO, 0.0)
    held.add(ONE, 0.0)
    held.keep([ONE])
    assert not held.went_well(ZERO)
    assert held.went_well(ONE)
