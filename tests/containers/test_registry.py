"""A VM without internet runs an image of its own registry: IMAGE in setenv.sh."""

import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testbed.process import OwnedProcess
from tests.containers.link import Link
from tests.containers.sites import ORANGE

REGISTRY = "127.0.0.1:5000"
SECONDS = 30.0


@contextlib.asynccontextmanager
async def registry(link: Link, directory: Path) -> AsyncIterator[None]:
    """A registry on the loopback of the source VM, from which Docker also pulls without TLS."""
    settings = directory / "registry.yml"
    settings.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {directory}}}}}\nhttp: {{addr: '{REGISTRY}'}}\n"
    )
    command = link.vpcs.machines[ORANGE.name].vm.command("docker-registry", "serve", str(settings))
    process = await OwnedProcess.start("registry", command, directory / "registry.log", link.vpcs.environment)
    try:
        await process.wait_for_line("listening on", SECONDS)
        yield
    finally:
        await process.stop()


@pytest.mark.release  # what is rendered: tests/start/test_checkout.py; an image that is there: test_vms_of_an_order.py
@pytest.mark.asyncio(loop_scope="session")
async def test_an_image_is_pulled_by_its_digest_and_runs_and_without_it_the_link_has_its_own_again(
    link: Link, tmp_path: Path
) -> None:
    engine, folder, (tunnel, *_) = link.vpcs.engines[ORANGE.name], link.folder(ORANGE), link.services
    settings, pushed = (folder / "setenv.sh").read_text(), f"{REGISTRY}/kafka/replicator:1"
    async with registry(link, tmp_path):
        engine.docker("tag", link.image, pushed)
        found = re.search(r"digest: (sha256:[0-9a-f]{64})", engine.docker("push", pushed))
        assert found
        engine.docker("rmi", pushed)
        image = f"{REGISTRY}/kafka/replicator@{found[1]}"
        (folder / "setenv.sh").write_text(f"{settings}export IMAGE='{image}'\n")
        link.prepare_on(ORANGE)
        assert "Pulling tunnel" in link.up(ORANGE)
    assert tunnel.inspected()["Config"]["Image"] == image
    await tunnel.wait_until("healthy")

    (folder / "setenv.sh").write_text(settings)
    link.prepare_on(ORANGE)
    link.up(ORANGE)
    assert tunnel.inspected()["Config"]["Image"] == link.image
    await link.wait_until_copied()
