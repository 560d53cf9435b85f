"""The API version for a broker, and messages in this version."""

import dataclasses
import importlib
import re
import struct
import typing
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from kio.schema.create_topics.v7 import CreateTopicsRequest
from kio.schema.describe_configs.v4 import DescribeConfigsRequest
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import FetchRequest
from kio.schema.list_groups.v5 import ListGroupsRequest, ListGroupsResponse
from kio.schema.list_groups.v5.response import ListedGroup
from kio.schema.metadata.v11 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponsePartition, MetadataResponseTopic
from kio.schema.produce.v9 import ProduceRequest
from kio.schema.types import BrokerId, GroupId, TopicName
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload

from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol import versions
from appliance.kafka.protocol.metadata import NOWHERE, parse, request
from appliance.kafka.protocol.older import as_type, exchange, of_version
from appliance.kafka.protocol.wire import TypedExchange
from appliance.settings.values import Side
from tests.support.scripted_broker import framed

KAFKA_2_8 = {0: (0, 9), 1: (0, 12), 2: (0, 6), 3: (0, 11), 10: (0, 3), 19: (0, 7), 22: (0, 4), 24: (0, 3), 26: (0, 3)}
KAFKA_2_8 |= {32: (0, 4), 37: (0, 3), 44: (0, 1)}
KAFKA_4 = {0: (0, 13), 1: (4, 17), 2: (1, 11), 3: (0, 13), 10: (0, 6), 19: (2, 7), 22: (0, 6), 24: (0, 5), 26: (0, 5)}
KAFKA_4 |= {32: (1, 4), 37: (0, 3), 44: (0, 1)}
REDPANDA = {0: (0, 7), 1: (4, 13), 2: (0, 4), 3: (0, 8), 10: (0, 3), 19: (0, 5), 22: (0, 3), 24: (0, 3), 26: (0, 3)}
REDPANDA |= {32: (0, 2), 37: (0, 1), 44: (0, 0)}
KAFKA_1 = {0: (0, 5), 1: (0, 6), 2: (0, 2), 3: (0, 5), 10: (0, 1), 19: (0, 2), 22: (0, 0), 24: (0, 0), 26: (0, 0)}
KAFKA_1 |= {32: (0, 0)}


NOT_NEEDED = {
    "group_instance_id",
    "groups.group_type",
    "include_documentation",
    "include_topic_authorized_operations",
    "producer_epoch",
    "producer_id",
    "responses.partition_responses.error_message",
    "responses.partition_responses.record_errors",
    "responses.partition_responses.record_errors.batch_index",
    "responses.partition_responses.record_errors.batch_index_error_message",
    "results.configs.config_type",
    "results.configs.documentation",
    "topics.configs",
    "topics.configs.config_source",
    "topics.configs.is_sensitive",
    "topics.configs.name",
    "topics.configs.read_only",
    "topics.configs.value",
    "topics.num_partitions",
    "topics.replication_factor",
    "topics.topic_authorized_operations",
    "topics.topic_config_error_code",
    "topics.topic_id",
    "types_filter",
}
"""Fields that an older version lacks, and whose absence does not matter."""

ID = uuid.UUID(int=7)


def metadata_of(topic: str) -> MetadataResponse:
    partitions = tuple(
        MetadataResponsePartition(
            error_code=ErrorCode.none,
            partition_index=i32(index),
            leader_id=BrokerId(leader),
            leader_epoch=i32(3),
            replica_nodes=(),
            isr_nodes=(),
            offline_replicas=(),
        )
        for index, leader in enumerate((1, 2))
    )
    known = MetadataResponseTopic(
        error_code=ErrorCode.none, name=TopicName(topic), topic_id=ID, is_internal=False, partitions=partitions
    )
    return MetadataResponse(throttle_time=milliseconds(0), brokers=(), topics=(known,))


@pytest.mark.parametrize("offered", [KAFKA_2_8, KAFKA_4, REDPANDA], ids=["2.8", "4", "redpanda"])
@pytest.mark.parametrize("side", Side)
def test_no_broker_that_has_versions_which_do_is_too_old(offered: versions.OfferedVersions, side: Side) -> None:
    assert versions.missing(offered, side) == []


