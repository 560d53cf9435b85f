"""The last release, replaced by this one and back, while producers write and processes are killed.

Each of the two VMs has the last release or this one. All changes of one VM are made, up and down, beside
either release on the other VM.
"""

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from tests.faults.network import Network
from tests.faults.run import Run
from tests.support.releases import Release
from tests.upgrade.vms import DESTINATION, SOURCE, Vms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]  # needs this repository's history

SOURCE_FIRST, DESTINATION_FIRST = (SOURCE, DESTINATION), (DESTINATION, SOURCE)


@pytest_asyncio.fixture(loop_scope="session")
async def vms(both_networks: Network, older: Release, chance: random.Random, tmp_path: Path) -> AsyncIterator[Vms]:
    """Both VMs with the last release, which has made the link and copies."""
    link, port = both_networks.link, str(both_networks.wire.listen.port)
    await both_networks.tunnel_server.replace(lambda: link.start("source", release=older))
    await both_networks.tunnel_client.replace(lambda: link.start("destination", release=older, TUNNEL_PORT=port))
    async with Run(both_networks, chance.randrange(2**32), tmp_path, older).going() as run:
        yield Vms(run, chance)


@pytest.mark.parametrize(
    ("there", "back"),
    [(SOURCE_FIRST, SOURCE_FIRST), (DESTINATION_FIRST, DESTINATION_FIRST)],
    ids=["source first", "destination first"],
)
async def test_nothing_is_lost_when_one_vm_after_the_other_gets_this_release_and_then_the_last_one_again(
    vms: Vms, older: Release, newer: Release, there: Sequence[str], back: Sequence[str]
) -> None:
    has = {SOURCE: older, DESTINATION: older}
    for order, release in ((there, newer), (back, older)):
        for vm in order:
            await vms.install(vm, release)
            has[vm] = release
            await vms.run_releases(has[SOURCE], has[DESTINATION])
            await vms.copies_in_spite_of_kills()
    assert await vms.run.finish() == []
    assert vms.run.defects() == []


async def test_a_topic_that_this_release_has_paused_stays_paused_in_the_last_one_which_resumes_it(
    vms: Vms, older: Release, newer: Release
) -> None:
    topic, _ = vms.run.fragile
    await vms.install(DESTINATION, newer)
    await vms.run.command("pause", "--topic", topic, "--yes")
    await vms.run.goes_on(besides=[vms.run.fragile])
    await vms.install(DESTINATION, older)
    await vms.run.goes_on(besides=[vms.run.fragile])
    (shown,) = (each for each in (await vms.status())["topics"] if each["topic"] == topic)
    assert shown["state"] == "paused"
    await vms.run.command("resume", "--topic", topic)
    assert await vms.run.finish() == []
    assert vms.run.defects() == []
