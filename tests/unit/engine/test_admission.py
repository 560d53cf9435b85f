"""The admission of partitions whose topics were recreated."""

import uuid
from dataclasses import replace

import pytest

from appliance.engine.write.admission import Admission, _admit_known
from appliance.engine.write.copies import CopyEnds
from appliance.errors import ApplianceError, BrokerBusy, GapFound, PartitionStopped
from appliance.kafka.protocol.metadata import Metadata
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica

REPLICA = Replica("orders", 0, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
HELD = Position(REPLICA.source_id, REPLICA.destination_id, 10, 0)
OF_ANOTHER_SOURCE = replace(HELD, source_id=uuid.UUID(int=3))
OF_ANOTHER_COPY = replace(HELD, destination_id=uuid.UUID(int=3))
METADATA = Metadata("grape", 0, {}, {})

made_anew = pytest.mark.parametrize("held", [OF_ANOTHER_SOURCE, OF_ANOTHER_COPY], ids=["source", "copy"])


def admitted(held: Position, refusal: ApplianceError | None = None) -> Admission:
    admission = Admission(METADATA, ends={} if refusal else {REPLICA.copy: 11})
    copies = CopyEnds(admission.ends, {REPLICA.copy: refusal} if refusal else {})
    _admit_known(admission, REPLICA, held, copies)
    return admission


@made_anew
def test_a_topic_made_anew_is_a_gap(held: Position) -> None:
    assert isinstance(admitted(held).stops[REPLICA], GapFound)


@made_anew
def test_case_40_no_gap_explains_what_a_copy_has_lost(held: Position) -> None:  # invariant J
    # Before, with ON_GAP=record the new source topic was copied after the hole, without a message.
    stop = admitted(held, PartitionStopped("orders.copy-0 has lost what it had acknowledged")).stops[REPLICA]
    assert not isinstance(stop, GapFound)
    assert "was deleted and made anew" in str(stop)
    assert "has lost what it had acknowledged" in str(stop)


@made_anew
def test_a_topic_made_anew_waits_while_nothing_is_known_of_its_copy(held: Position) -> None:
    admission = admitted(held, BrokerBusy("no leader", "LEADER_NOT_AVAILABLE"))
    assert not admission.stops
    assert REPLICA in admission.waiting
