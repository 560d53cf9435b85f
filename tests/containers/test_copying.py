"""The appliance as a user runs it: two prepare scripts, ``docker-compose up -d`` on both VMs, and a topic is copied."""

import pytest

from tests.containers.conftest import Running
from tests.containers.link import Link
from tests.containers.programs.vpc import TOPIC
from tests.containers.sites import ORANGE

RECORDS = 5000


@pytest.mark.asyncio(loop_scope="session")
async def test_two_scripts_and_two_commands_copy_a_topic_record_by_record(link: Link) -> None:
    producer = await link.vpcs.produce(ORANGE, TOPIC, "first", RECORDS, seconds=1)
    assert await producer.wait(60) == 0
    assert await link.wait_until_copied() == RECORDS


def test_the_first_start_builds_the_image_once_for_both_containers(running: Running) -> None:
    assert running.first_up.count("Successfully tagged") == 1


@pytest.mark.asyncio(loop_scope="session")
async def test_every_container_becomes_healthy(link: Link) -> None:
    for service in link.services:
        await service.wait_until("healthy")


def test_the_appliances_commands_are_in_the_image(link: Link) -> None:
    *_, replicator = link.services
    verified = replicator.inside("appliance", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize("end", ["source", "destination"])
def test_the_doctor_finds_the_whole_path_whole(link: Link, end: str) -> None:
    side = getattr(link, end)
    said = link.vpcs.engines[side.name].compose(link.folder(side), "run", "--rm", "-T", "doctor")
    assert "passed" in said
    assert not {"failed", "not reached"} & set(said.split("  "))