def test_each_side_lacks_only_what_it_is_used_for() -> None:
    assert versions.missing(KAFKA_1, Side.SOURCE) == [
        "Metadata 7 to 11 (it has 0 to 5)",
        "Fetch 12 (it has 0 to 6)",
        "ListOffsets 4 to 6 (it has 0 to 2)",
    ]
    assert "Produce 7 to 9 (it has 0 to 5)" in versions.missing(KAFKA_1, Side.DESTINATION)
    assert "CreatePartitions 1 to 3 (it has none)" in versions.missing(KAFKA_1, Side.DESTINATION)


@pytest.mark.parametrize(
    ("key", "side"), [(32, Side.SOURCE), (44, Side.SOURCE), (44, Side.DESTINATION), (0, Side.SOURCE)]
)
def test_settings_that_cannot_be_followed_keep_nobody_from_copying(key: int, side: Side) -> None:
    assert versions.missing({api: has for api, has in KAFKA_4.items() if api != key}, side) == []


@pytest.mark.parametrize(
    ("request_type", "offered", "version"),
    [
        (MetadataRequest, KAFKA_4, 11),
        (MetadataRequest, REDPANDA, 8),
        (MetadataRequest, {}, 11),
        (DescribeConfigsRequest, REDPANDA, 2),
        (ProduceRequest, REDPANDA, 7),
        (ProduceRequest, KAFKA_2_8, 9),
        (FetchRequest, KAFKA_4, 12),
        (CreateTopicsRequest, REDPANDA, 5),
    ],
)
def test_the_newest_version_that_both_have_is_spoken(
    request_type: type[RequestPayload], offered: Mapping[int, tuple[int, int]], version: int
) -> None:
    assert versions.version(offered, request_type) == version


def names(message: type[Any], above: str = "") -> set[str]:
    """The fields of a message and of its parts."""
    found = set()
    for name, hint in typing.get_type_hints(message).items():
        if name in {field.name for field in dataclasses.fields(message)}:
            parts = [kind for kind in re.findall(r"kio\.schema\.[\w.]+", str(hint)) if ".types." not in kind]
            found |= {above + name, *(each for part in parts for each in names(named(part), f"{above}{name}."))}
    return found


def named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("request_type", versions.OLDEST)
def test_a_request_in_an_older_version_says_the_same_in_all_that_both_know(request_type: type[RequestPayload]) -> None:
    response_type = named(f"{request_type.__module__}.{request_type.__name__}".replace("equest", "esponse"))
    for version in range(versions.OLDEST[request_type], int(request_type.__version__)):
        for newest in (request_type, response_type):
            older = of_version(newest, version)
            assert older.__version__ == version
            assert names(newest) - names(older) <= NOT_NEEDED, (newest, version)


@pytest.mark.parametrize("version", [7, 8, 9, 10])
def test_metadata_without_topic_ids_is_read(version: int) -> None:
    asked = exchange({3: (0, version)}, request(["orders"]), MetadataResponse)
    frame = asked.frame(5, "me")
    assert struct.unpack_from(">hhi", frame, 4) == (3, version, 5)
    response = as_type(metadata_of("orders"), of_version(MetadataResponse, version))
    found = parse(asked.answer(bytearray(framed(response, 5)[4:]), 5))
    assert found.topics["orders"].leaders == (1, 2)
    assert found.topics["orders"].id == (ID if version >= 10 else NOWHERE)


def test_a_broker_with_our_newest_version_is_asked_in_that() -> None:
    assert type(exchange(KAFKA_4, request(None), MetadataResponse)) is TypedExchange


def test_a_broker_that_does_not_tell_the_kinds_of_groups_gives_none() -> None:
    listed = ListedGroup(group_id=GroupId("g"), protocol_type="consumer", group_state="Empty", group_type="classic")
    answer = ListGroupsResponse(throttle_time=milliseconds(0), error_code=ErrorCode.none, groups=(listed,))
    asked = exchange({16: (0, 4)}, ListGroupsRequest(), ListGroupsResponse)
    older = as_type(answer, of_version(ListGroupsResponse, 4))
    (group,) = asked.answer(bytearray(framed(older, 5)[4:]), 5).groups
    assert (group.group_id, group.group_state, group.group_type) == ("g", "Empty", "")
