"""Operators' commands: when the facts of all clusters show that they are done."""

import pytest

from appliance.link.model.order import Epoch, OrderRecord
from appliance.order.model.wishes import Request, is_done
from tests.support.order_facts import EPOCH, OLD, facts, hidden, view


@pytest.mark.parametrize(("alone", "done"), [(OLD, False), (EPOCH, True)])
def test_case_1371_the_home_goes_on_alone_once_it_says_so_in_the_newest_epoch(alone: Epoch, done: bool) -> None:
    # "done after 0.0 s", where some cluster was alone in an older epoch: the gate of the newest one was closed.
    home = facts(OrderRecord(EPOCH, 90, hidden=hidden(100), alone=alone))
    seen = view(orange=home, grape="it is down", lemon="it is down")
    assert is_done(Request("alone"), seen, seen) is done
