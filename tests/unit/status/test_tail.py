"""The time at which a position was committed, from the transaction markers of the positions topic."""

import uuid
from typing import cast

from kio.schema.errors import ErrorCode

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.fetch import FetchedPartition
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.committed import AbortedTransaction
from appliance.kafka.records.records import key_and_value
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.checkpoint_records import encode_position
from appliance.link.model.position import Position
from appliance.status.tail import PositionsTail
from tests.support.batches import control, made, patched

LANE = Partition("positions", 0)
KEY = Partition("payments", 0)
ABORT, COMMIT = 0, 1


def position(offset: int, next_offset: int) -> bytes:
    written = encode_position(KEY, Position(uuid.UUID(int=1), uuid.UUID(int=2), next_offset, 0), 0)
    key, value = key_and_value(written.body)
    return made([(0, key, value, [])], offset, attributes=0x10, producer_id=1, producer_epoch=0)


def marker(offset: int, at: int, kind: int = COMMIT) -> bytes:
    return patched(control(offset, 1, kind), base_timestamp=at, max_timestamp=at)


def new_tail() -> PositionsTail:
    tail = PositionsTail(cast("KafkaCluster", None), LANE[0])
    tail.checkpoints = (LaneCheckpoint(read_to=0),)
    return tail


def take(tail: PositionsTail, *batches: bytes, aborted: tuple[AbortedTransaction, ...] = ()) -> None:
    tail._take(FetchedPartition(LANE, ErrorCode.none, memoryview(b"".join(batches)), aborted, 1000, None))


def test_a_position_was_committed_at_the_time_of_the_marker_after_it() -> None:
    tail = new_tail()
    take(tail, position(0, 10), marker(1, 5000), position(2, 20), marker(3, 6000))
    assert tail.committed_at == {KEY: 6000}


def test_an_aborted_transaction_changes_nothing() -> None:
    tail = new_tail()
    take(
        tail,
        position(0, 10),
        marker(1, 5000),
        position(2, 20),
        marker(3, 6000, ABORT),
        aborted=(AbortedTransaction(1, 2),),
    )
    assert tail.committed_at == {KEY: 5000}


def test_case_250_a_position_whose_marker_comes_in_the_next_fetch_has_no_older_ones_time() -> None:
    # It kept the commit time of the one before, and its latency was shown as 0 ms.
    tail = new_tail()
    take(tail, position(0, 10), marker(1, 5000), position(2, 20))
    assert tail.committed_at == {}
    take(tail, marker(3, 6000), position(4, 30), marker(5, 7000))
    assert tail.committed_at == {KEY: 7000}
    take(tail, position(6, 40))
    assert tail.checkpoints[0].positions[KEY].next_offset == 40
    assert tail.committed_at == {}
    take(tail, marker(7, 8000))
    assert tail.committed_at == {}
