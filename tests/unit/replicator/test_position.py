import json
import uuid

import pytest

from appliance.errors import PeerError
from appliance.kafka.records import Record, body, key_and_value
from appliance.replicator.position import Position, decode, encode

POSITION = Position(uuid.UUID(int=1), uuid.UUID(int=2), 500, 3, 480, 9000, 1_700_000_000_000)


def test_a_position_comes_back_as_it_was() -> None:
    assert decode(encode(("orders", 4), POSITION, 1)) == (("orders", 4), POSITION)


def test_a_position_can_be_read_by_eye() -> None:
    key, value = key_and_value(encode(("orders", 4), POSITION, 1).body)
    assert json.loads(key or b"") == {"topic": "orders", "partition": 4}
    assert json.loads(value or b"")["next_offset"] == 500


@pytest.mark.parametrize("value", [None, b"", b"[]", b"{}", b'{"version":1}', b'{"version":2}', b"\xff"])
def test_what_somebody_else_wrote_is_not_taken_for_a_position(value: bytes | None) -> None:
    with pytest.raises(PeerError):
        decode(Record(7, 1, body(b'{"topic":"orders","partition":4}', value)))
