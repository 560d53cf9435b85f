"""Clusters that several users share: one starts them, and keeps them until nobody uses them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from testbed.plan import ClusterPlan, Ports
from tests.support import shared_clusters as module
from tests.support.patience import PATIENCE
from tests.support.shared_clusters import shared_clusters

PLANS = [ClusterPlan.plain(name, address="127.0.3.1") for name in ("orange", "grape")]


class Recorded:
    """A cluster whose starts and stops are counted, and whose brokers do not exist."""

    started = 0
    running = 0

    def __init__(self, *_: Any) -> None:
        self.ports = Ports(0, 0, 0)

    def use(self, ports: Ports) -> None:
        self.ports = ports

    async def __aenter__(self) -> "Recorded":
        type(self).started += 1
        type(self).running += 1
        self.ports = Ports(Recorded.started, 0, 0)
        return self

    async def __aexit__(self, *_: Any) -> None:
        type(self).running -= 1


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Cluster", Recorded)
    monkeypatch.setattr(Recorded, "started", 0)
    monkeypatch.setattr(Recorded, "running", 0)


async def test_who_started_them_leaves_when_nobody_uses_them_and_a_later_user_starts_them_anew(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        first, second = shared_clusters(PLANS, tmp_path), shared_clusters(PLANS, tmp_path)
        started, used = await first.__aenter__(), await second.__aenter__()
        assert [cluster.ports for cluster in used] == [cluster.ports for cluster in started]
        assert Recorded.started == len(PLANS)
        leaving = asyncio.create_task(first.__aexit__(None, None, None), name="the first leaves")
        async with shared_clusters(PLANS, tmp_path):
            assert Recorded.started == Recorded.running == len(PLANS)
        await second.__aexit__(None, None, None)
        await leaving
        assert Recorded.running == 0
        async with shared_clusters(PLANS, tmp_path):
            assert Recorded.started == 2 * len(PLANS)
        assert Recorded.running == 0


async def test_users_that_come_at_once_share_the_clusters_of_one(tmp_path: Path) -> None:
    meeting = asyncio.Barrier(3)

    async def user() -> None:
        async with shared_clusters(PLANS, tmp_path):
            await meeting.wait()

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as users:
        for number in range(meeting.parties):
            users.create_task(user(), name=f"user {number}")
    assert Recorded.started == len(PLANS)
    assert Recorded.running == 0
