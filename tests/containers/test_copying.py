"""The appliance as a user runs it: two prepare scripts, ``docker-compose up -d`` on both VMs, and a topic is copied."""

import pytest

from tests.containers.link import Link, Service
from tests.containers.page import FOLDER, LOOK, commands, run
from tests.containers.programs.vpc import TOPIC
from tests.containers.sites import GRAPE, ORANGE

RECORDS = 5000
LATER = 300


@pytest.mark.asyncio(loop_scope="session")
async def test_two_scripts_and_two_commands_copy_a_topic_record_by_record(link: Link) -> None:
    producer = await link.vpcs.produce(ORANGE, TOPIC, "first", RECORDS, seconds=1)
    assert await producer.wait(60) == 0
    assert await link.wait_until_copied() == RECORDS


@pytest.mark.asyncio(loop_scope="session")
async def test_the_page_names_the_links_folder_and_its_last_step_finds_both_sides_equal(link: Link) -> None:
    clone, enter = commands(FOLDER)
    assert clone.split()[-1] == enter.split()[-1] == link.folder(GRAPE).name
    await link.wait_until_copied()
    status, verify = [run(link, GRAPE, command) for command in commands(LOOK)]
    assert f"{RECORDS:,}" in status
    assert "equal" in verify


@pytest.mark.asyncio(loop_scope="session")
async def test_every_container_becomes_healthy(link: Link) -> None:
    for service in (*link.services, link.control_center):
        await service.wait_until("healthy")


def resident_megabytes(center: Service) -> float:
    """The resident memory of the control center's process, where nobody but the measuring one is beside it."""
    code = (
        "import pathlib, re; print(*(re.search('VmRSS:\\\\s+([0-9]+)', status.read_text())[1] "
        "for status in pathlib.Path('/proc').glob('[0-9]*/status') "
        "if b'appliance.cli\\0console' in (status.parent / 'cmdline').read_bytes()))"
    )
    found = center.inside("python", "-c", code)
    (kilobytes,) = found.stdout.split()
    return int(kilobytes) * 1024 / 1e6


@pytest.mark.asyncio(loop_scope="session")
async def test_the_control_center_shows_the_link_on_the_vms_loopback_and_keeps_to_its_memory(link: Link) -> None:
    await link.control_center.wait_until("healthy")
    card = await link.wait_until_shown(state="copied")
    assert (card["link"], card["lag_records"], card["problems"]) == ("orange-grape", 0, 0)
    assert resident_megabytes(link.control_center) < 80


@pytest.mark.asyncio(loop_scope="session")
async def test_the_control_center_shows_the_lag_that_grows_while_the_replicators_container_is_stopped(
    link: Link,
) -> None:
    await link.control_center.wait_until("healthy")
    await link.wait_until_shown(lag_records=0)
    *_, replicator = link.services
    stopped = replicator.container
    replicator.engine.docker("stop", stopped)
    try:
        producer = await link.vpcs.produce(ORANGE, TOPIC, "unseen", LATER, seconds=0)
        assert await producer.wait(60) == 0
        await link.wait_until_shown(lag_records=LATER, stale=False)
    finally:
        replicator.engine.docker("start", stopped)
    await link.wait_until_copied()
    await link.wait_until_shown(lag_records=0, state="copied")


def test_the_appliances_commands_are_in_the_image(link: Link) -> None:
    *_, replicator = link.services
    verified = replicator.inside("appliance", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_command_has_a_container_of_its_own_beside_the_replicator_or_in_its_place(link: Link) -> None:
    *_, replicator = link.services
    stopped, engine = replicator.container, link.vpcs.engines[GRAPE.name]
    beside = engine.compose(link.folder(GRAPE), "run", "--rm", "-T", "doctor", "appliance", "verify")
    engine.docker("stop", stopped)
    try:
        before = engine.compose(link.folder(GRAPE), "run", "--rm", "-T", "replicator", "appliance", "verify")
    finally:
        engine.docker("start", stopped)
    assert TOPIC in beside
    assert TOPIC in before


@pytest.mark.parametrize("end", ["source", "destination"])
def test_the_doctor_finds_the_whole_path_whole(link: Link, end: str) -> None:
    side = getattr(link, end)
    said = link.vpcs.engines[side.name].compose(link.folder(side), "run", "--rm", "-T", "doctor")
    assert "passed" in said
    assert not {"failed", "not reached"} & set(said.split("  "))
