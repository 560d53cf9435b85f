"""Our own Fetch codec, compared with kio's."""

import contextlib
import io
import struct
import uuid
from collections.abc import Sequence
from typing import Any, ClassVar, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.fetch import v12, v13
from kio.schema.fetch.v12 import request as by_name
from kio.schema.fetch.v12 import response as answer_by_name
from kio.schema.fetch.v13 import response as answer_by_id
from kio.schema.response_header.v1 import ResponseHeader
from kio.serial import entity_reader, entity_writer

from appliance.errors import ApplianceError, BrokerBusy, BrokerRefused, PeerError
from appliance.kafka.client.fetch import (
    FetchAnswer,
    FetchedPartition,
    FetchExchange,
    FetchLimits,
    Session,
    WantedPartition,
    fetch_partition,
    topic_names,
)
from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.kafka.records.committed import AbortedTransaction

LIMITS = FetchLimits(8_000_000, 0.25)
A, B = uuid.uuid4(), uuid.uuid4()
WANTED = (
    WantedPartition(Partition("orders", 3), A, 1_000, 65_536, 7, 9),
    WantedPartition(Partition("orders", 4), A, 0, 100_000),
    WantedPartition(Partition("payments", 0), B, 2**40, 1),
)


NAMES = topic_names(WANTED)


def parsed(frame: bytes, version: int) -> "v12.FetchRequest | v13.FetchRequest":
    request_type = {12: v12.FetchRequest, 13: v13.FetchRequest}[version]
    content = memoryview(frame)[4:]
    header, begins = entity_reader(cast("Any", request_type).__header_schema__)(content, 0)
    assert (header.request_api_key, header.request_api_version, header.correlation_id) == (1, version, 77)
    request, size = entity_reader(request_type)(content, begins)
    assert begins + size == len(content) == struct.unpack(">i", frame[:4])[0]
    return request


@pytest.mark.parametrize("version", [12, 13])
def test_a_request_asks_for_each_partition_as_it_was_told(version: int) -> None:
    request = parsed(FetchExchange(WANTED, LIMITS, version == 13, NAMES).frame(77, "me"), version)
    assert (request.max_bytes, request.min_bytes, request.max_wait) == (8_000_000, 1, milliseconds(0.25))
    assert (request.isolation_level, request.session_id, request.session_epoch) == (1, 0, -1)
    orders, payments = request.topics
    if version == 12:
        assert isinstance(orders, by_name.FetchTopic)
        assert orders.topic == "orders"
    else:
        assert (orders.topic_id, payments.topic_id) == (A, B)
    asked = [(p.partition, p.fetch_offset, p.partition_max_bytes) for p in orders.partitions]
    assert asked == [(3, 1_000, 65_536), (4, 0, 100_000)]
    assert [(p.last_fetched_epoch, p.current_leader_epoch) for p in orders.partitions] == [(7, 9), (-1, -1)]
    assert payments.partitions[0].fetch_offset == 2**40


def test_case_35_of_a_topic_that_was_made_anew_each_partition_is_asked_for_by_its_own_id() -> None:
    # Lanes share a Fetch, and learn of the new topic one after the other. Before, a lane that still read the old topic
    # got the new one's records at the old one's offsets. Invariant G
    wanted = (
        WantedPartition(Partition("orders", 3), B, 0, 65_536),
        WantedPartition(Partition("orders", 4), A, 1_000, 65_536),
    )
    exchange = FetchExchange(wanted, LIMITS, True, topic_names(wanted), Session(5, 3), WANTED[:1])
    request = parsed(exchange.frame(77, "me"), 13)
    assert isinstance(request, v13.FetchRequest)
    assert [(t.topic_id, [p.partition for p in t.partitions]) for t in request.topics] == [(B, [3]), (A, [4])]
    assert [(t.topic_id, t.partitions) for t in request.forgotten_topics_data] == [(A, (3,))]


@pytest.mark.parametrize("version", [12, 13])
def test_a_request_in_a_session_names_what_is_forgotten(version: int) -> None:
    exchange = FetchExchange(WANTED[:1], LIMITS, version == 13, NAMES, Session(2**31 - 1, 9), WANTED[1:])
    request = parsed(exchange.frame(77, "me"), version)
    assert (request.session_id, request.session_epoch) == (2**31 - 1, 9)
    assert [len(topic.partitions) for topic in request.topics] == [1]
    forgotten = [
        (t.topic if isinstance(t, by_name.ForgottenTopic) else t.topic_id, t.partitions)
        for t in request.forgotten_topics_data
    ]
    assert forgotten == ([(A, (4,)), (B, (0,))] if version == 13 else [("orders", (4,)), ("payments", (0,))])


def test_an_answer_names_its_session() -> None:
    answer = v12.FetchResponse(
        throttle_time=milliseconds(0), error_code=ErrorCode.none, session_id=2**31 - 2, responses=()
    )
    assert FetchExchange((), LIMITS, False, {}).answer(framed(answer), 77).session_id == 2**31 - 2


def framed(response: "v12.FetchResponse | v13.FetchResponse", correlation: int = 77) -> bytearray:
    body = io.BytesIO()
    entity_writer(ResponseHeader)(body, ResponseHeader(correlation_id=correlation))
    entity_writer(type(response))(body, response)
    return bytearray(body.getvalue())


def partition(number: int, records: bytes | None, **fields: object) -> answer_by_name.PartitionData:
    given = {"error_code": ErrorCode.none, "aborted_transactions": (), "high_watermark": 99, **fields}
    return answer_by_name.PartitionData(
        partition_index=number, last_stable_offset=50 + number, log_start_offset=1, records=records, **given
    )


