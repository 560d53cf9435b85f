"""The partitions of a lane: what the copies refuse, from one try to the next."""

import uuid
from types import SimpleNamespace
from typing import Any

from appliance.engine.read.buffer import Limits, ReadyQueue
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.errors import CopyRefused
from appliance.kafka.client.configs import WriteLimits
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica

ORDERS = Replica("orders", 0, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
HELD = Position(ORDERS.source_id, ORDERS.destination_id, 5, 0)


def refusal(*offsets: int) -> CopyRefused:
    error = CopyRefused("produce to orders.copy-0: MESSAGE_TOO_LARGE", "MESSAGE_TOO_LARGE", ORDERS.copy)
    error.offsets = range(*offsets)
    return error


def refused(*errors: CopyRefused) -> Limits:
    """The limits on reading after these refusals, one after the other, at one position."""
    nothing: Any = None
    lane: Any = SimpleNamespace(checkpoint=SimpleNamespace(positions={ORDERS.source: HELD}))
    partitions = LanePartitions(lane, nothing, nothing, ReadyQueue(), nothing, False, (ORDERS,))
    partitions.limits = {ORDERS.destination_topic: WriteLimits(1000, 1)}
    for error in errors:
        partitions.refuse(error)
    return partitions.refused[ORDERS]


def test_case_889_the_parts_of_one_refused_batch_stay_parts_when_another_one_is_refused() -> None:
    # Two batches in one transaction that are taken in parts alone must not be refused in turn for ever.
    assert refused(refusal(10, 50)).cut == (*range(10, 50, 3), 50)
    both = refused(refusal(10, 50), refusal(50, 70))
    assert (both.cut, both.refusal) == ((*range(10, 50, 3), *range(50, 70, 2), 70), "")


def test_the_stop_names_the_record_and_what_follows_it() -> None:
    found = refused(refusal(10, 50), refusal(22, 25), refusal(23, 24))
    assert found.cut == (10, 13, 16, 19, 22, 23)
    assert found.refusal == (
        "orders-0 offset 23 is refused: produce to orders.copy-0: MESSAGE_TOO_LARGE; "
        "raise max.message.bytes of orders.copy; what follows begins at offset 24"
    )
