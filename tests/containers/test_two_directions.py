"""A second link on the same pair of VMs: back, as active/active, or beside the first."""

import asyncio
from dataclasses import replace

import pytest

from appliance.link.model.naming import REGISTRY
from tests.containers.clusters import SECONDS
from tests.containers.image import adapt
from tests.containers.link import COPY, Link
from tests.containers.programs.vpc import TOPIC
from tests.containers.sites import GRAPE, ORANGE

RECORDS = 1000


@pytest.mark.release  # two links on a VM: tests/start/test_prepare.py; circles: tests/real/engine
@pytest.mark.asyncio(loop_scope="session")
async def test_both_directions_run_side_by_side_and_no_record_travels_in_circles(link: Link) -> None:
    back = Link(link.vpcs, GRAPE, ORANGE)
    back.clone()
    adapt(back)
    back.prepare()
    for side in (GRAPE, ORANGE):
        # The same release, so the existing link's image.
        link.vpcs.engines[side.name].docker("tag", link.image, back.image)
        back.up(side)

    for number in range(2):
        for side in (ORANGE, GRAPE):
            producer = await link.vpcs.produce(side, TOPIC, f"circle-{number}", RECORDS, seconds=0)
            assert await producer.wait(60) == 0
        # A copy of a copy from the first direction would have been made by the end of the second.
        await link.wait_until_copied()
        assert await back.wait_until_copied() == RECORDS * (number + 1)

    topics = {side.name: link.vpcs.topics(side) for side in (ORANGE, GRAPE)}
    assert topics == {
        "orange": {TOPIC, COPY, REGISTRY, "replicator-grape.positions", "replicator-grape.offsets"},
        "grape": {TOPIC, COPY, REGISTRY, "replicator-orange.positions", "replicator-orange.offsets"},
    }
    for service in (*link.services, *back.services):
        await service.wait_until("healthy")


@pytest.mark.release
@pytest.mark.asyncio(loop_scope="session")
async def test_the_control_centers_of_two_links_to_one_vm_show_each_other(link: Link) -> None:
    """The other link's source VM is not set up: its gateway and its control center run, as when a link is new."""
    lemon = replace(ORANGE, plan=replace(ORANGE.plan, name="lemon"))
    other = Link(link.vpcs, lemon, GRAPE)
    link.vpcs.ca_file(lemon).parent.symlink_to(link.vpcs.ca_file(ORANGE).parent)
    other.clone()
    adapt(other)
    assert other.control_center_page in other.prepare_on(GRAPE)
    engine = link.vpcs.engines[GRAPE.name]
    engine.docker("tag", link.image, other.image)
    engine.compose(other.folder(GRAPE), "up", "-d", "control-center")
    try:
        for shown in (link, other):
            await shown.control_center.wait_until("healthy")
        for shown, neighbour in ((link, other), (other, link)):
            async with asyncio.timeout(SECONDS):
                while f'<a href="{neighbour.control_center_page}">' not in shown.page():
                    await asyncio.sleep(0.5)
    finally:
        other.down(GRAPE)
