"""Answers that no broker should give are the peer's fault, at a bounded cost."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeResponse
from kio.static.protocol import ResponsePayload

from appliance.errors import PeerError
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.protocol.wire import FRAME_MAX, SIZE
from tests.support.hostile_answers import TARGET, exchanges, feed, frames, outcome, responses

MEGABYTE = 1024 * 1024
LARGEST = b"\xff" * 4 + b"\x0f"
"""A length of 2^32 - 2."""


@given(st.sampled_from(responses()).flatmap(lambda kind: st.tuples(st.just(kind), frames(kind))))
def test_an_answer_is_read_or_is_the_peers_fault_with_its_host_and_port(
    damaged: tuple[type[ResponsePayload], bytes],
) -> None:
    kind, frame = damaged
    for exchange in exchanges(kind):
        found = outcome(exchange, frame)
        if isinstance(found, PeerError):
            assert str(TARGET) in str(found)


@pytest.mark.parametrize("count", [LARGEST, b"\xff" * 8 + b"\x0f", b"\xff" * 9 + b"\x01"])
def test_case_972_an_array_that_announces_more_items_than_bytes_reserves_nothing(count: bytes) -> None:
    # Before, kio reserved memory for all items; when there was not that much, the process was aborted.
    (first, *_) = exchanges(MetadataResponse)
    found = outcome(first, SIZE.pack(1) + b"\0" + bytes(4) + count)
    assert isinstance(found, PeerError)
    assert "an array of" in str(found)


@pytest.mark.parametrize(
    ("kind", "body"), [(MetadataResponse, bytes(5) + b"\0"), (SaslHandshakeResponse, bytes(2) + b"\xff" * 4)]
)
def test_case_1060_null_in_place_of_an_array_is_the_peers_fault(kind: type[ResponsePayload], body: bytes) -> None:
    # Before, whoever had asked got TypeError: a login, or the search for topics.
    (first, *_) = exchanges(kind)
    found = outcome(first, SIZE.pack(1) + body)
    assert isinstance(found, PeerError)
    assert "null in place of an array" in str(found)


async def test_case_973_a_length_alone_reserves_no_memory() -> None:
    # Before, the size of a frame, four bytes, reserved 128 MiB at once.
    connection = BrokerConnection(TARGET, "test")
    feed(connection, SIZE.pack(FRAME_MAX) + bytes(MEGABYTE))
    assert connection._frame is not None
    assert len(connection._frame) <= 4 * MEGABYTE


async def test_a_large_frame_arrives_whole_while_its_buffer_grows() -> None:
    chance = random.Random(1)
    sent, received = chance.randbytes(9 * MEGABYTE), bytearray()
    connection = BrokerConnection(TARGET, "test")
    connection._answered = received.extend  # type: ignore[method-assign]
    data = memoryview(SIZE.pack(len(sent)) + sent)
    while data:
        piece = chance.choice([1, 5, 70_000, 500_000])
        feed(connection, data[:piece])
        data = data[piece:]
    assert received == sent
