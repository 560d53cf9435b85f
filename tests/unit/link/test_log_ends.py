"""The questions to leaders about their logs: few, and none again whose answer cannot have changed."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from appliance.errors import ApplianceError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.link.client import log_ends
from appliance.link.client.log_ends import EpochEnds

KEYS = [Partition("orders", n) for n in range(3)]
TOPIC = Topic("orders", uuid.UUID(int=1), False, (1, 1, 1), epochs=(4, 5, 5))


class Cluster(KafkaCluster):
    """A cluster that is only asked by the functions that are replaced."""

    def __init__(self) -> None:
        pass


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[Partition, int]]:
    """The questions for the ends of epochs, which are a hundred offsets each."""
    questions: list[Mapping[Partition, int]] = []

    async def epoch_ends(*arguments: Any) -> tuple[dict[Partition, int], dict[Partition, ApplianceError]]:
        questions.append(dict(arguments[2]))
        return {partition: 100 * (epoch + 1) for partition, epoch in arguments[2].items()}, {}

    monkeypatch.setattr(log_ends, "epoch_ends", epoch_ends)
    return questions


def led(*epochs: int, topic_id: int = 1) -> Metadata:
    return Metadata("", 1, {}, {"orders": replace(TOPIC, epochs=epochs, id=uuid.UUID(int=topic_id))})


async def test_only_the_ends_of_former_leaders_epochs_are_asked_for_and_once(
    asked: list[Mapping[Partition, int]],
) -> None:
    ends = EpochEnds(Cluster())
    epochs = {KEYS[0]: 4, KEYS[1]: 4, KEYS[2]: -1}
    for _ in range(3):
        assert await ends.read(led(4, 5, 5), epochs) == ({KEYS[1]: 500}, {})
    assert [each for each in asked if each] == [{KEYS[1]: 4}]
    assert await ends.read(led(4, 6, 5), epochs) == ({KEYS[1]: 500}, {})
    assert await ends.read(led(4, 6, 5), {**epochs, KEYS[1]: 5}) == ({KEYS[1]: 600}, {})
    assert await ends.read(led(4, 6, 5, topic_id=2), {**epochs, KEYS[1]: 5}) == ({KEYS[1]: 600}, {})
    assert [each for each in asked if each] == [{KEYS[1]: 4}, {KEYS[1]: 4}, {KEYS[1]: 5}, {KEYS[1]: 5}]


async def test_the_end_of_the_present_leaders_epoch_is_asked_for_each_time_where_it_is_wanted(
    asked: list[Mapping[Partition, int]],
) -> None:
    ends = EpochEnds(Cluster())
    epochs = dict.fromkeys(KEYS[:2], 4)
    for _ in range(2):
        assert await ends.read(led(4, 5, 5), epochs, KEYS[:1]) == (dict.fromkeys(KEYS[:2], 500), {})
    assert asked == [epochs, {KEYS[0]: 4}]
