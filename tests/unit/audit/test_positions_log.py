"""Reading the lanes of the positions topic."""

import re
import uuid
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from appliance.audit import reading
from appliance.audit.model.entries import ANY_DAY, LogRange
from appliance.audit.model.state import AuditState, decode_state, encode_state
from appliance.audit.model.taking import take
from appliance.audit.reading import PositionsLog
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.fetch import EpochEnd, FetchedPartition, WantedPartition
from appliance.kafka.protocol.metadata import Partition, Topic
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Suffix

TOPIC = Topic("positions", uuid.UUID(int=3), False, (1,), epochs=(5,))


class Destination(KafkaCluster):
    """A cluster with one broker, which is not connected to."""

    def __init__(self) -> None:
        pass

    async def broker(self, *_: Any) -> Any:
        return None


async def test_case_498_a_log_that_was_truncated_and_is_as_long_again_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The audit went on at its offset, and nothing said that others stood before it in the place of the lost records.
    state = AuditState(TOPIC.id)
    take(state, 0, LogRange((), 100, -1, 4), ANY_DAY, 0, str)
    state = decode_state(encode_state(state))
    asked: list[WantedPartition] = []

    async def fetch(_: Any, wanted: list[WantedPartition], __: Any) -> list[FetchedPartition]:
        asked.extend(wanted)
        diverges = EpochEnd(4, 60)
        return [FetchedPartition(Partition("positions", 0), ErrorCode.none, memoryview(b""), (), 130, diverges)]

    monkeypatch.setattr(reading, "fetch", fetch)
    naming = Naming("replicator-orange", Suffix(after=".copy"), re.compile(""), re.compile(""))
    found = [each async for each in PositionsLog(Destination(), naming).ranges(TOPIC, state.lanes, [0])]
    assert found == [(0, None, False)]
    assert [(each.position, each.last_epoch, each.leader_epoch) for each in asked] == [(100, 4, 5)]
