"""Replicators in both directions between topics of one name, with their Spark, while their processes are killed."""

import asyncio
import contextlib
import json
import os
import random
import re
import shlex
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from testbed.cluster import Cluster
from testbed.process import OwnedProcess
from tests.conftest import plain
from tests.support.commands import command, command_line, settings_file
from tests.support.engine import Pair
from tests.support.mesh import Mesh
from tests.support.patience import PATIENCE
from tests.support.processes import family, runs

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = Path(__file__).parents[2] / "docs" / "run" / "active-active.md"

_SETTINGS = {
    "REPLICA_TOPICS_NAMING": "identical",
    "CONSOLE_LISTEN": "127.0.0.1:0",
    "DISCOVERY_SECONDS": "1",
    "TASKS": "1",
    "LANES": "2",
    "TRANSACTION_TIMEOUT_SECONDS": "5",
}


class Direction:
    """The replicator of one direction, which is started again after each kill."""

    def __init__(self, link: Pair, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True)
        self._env_file = settings_file(link, directory, **_SETTINGS, SOURCE_CLUSTER_ID=link.link)
        self._number = 0
        self._process: OwnedProcess | None = None

    async def start(self) -> None:
        self._number += 1
        line, log = command_line("replicate", self._env_file), self._directory / f"{self._number}.log"
        own = {**os.environ, "TMPDIR": str(self._directory)}
        self._process = await OwnedProcess.start(f"replicate-{self._number}", line, log, own)
        await self._process.wait_for_line("topics to copy", PATIENCE)

    async def kill(self, chance: random.Random) -> None:
        """Kill all of it, or only the process in which its lanes run."""
        assert self._process is not None
        if chance.random() < 0.5:
            for process in family(self._process.pid):
                if runs(process, "appliance.driver.daemon"):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.send_signal(signal.SIGKILL)
            return
        await self._process.kill()
        await self.start()

    async def enter(self, line: str) -> str:
        """Enter a command of the page, which ends well; what it prints."""
        name, *arguments = shlex.split(line)
        run = await command(name, self._env_file, *arguments)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    async def until_audited(self) -> None:
        """Wait until all is copied, and what links wrote at the source is what was dropped there."""
        async with asyncio.timeout(PATIENCE):
            while True:
                status = json.loads((await command("status", self._env_file, "--json")).stdout)
                partitions = [each for topic in status["topics"] for each in topic["partitions"]]
                counts = [(each["dropped"], each["written_by_links"]) for each in partitions]
                if status["state"] == "copied" and all(dropped == written for dropped, written in counts):
                    return

    async def end(self) -> None:
        if self._process is not None:
            await self._process.kill()


@contextlib.asynccontextmanager
async def directions(mesh: Mesh, directory: Path) -> AsyncIterator[list[Direction]]:
    """The replicators of all links of a mesh."""
    found = [Direction(link, directory / link.link) for link in mesh.links]
    try:
        await asyncio.gather(*(each.start() for each in found))
        yield found
    finally:
        await asyncio.gather(*(each.end() for each in found))


@pytest.mark.release  # held by tests/real/active_active/test_identical_names.py
async def test_each_record_is_on_both_sides_once_whatever_process_was_killed(
    pair: Pair, tmp_path: Path, chance: random.Random
) -> None:
    mesh = Mesh({"orange": pair.orange, "grape": pair.grape}, pair.tag)
    topic = mesh.topic("orders", 2)
    async with directions(mesh, tmp_path) as running:
        for turn in range(6):
            for name in mesh.clusters:
                mesh.produce(name, topic, 200, turn % 2)
                mesh.produce(name, topic, 50, 0, abort=False)
                mesh.produce(name, topic, 20, 1, abort=True)
            await asyncio.sleep(chance.uniform(0, 0.5))
            await chance.choice(running).kill(chance)
        await until_all(mesh, topic)
        for each in [*running, *running]:
            await each.until_audited()
    mesh.require_all(topic, 2)


async def until_all(mesh: Mesh, topic: str) -> None:
    """Wait until every cluster has as many records as were produced, or more."""
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(mesh.is_complete, topic, 2):
            await asyncio.sleep(0.5)


@pytest_asyncio.fixture(loop_scope="session")
async def own(tmp_path: Path, pair: Pair) -> AsyncIterator[Mesh]:
    """Two clusters of the test's own: one of them is stopped."""
    plans = {name: plain(name, address) for name, address in (("left", "127.0.3.4"), ("right", "127.0.3.5"))}
    async with contextlib.AsyncExitStack() as stack:
        clusters = {name: await stack.enter_async_context(Cluster(plan, tmp_path)) for name, plan in plans.items()}
        yield Mesh(clusters, pair.tag)


@pytest.mark.release
async def test_the_drill_of_two_active_clusters_is_carried_out_word_for_word(own: Mesh, tmp_path: Path) -> None:
    look, prove = re.findall(r"^```\nbin/appliance (.*)\n```$", PAGE.read_text(), re.MULTILINE)
    topic = own.topic("orders", 2)
    for name in own.clusters:
        own.produce(name, topic, 100)
    async with directions(own, tmp_path / "links") as running:
        for each in running:
            await each.until_audited()
            assert "copied" in await each.enter(look)
        own.produce("left", topic, 100, 1)
        await own.clusters["left"].kill(0)
        own.produce("right", topic, 100, 1)
        own.produce("right", topic, 100)
        await own.clusters["left"].restart(0)
        for each in running:
            await each.enter(prove)
    own.require_all(topic, 2)
