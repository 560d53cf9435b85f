"""Shared dials of a cluster's brokers, without brokers."""

import asyncio
from typing import Any, cast

import pytest

from appliance.errors import Unreachable
from appliance.kafka.client import cluster as module
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.connection import BrokerConnection
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.target import Target
from tests.support.settings import REQUIRED

WAITING = 5


class Open:
    """An open connection."""

    open = True

    async def close(self) -> None:
        pass


class Dials:
    """A substitute for ``open_session``: the test ends every dial."""

    def __init__(self) -> None:
        self.count = 0
        self.ended: asyncio.Future[BrokerConnection] = asyncio.get_running_loop().create_future()

    async def __call__(self, *_: object) -> BrokerConnection:
        self.count += 1
        return await asyncio.shield(self.ended)


@pytest.fixture
async def dials(monkeypatch: pytest.MonkeyPatch) -> Dials:
    made = Dials()
    monkeypatch.setattr(module, "open_session", made)
    return made


async def settled() -> None:
    """Let every task run as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


def waiting(cluster: KafkaCluster, purpose: str = "produce") -> list[asyncio.Task[BrokerConnection]]:
    return [asyncio.create_task(cluster.broker(1, purpose)) for _ in range(WAITING)]


@pytest.fixture
def cluster() -> KafkaCluster:
    resolve: Any = None
    made = KafkaCluster(parse(REQUIRED, Role.REPLICATOR).destination, resolve, "test")
    made._brokers = {1: Target("b1.grape", 9092)}
    return made


async def test_case_61_all_that_wait_for_a_broker_share_one_dial_and_its_error(
    dials: Dials, cluster: KafkaCluster
) -> None:
    # Before, they dialled it one after the other: the last of twelve lanes learned after two minutes that it was down.
    tasks = waiting(cluster)
    await settled()
    dials.ended.set_exception(Unreachable("no answer in time"))
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(answer) for answer in answers] == ["no answer in time"] * WAITING
    assert dials.count == 1


async def test_case_61_who_gives_up_waiting_ends_no_dial_of_others(dials: Dials, cluster: KafkaCluster) -> None:
    first, *others = waiting(cluster)
    await settled()
    first.cancel()
    await settled()
    connection = cast("BrokerConnection", Open())
    dials.ended.set_result(connection)
    assert await asyncio.gather(*others) == [connection] * (WAITING - 1)
    assert await cluster.broker(1, "produce") is connection
    assert dials.count == 1


async def test_a_connection_for_another_purpose_is_another_one(dials: Dials, cluster: KafkaCluster) -> None:
    tasks = waiting(cluster) + waiting(cluster, "control")
    await settled()
    dials.ended.set_result(cast("BrokerConnection", Open()))
    await asyncio.gather(*tasks)
    assert dials.count == 2


async def test_a_broker_that_was_not_reached_is_dialled_again(dials: Dials, cluster: KafkaCluster) -> None:
    dials.ended.set_exception(Unreachable("no answer in time"))
    for _ in range(2):
        with pytest.raises(Unreachable):
            await cluster.broker(1)
    assert dials.count == 2


@pytest.mark.usefixtures("dials")
async def test_a_cluster_that_is_closed_dials_no_more(cluster: KafkaCluster) -> None:
    task = asyncio.create_task(cluster.broker(1))
    await settled()
    await cluster.close()
    assert task.cancelled()
    assert not cluster._dials
