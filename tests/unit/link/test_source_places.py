"""The leader epoch of a place is one with which the log's leader takes a Fetch from there, or none."""

import uuid
from typing import Any

import pytest

from appliance.errors import ApplianceError, BrokerBusy
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.link.client import source_places
from appliance.link.client.source_places import places, try_places
from appliance.link.model.position import SourcePlace

KNOWN, OLD_FORMAT, UNANSWERED, WITHOUT = (Partition("orders", number) for number in range(4))
METADATA = Metadata("orange", 0, {}, {"orders": Topic("orders", uuid.UUID(int=1), False, (1,) * 4, epochs=(7, 7, 7))})
MOVED = BrokerBusy("another leads", "FENCED_LEADER_EPOCH")


@pytest.fixture(autouse=True)
def _answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def epoch_ends(_: Any, __: Metadata, epochs: dict[Partition, int]) -> Any:
        ends = {KNOWN: 12, OLD_FORMAT: -1}
        refused: dict[Partition, ApplianceError] = {UNANSWERED: MOVED}
        assert WITHOUT not in epochs
        assert set(epochs.values()) == {7}
        return {key: ends[key] for key in epochs if key in ends}, {k: refused[k] for k in epochs if k in refused}

    monkeypatch.setattr(source_places, "epoch_ends", epoch_ends)


async def test_a_place_has_its_leaders_epoch_where_the_leader_ends_it_behind_the_offset() -> None:
    cluster: Any = None
    asked = dict.fromkeys((KNOWN, OLD_FORMAT, UNANSWERED, WITHOUT), 10)
    found, failures = await try_places(cluster, METADATA, asked)
    assert found == {KNOWN: SourcePlace(10, 7), OLD_FORMAT: SourcePlace(10, -1), WITHOUT: SourcePlace(10, -1)}
    assert failures == {UNANSWERED: MOVED}
    with pytest.raises(BrokerBusy):
        await places(cluster, METADATA, asked)
