"""Both VMs of a link, each with a release of its own."""

import asyncio
import json
import random
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.faults.run import Run
from tests.faults.supervised import Supervised
from tests.support.patience import PATIENCE
from tests.support.releases import Release

SOURCE, DESTINATION = "source", "destination"


@dataclass(slots=True)
class Vms:
    """The VMs of a run."""

    run: Run
    chance: random.Random

    async def install(self, vm: str, release: Release) -> None:
        """Replace the release of a VM as ``docker-compose up -d`` does: its processes stop, and start again."""
        network = self.run.network
        if vm == SOURCE:
            await network.tunnel_server.replace(lambda: network.link.start("source", release=release))
            return
        port = str(network.wire.listen.port)
        await network.tunnel_client.replace(
            lambda: network.link.start("destination", release=release, TUNNEL_PORT=port)
        )
        self.run.release = release
        await self.run.replicator.replace()

    async def copies_in_spite_of_kills(self) -> None:
        """Kill one process after the other, in an order by chance; each time, all that was written is copied then."""
        network = self.run.network
        parts: list[Supervised] = [self.run.replicator, network.tunnel_server, network.tunnel_client]
        for part in self.chance.sample(parts, len(parts)):
            await self.run.goes_on()
            part.kill()
        await self.run.goes_on()
        assert self.run.violations_so_far() == []
        assert self.run.defects() == []

    async def run_releases(self, source: Release, destination: Release) -> None:
        """Wait until both ends of the tunnel say that they are of these releases."""
        wanted = source.version, destination.version
        async with asyncio.timeout(PATIENCE):
            while await self._versions() != wanted:
                await asyncio.sleep(0.2)

    async def status(self) -> Any:
        """The JSON of the command ``status`` of the destination VM's release."""
        return json.loads(await self.run.command("status", "--json"))

    async def _versions(self) -> tuple[str | None, str | None]:
        address = await self.run.network.tunnel_client.process.wait_for_address("status listening", PATIENCE)
        async with aiohttp.ClientSession() as session, session.get(f"http://{address}/status") as answer:
            said = json.loads(await answer.read())
        return (said["far"] or {}).get("version"), said["near"]["version"]
