import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.api_versions.v3 import ApiVersionsRequest
from kio.schema.end_txn.v3 import EndTxnResponse

from appliance.errors import PeerError
from appliance.kafka.protocol.wire import decode, encode


def test_a_frame_begins_with_its_size_api_version_and_correlation() -> None:
    frame = encode(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 77, "me")
    size, key, version, correlation = struct.unpack_from(">ihhi", frame)
    assert (size, key, version, correlation) == (len(frame) - 4, 18, 3, 77)


def end_txn_response(correlation: int) -> bytearray:
    return bytearray(struct.pack(">iBihB", correlation, 0, 0, 51, 0))


def test_an_answer_is_decoded() -> None:
    assert decode(EndTxnResponse, end_txn_response(5), 5).error_code.name == "concurrent_transactions"


def test_an_answer_to_another_request_is_the_peers_fault() -> None:
    with pytest.raises(PeerError, match="answered request 5, not 6"):
        decode(EndTxnResponse, end_txn_response(5), 6)


@given(st.binary(max_size=40))
def test_garbage_is_the_peers_fault(noise: bytes) -> None:
    with pytest.raises(PeerError):
        decode(EndTxnResponse, bytearray(struct.pack(">iB", 5, 0) + noise[:6]), 5)
