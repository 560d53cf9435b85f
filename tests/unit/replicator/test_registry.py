import uuid

import pytest

from appliance.errors import PeerError
from appliance.kafka.records import Record, body
from appliance.replicator.registry import Claim, belongs_to_another, decode_claim, encode_claim

COPY = ("orders.copy", uuid.UUID(int=2))
CLAIM = Claim("replicator-orange", 1_700_000_000_000, left_out=("segment.bytes",))


def test_a_claim_comes_back_as_it_was() -> None:
    assert decode_claim(encode_claim(COPY, CLAIM, 1)) == (COPY, CLAIM)


def test_a_tombstone_makes_a_copy_nobodys() -> None:
    claim = encode_claim(COPY, CLAIM, 1)
    key_alone = claim.body[: claim.body.index(b"}") + 1] + b"\x01\x00"
    assert decode_claim(Record(0, 1, key_alone)) == (COPY, None)


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"version":2}'])
def test_what_somebody_else_wrote_is_not_taken_for_a_claim(value: bytes) -> None:
    with pytest.raises(PeerError, match="replicator-registry"):
        decode_claim(Record(7, 1, body(b'{"copy":"orders.copy","id":"00000000000000000000000000000002"}', value)))


def test_a_refusal_names_the_link_that_has_the_copy_and_what_helps() -> None:
    text = belongs_to_another("orders.copy", CLAIM)
    assert "orders.copy belongs to link replicator-orange" in text
    assert "REPLICA_TOPICS_DEST_SUFFIX" in text
    assert "--take-over" in text
