"""Attacks that need no broker."""

import uuid

from kio.schema.errors import ErrorCode

from appliance.kafka.fetch import Fetched
from appliance.kafka.metadata import NOWHERE, Metadata, Topic
from appliance.replicator.buffer import Arrivals, Buffer, Limits
from appliance.replicator.copies import is_intact
from appliance.replicator.leaders import Leaders
from appliance.replicator.plan import Replica
from appliance.replicator.position import CopyEnd


def test_a_topic_without_an_id_that_was_made_anew_is_followed_again() -> None:
    # A source without topic ids (Metadata below 10): the new topic's epochs begin at 0, and the old ones are "newer".
    leaders = Leaders()
    replica = Replica("orders", 0, "orders.copy", NOWHERE, uuid.uuid4())
    buffer = Buffer(replica, 0, -1, Arrivals(), Limits())
    before = Metadata("", 0, {}, {"orders": Topic("orders", NOWHERE, False, (1,), epochs=(5,))})
    anew = Metadata("", 0, {}, {"orders": Topic("orders", NOWHERE, False, (1,), epochs=(0,))})
    assert leaders.newest(buffer, before) == 5
    assert leaders.newest(buffer, anew) == 0  # raises BrokerBusy, for as long as the process lives


def test_an_answer_that_shows_nothing_of_the_end_is_no_proof_that_it_is_there() -> None:
    # Read committed, the leader shows nothing from an open transaction on: LSO 40, below the remembered end 100.
    end = CopyEnd(100, 5, 1000, 3)
    shown = Fetched(("orders.copy", 0), ErrorCode.none, memoryview(b""), (), 40, None)
    assert not is_intact(shown, end)