def response(*topics: answer_by_name.FetchableTopicResponse, code: ErrorCode = ErrorCode.none) -> v12.FetchResponse:
    return v12.FetchResponse(throttle_time=milliseconds(0), error_code=code, session_id=0, responses=topics)


def answered(frame: bytearray, by_id: bool = False) -> Sequence[FetchedPartition]:
    return FetchExchange(WANTED, LIMITS, by_id, NAMES).answer(frame, 77).partitions


def test_an_answer_gives_each_partitions_records_and_aborted_transactions() -> None:
    aborted = tuple(answer_by_name.AbortedTransaction(producer_id=n, first_offset=10 * n) for n in range(3))
    orders = answer_by_name.FetchableTopicResponse(
        topic="orders",
        partitions=(
            partition(3, b"x" * 300, aborted_transactions=aborted),
            partition(4, None, aborted_transactions=None),
        ),
    )
    payments = answer_by_name.FetchableTopicResponse(
        topic="payments", partitions=(partition(0, b"", error_code=ErrorCode.offset_out_of_range),)
    )
    first, second, third = answered(framed(response(orders, payments)))
    assert (first.partition, bytes(first.records), first.stable_end) == (Partition("orders", 3), b"x" * 300, 53)
    assert first.aborted == (AbortedTransaction(0, 0), AbortedTransaction(1, 10), AbortedTransaction(2, 20))
    assert (second.partition, bytes(second.records), second.aborted) == (Partition("orders", 4), b"", ())
    assert (third.error, third.diverges) == (ErrorCode.offset_out_of_range, None)


def test_a_topic_is_known_by_its_id() -> None:
    topic = answer_by_id.FetchableTopicResponse(
        topic_id=B,
        partitions=(
            answer_by_id.PartitionData(
                partition_index=0,
                error_code=ErrorCode.none,
                high_watermark=1,
                last_stable_offset=1,
                log_start_offset=0,
                aborted_transactions=None,
                records=b"r",
            ),
        ),
    )
    answer = v13.FetchResponse(
        throttle_time=milliseconds(0), error_code=ErrorCode.none, session_id=0, responses=(topic,)
    )
    (fetched,) = answered(framed(answer), by_id=True)
    assert fetched.partition == ("payments", 0)


def test_where_a_log_was_truncated_is_told() -> None:
    diverging = answer_by_name.EpochEndOffset(epoch=3, end_offset=41)
    orders = answer_by_name.FetchableTopicResponse(
        topic="orders", partitions=(partition(3, b"", diverging_epoch=diverging), partition(4, b""))
    )
    assert [fetched.diverges for fetched in answered(framed(response(orders)))] == [(3, 41), None]


def test_large_records_stay_in_the_frame_and_small_ones_do_not_keep_it_alive() -> None:
    orders = answer_by_name.FetchableTopicResponse(
        topic="orders", partitions=(partition(3, b"x" * 10_000), partition(4, b"y" * 100))
    )
    frame = framed(response(orders))
    large, small = answered(frame)
    assert large.records.obj is frame
    assert small.records.obj is not frame


def test_an_error_of_the_whole_is_raised() -> None:
    with pytest.raises(BrokerRefused, match="UNKNOWN_SERVER_ERROR"):
        answered(framed(response(code=ErrorCode.unknown_server_error)))


def test_an_answer_to_another_request_is_the_peers_fault() -> None:
    with pytest.raises(PeerError, match="answered request 5, not 77"):
        answered(framed(response(), correlation=5))


def test_an_answer_about_a_topic_that_was_not_asked_for_is_the_peers_fault() -> None:
    topic = answer_by_id.FetchableTopicResponse(topic_id=uuid.uuid4(), partitions=())
    answer = v13.FetchResponse(
        throttle_time=milliseconds(0), error_code=ErrorCode.none, session_id=0, responses=(topic,)
    )
    with pytest.raises(PeerError):
        answered(framed(answer), by_id=True)


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_answer_raises_nothing_but_our_own_errors(data: st.DataObject) -> None:
    orders = answer_by_name.FetchableTopicResponse(topic="orders", partitions=(partition(3, b"x" * 30),))
    frame = framed(response(orders))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(4, len(frame) - 1))] = data.draw(st.integers(0, 255))
    del frame[data.draw(st.integers(4, len(frame))) :]
    with contextlib.suppress(ApplianceError):
        answered(frame, data.draw(st.booleans()))


class Broker:
    """A broker, and the cluster that knows it alone; it answers each Fetch with the next of these."""

    offered: ClassVar[dict[int, tuple[int, int]]] = {}

    def __init__(self, *answers: Sequence[FetchedPartition]) -> None:
        self._answers = list(answers)

    async def broker(self, *_: object) -> "Broker":
        return self

    async def ask(self, _: FetchExchange) -> FetchAnswer:
        return FetchAnswer(0, self._answers.pop(0) if self._answers else ())

    async def read(self) -> FetchedPartition:
        metadata = Metadata("grape", 0, {}, {"orders": Topic("orders", A, False, (0,))})
        return await fetch_partition(self, metadata, Partition("orders", 0), 0, "read", LIMITS)  # type: ignore[arg-type]


async def test_case_41_a_fetch_that_a_throttling_broker_answers_with_nothing_is_asked_again() -> None:
    # Before, a destination that throttles (KIP-219) made a task fail by a ValueError, and ended a first start.
    fetched = FetchedPartition(Partition("orders", 0), ErrorCode.none, memoryview(b""), (), 0, None)
    assert await Broker((), (), [fetched]).read() is fetched


async def test_case_41_a_broker_that_goes_on_throttling_is_busy() -> None:
    with pytest.raises(BrokerBusy, match="throttles"):
        await Broker().read()
