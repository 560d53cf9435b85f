import io
import json
import pickle
import struct
import uuid

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_writer
from kio.static.primitive import i32

from appliance.errors import PeerError
from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol.metadata import Everything, EverythingExchange, Metadata, Partition, request
from appliance.kafka.protocol.wire import TypedExchange


def response(correlation: int, *leaders: int, error: ErrorCode = ErrorCode.none) -> bytearray:
    partitions = tuple(
        MetadataResponsePartition(
            error_code=ErrorCode.none, partition_index=i32(number), leader_id=BrokerId(leader), leader_epoch=i32(0)
        )
        for number, leader in enumerate(leaders)
    )
    topic = MetadataResponseTopic(
        error_code=error,
        name=TopicName("orders"),
        topic_id=uuid.UUID(int=1),
        is_internal=False,
        partitions=partitions,
    )
    answer = MetadataResponse(
        throttle_time=milliseconds(0),
        brokers=(MetadataResponseBroker(node_id=BrokerId(1), host="b1.example", port=i32(9092)),),
        cluster_id="cluster",
        controller_id=BrokerId(1),
        topics=(topic,),
    )
    body = io.BytesIO()
    entity_writer(MetadataResponse)(body, answer)
    return bytearray(struct.pack(">iB", correlation, 0) + body.getvalue())


def heard(everything: Everything, frame: bytearray, correlation: int) -> Metadata:
    return EverythingExchange(everything, TypedExchange(request(None), MetadataResponse)).answer(frame, correlation)


def test_an_answer_that_says_the_same_again_is_the_same_object() -> None:
    everything = Everything()
    first = heard(everything, response(5, 1, 1), 5)
    assert first.topics["orders"].leaders == (1, 1)
    assert heard(everything, response(6, 1, 1), 6) is first


@pytest.mark.parametrize("error", [ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception])
def test_case_1106_a_topic_whose_name_none_can_have_does_not_exist(error: ErrorCode) -> None:
    # It was taken for one that is there, so that a command whose --topic-name had a blank failed with its error.
    assert heard(Everything(), response(5, error=error), 5).topics == {}


@pytest.mark.parametrize(("length", "is_asked"), [(249, True), (250, False), (40_000, False)])
def test_case_1106_a_name_that_is_too_long_for_a_topic_is_not_asked_for(length: int, is_asked: bool) -> None:
    # At one of more than 32,767 bytes a broker closes the connection, and answers nothing about the other topics.
    asked = request(["orders", "x" * length]).topics
    assert asked is not None
    assert [len(topic.name or "") for topic in asked] == [6, *[length] * is_asked]


def test_an_answer_that_says_something_else_is_read_anew() -> None:
    everything = Everything()
    first = heard(everything, response(5, 1, 1), 5)
    assert heard(everything, response(6, 1, 2), 6).topics["orders"].leaders == (1, 2)
    assert first.topics["orders"].leaders == (1, 1)
    assert heard(everything, response(7, 1, 1), 7) == first


def test_the_same_bytes_as_the_answer_to_another_request_are_the_peers_fault() -> None:
    everything = Everything()
    heard(everything, response(5, 1), 5)
    with pytest.raises(PeerError, match="answered request 5, not 6"):
        heard(everything, response(5, 1), 6)


def test_garbage_is_the_peers_fault() -> None:
    with pytest.raises(PeerError):
        heard(Everything(), bytearray(struct.pack(">iB", 5, 0) + b"noise"), 5)


def test_a_partition_prints_itself_and_is_a_tuple_for_all_else() -> None:
    partition = Partition("orders", 3)
    assert f"{partition}" == "orders-3"
    assert {("orders", 3): 1}[partition] == 1
    assert json.dumps(partition) == '["orders", 3]'
    assert pickle.loads(pickle.dumps(partition)) == partition
