"""Queries to all leaders at once, without a broker."""

import asyncio
import uuid
from typing import Any

from appliance.errors import Unreachable
from appliance.kafka.client.interface import Connection
from appliance.kafka.client.requests import ask_leaders
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition, Topic
from appliance.settings.values import Side
from tests.support.virtual_time import run

TOPIC = Topic("orders", uuid.UUID(int=1), False, (1, 2, 3, NOBODY))
METADATA = Metadata("", 0, {}, {"orders": TOPIC})
PARTITIONS = [Partition("orders", number) for number in range(4)]
DIAL_SECONDS = 10.0


class Cluster:
    """A cluster in which node 1 answers, and dials of the others fail."""

    side = Side.DESTINATION

    async def broker(self, node: int, purpose: str) -> str:
        if node == 1:
            return f"connection for {purpose}"
        await asyncio.sleep(DIAL_SECONDS)
        raise Unreachable(f"{node} does not answer")


async def asked() -> tuple[list[tuple[Connection, list[Partition]]], dict[Partition, str], float]:
    cluster: Any = Cluster()
    heard: list[tuple[Connection, list[Partition]]] = []

    async def ask(leader: Connection, led: list[Partition]) -> None:
        heard.append((leader, led))

    failures = await ask_leaders(cluster, METADATA, PARTITIONS, ask, "produce")
    return heard, {partition: str(error) for partition, error in failures.items()}, asyncio.get_running_loop().time()


def test_case_66_leaders_that_are_not_reached_are_waited_for_together() -> None:
    # Before, a lane with copies on three dead leaders waited for one after the other before it named the last.
    heard, failures, seconds = run(asked())
    assert seconds == DIAL_SECONDS
    assert heard == [("connection for produce", [("orders", 0)])]
    assert failures == {
        ("orders", 1): "2 does not answer",
        ("orders", 2): "3 does not answer",
        ("orders", 3): "orders-3 of the destination cluster has no leader now",
    }
