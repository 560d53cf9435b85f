"""Answers without the part that was asked for, or with a word where a number belongs."""

import uuid
from typing import Any

import pytest
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v6 import ListOffsetsResponse
from kio.static.primitive import i8

from appliance.errors import PeerError
from appliance.kafka.client.configs import write_limits
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.settings.values import Side

METADATA = Metadata("", 0, {}, {"orders": Topic("orders", uuid.UUID(int=1), False, (1,))})


class Cluster:
    """A cluster and its one broker, which gives this answer."""

    side = Side.DESTINATION

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.offered = {32: (0, 4)}

    async def broker(self, *_: object) -> "Cluster":
        return self

    any_broker = broker

    async def call(self, *_: object) -> object:
        return self.answer


async def test_case_977_a_leader_that_leaves_out_the_offset_it_is_asked_for_breaks_the_protocol() -> None:
    # Before, whoever asked for it got KeyError.
    cluster: Any = Cluster(ListOffsetsResponse(throttle_time=milliseconds(0), topics=()))
    with pytest.raises(PeerError, match="the leader of orders-0 leaves out its offset"):
        await list_offsets(cluster, METADATA, [Partition("orders", 0)], Bound.END)


@pytest.mark.parametrize("settings", [{}, {"max.message.bytes": "q"}])
async def test_case_977_limits_that_are_no_numbers_break_the_protocol(settings: dict[str, str]) -> None:
    # Before, a lane got ValueError or KeyError.
    fixed: Any = {
        "read_only": False,
        "config_source": i8(1),
        "is_sensitive": False,
        "synonyms": (),
        "documentation": "",
    }
    configs = tuple(DescribeConfigsResourceResult(name=name, value=value, **fixed) for name, value in settings.items())
    result = DescribeConfigsResult(
        error_code=ErrorCode.none, error_message=None, resource_type=i8(2), resource_name="orders", configs=configs
    )
    cluster: Any = Cluster(DescribeConfigsResponse(throttle_time=milliseconds(0), results=(result,)))
    with pytest.raises(PeerError, match="the limits of orders are no numbers"):
        await write_limits(cluster, ["orders"])
