"""Both ends of a link, installed by Helm in two namespaces of a real node, between two real clusters of brokers.

The tests use one link, in this order.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.containers.programs.vpc import TOPIC
from tests.containers.sites import GRAPE, ORANGE
from tests.kubernetes.brokers import Brokers
from tests.kubernetes.release import Link, Release, releases

LINK = Link("installed", 31060, ORANGE, GRAPE)
RECORDS = 1000
KILL_SECONDS, EARLY_SECONDS = 10.0, 2.0
pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True, slots=True)
class Installed:
    """Both releases, the objects of their namespaces before, and the time from the first ``helm install`` to the first
    copied record."""

    brokers: Brokers
    ends: tuple[Release, Release]
    before: tuple[set[str], ...]
    seconds_to_first_record: float

    async def more_is_copied(self, who: str, seconds: float = 0.0) -> None:
        """Produce more records, and wait until the copy has all, each once and in order."""
        producer = await self.brokers.produce(ORANGE, TOPIC, who, RECORDS, seconds)
        assert await producer.wait(60) == 0
        assert await self.brokers.wait_until_copied(ORANGE, TOPIC, GRAPE, LINK.copy) >= RECORDS


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def installed(beside: Brokers) -> AsyncIterator[Installed]:
    producer = await beside.produce(ORANGE, TOPIC, "first", 1)
    assert await producer.wait(60) == 0
    ends = releases(beside, LINK)
    before = tuple(end.objects() for end in ends)
    began = time.monotonic()
    for end in ends:
        await asyncio.to_thread(end.install)
    await beside.wait_until_copied(ORANGE, TOPIC, GRAPE, LINK.copy)
    yield Installed(beside, ends, before, time.monotonic() - began)


async def test_a_topic_is_copied_byte_for_byte_through_the_tunnel_of_two_releases(
    installed: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print(f"\nfrom helm install to the first copied record: {installed.seconds_to_first_record:.0f} s")
    await installed.more_is_copied("more")


async def test_the_doctor_of_both_sides_finds_no_fault(installed: Installed) -> None:
    for end in installed.ends:
        printed = await asyncio.to_thread(end.test)
        assert "Phase:          Succeeded" in printed


@pytest.mark.parametrize("end", [0, 1], ids=["tunnel", "gateway and replicator"])
async def test_nothing_is_lost_or_doubled_when_a_pod_is_killed(installed: Installed, end: int) -> None:
    copying = asyncio.create_task(installed.more_is_copied(f"killed-{end}", KILL_SECONDS))
    await asyncio.sleep(EARLY_SECONDS)
    await asyncio.to_thread(installed.ends[end].kill)
    await copying


@pytest.mark.release
async def test_an_upgrade_changes_a_setting_and_a_rollback_takes_it_back_and_nothing_is_lost(
    installed: Installed,
) -> None:
    _, destination = installed.ends
    assert "SLICE_SECONDS" not in destination.settings_file()
    await asyncio.to_thread(destination.upgrade, SLICE_SECONDS="7")
    assert "export SLICE_SECONDS='7'" in destination.settings_file()
    await installed.more_is_copied("upgraded")
    await asyncio.to_thread(destination.rollback)
    assert "SLICE_SECONDS" not in destination.settings_file()
    await installed.more_is_copied("rolled-back")


async def test_uninstalling_leaves_nothing(installed: Installed) -> None:
    for end, before in zip(installed.ends, installed.before, strict=True):
        await asyncio.to_thread(end.uninstall)
        assert end.objects() == before
