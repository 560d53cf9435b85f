"""The choice of the partitions to resume."""

import argparse
import uuid

import pytest

from appliance.commands.resumption import RETRY, Choice, _chosen
from appliance.errors import SettingsError, UnknownTopic
from appliance.link.model.replicas import Replica
from appliance.link.model.topic_choice import add_topic_options, among

TOPICS = ("orders.v1", "orders-v1", "orders_v1", "payments.v1")
DISCOVERED = [Replica(topic, 0, f"{topic}.copy", uuid.UUID(int=1), uuid.UUID(int=2)) for topic in TOPICS]


def of_options(*words: str) -> str:
    command = argparse.ArgumentParser()
    add_topic_options(command)
    topic: str = command.parse_args(words).topic
    return topic


def chosen(topic: str, partition: int | None = None, start: str = RETRY, take_over: bool = False) -> list[str]:
    replicas, _ = _chosen(DISCOVERED, Choice(topic, partition, start, take_over), {})
    return [replica.source_topic for replica in replicas]


@pytest.mark.parametrize(
    "moves", [(0, RETRY, False), (None, "latest", False), (None, RETRY, True)], ids=["partition", "from", "take-over"]
)
def test_case_1495_positions_are_moved_of_topics_by_name_alone(moves: tuple[int | None, str, bool]) -> None:
    # `resume --topic orders.v1 --from latest`, of a runbook for 0.2.0, left out records of orders-v1, too.
    for expression in ("orders.v1", "payments.*", ".*", "orders.v1|payments.v1"):
        with pytest.raises(SettingsError, match=r"positions are moved of topics by name: .*--topic-name="):
            chosen(expression, *moves)
    for of_one in ("payments.v1", r"orders\.v1", of_options("--topic-name", "orders-v1")):
        assert len(chosen(of_one, *moves)) == 1
    assert chosen(of_options("--topic-name=orders.v1", "--topic-name=orders_v1"), *moves) == ["orders.v1", "orders_v1"]
    with pytest.raises(UnknownTopic, match=r"--topic-name=orders\.v2: this link copies no such topic or partition"):
        chosen(of_options("--topic-name", "orders.v2"), *moves)


def test_a_retry_takes_every_topic_of_an_expression() -> None:
    assert chosen("orders.v1") == ["orders.v1", "orders-v1", "orders_v1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--topic-name", "a.b"), "--topic-name=a.b: "), (("--topic", "a.b"), "--topic a.b: ")],
)
def test_case_1499_the_fault_of_a_topic_says_the_option_that_was_given(words: tuple[str, ...], said: str) -> None:
    # `--topic-name a.b` was answered with `--topic a\\.b`.
    with pytest.raises(UnknownTopic) as refused:
        among(of_options(*words), ["orders"])
    assert str(refused.value).startswith(said)
