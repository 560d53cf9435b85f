"""Containers that end while records arrive: each alone, and all of them for good."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.containers.link import Link, Service
from tests.containers.programs.vpc import TOPIC
from tests.containers.sites import GRAPE, ORANGE

RECORDS = 2000
SECONDS = 12
EARLY_SECONDS = 2


async def restarted_while_records_come(link: Link, service: Service) -> None:
    """Records arrive before, during and after the drain, the end and the start of the container."""
    producer = await link.vpcs.produce(ORANGE, TOPIC, f"restart-{service.name}", RECORDS, SECONDS)
    await asyncio.sleep(EARLY_SECONDS)
    assert producer.running
    await asyncio.to_thread(service.restart)
    later = await link.vpcs.produce(ORANGE, TOPIC, f"restarted-{service.name}", RECORDS, seconds=0)
    assert [await producer.wait(60), await later.wait(60)] == [0, 0]
    await link.wait_until_copied()


@pytest.mark.release  # the faults kill both; the gateway's end also ends the replicator
@pytest.mark.parametrize("name", ["tunnel", "replicator"])
@pytest.mark.asyncio(loop_scope="session")
async def test_nothing_is_lost_or_doubled_when_a_container_is_restarted(link: Link, name: str) -> None:
    await restarted_while_records_come(link, next(service for service in link.services if service.name == name))


@pytest.mark.asyncio(loop_scope="session")
async def test_the_replicator_follows_a_restarted_gateway_into_its_new_network_and_nothing_is_lost(link: Link) -> None:
    _, gateway, replicator = link.services
    begun = replicator.inspected()["State"]["StartedAt"]
    await restarted_while_records_come(link, gateway)
    assert replicator.inspected()["State"]["StartedAt"] > begun
    assert "eth0" in replicator.inside("ls", "/sys/class/net").stdout.split()


@pytest.mark.release  # a VM that loses power stops more abruptly
@pytest.mark.asyncio(loop_scope="session")
async def test_nothing_is_lost_or_doubled_when_all_goes_down_and_comes_up_again(link: Link) -> None:
    before = await link.wait_until_copied()
    for side in (GRAPE, ORANGE):
        link.down(side)
    assert not [service for service in link.services if service.container]
    producer = await link.vpcs.produce(ORANGE, TOPIC, "down", RECORDS, seconds=0)
    assert await producer.wait(60) == 0
    for side in (ORANGE, GRAPE):
        assert "Successfully tagged" not in link.up(side)
    assert await link.wait_until_copied() == before + RECORDS


@pytest.mark.asyncio(loop_scope="session")
async def test_nothing_is_lost_or_doubled_when_the_destination_vm_loses_power(link: Link) -> None:
    engine, folder = link.vpcs.engines[GRAPE.name], link.folder(GRAPE)
    producer = await link.vpcs.produce(ORANGE, TOPIC, "power", RECORDS, SECONDS)
    await asyncio.sleep(EARLY_SECONDS)
    await engine.kill()
    await engine.start()
    engine.say("sh", "-c", started_at_boot(folder), folder=folder)
    assert await producer.wait(60) == 0
    await link.wait_until_copied()


def started_at_boot(folder: Path) -> str:
    """The command in the systemd unit from the prepare script."""
    [unit] = folder.glob("prepared/*.service")
    [command] = re.findall(r"^ExecStart=/bin/sh -c '(.*)'$", unit.read_text(), re.MULTILINE)
    assert isinstance(command, str)
    return command
