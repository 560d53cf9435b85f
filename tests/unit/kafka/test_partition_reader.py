"""The reader of one partition."""

import uuid
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from appliance.errors import BrokerBusy
from appliance.kafka.client import partition_reader
from appliance.kafka.client.fetch import FetchLimits
from appliance.kafka.client.partition_reader import fetch_partition
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic

PARTITION = Partition("positions", 0)
LIMITS = FetchLimits(1_000, 0.1)


class Cluster:
    async def broker(self, *_: object) -> None:
        pass


async def read(answers: list[list[Any]], monkeypatch: pytest.MonkeyPatch) -> Any:
    async def fetch(*_: object) -> list[Any]:
        return answers.pop(0) if answers else []

    monkeypatch.setattr(partition_reader, "fetch", fetch)
    topic = Topic("positions", uuid.uuid4(), False, (0,))
    cluster: Any = Cluster()
    return await fetch_partition(cluster, Metadata("grape", 0, {}, {"positions": topic}), PARTITION, 0, "read", LIMITS)


async def test_case_41_a_fetch_that_a_throttling_broker_answers_with_nothing_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Before, a destination that throttles (KIP-219) made a task fail by a ValueError, and ended a first start.
    fetched: Any = type("Answer", (), {"error": ErrorCode.none})()
    assert await read([[], [], [fetched]], monkeypatch) is fetched


async def test_case_41_a_broker_that_goes_on_throttling_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BrokerBusy, match="throttles"):
        await read([], monkeypatch)
