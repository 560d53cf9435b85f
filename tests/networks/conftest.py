"""Two networks for all tests of the suite, and their processes: brokers, then the tunnel, then the replicator."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from testbed import jars
from testbed.process import OwnedProcess
from testbed.rehearsal import kafka_installation
from tests.networks.clients import Kcat, in_destination_vpc
from tests.networks.clusters import COPY
from tests.networks.topology import Topology, topology
from tests.networks.tunnel import Tunnel
from tests.networks.vpcs import READY_SECONDS, Vpcs
from tests.support.requirements import missing


def pytest_configure(config: pytest.Config) -> None:
    if lacking := missing("networks"):
        pytest.exit(lacking, returncode=1)
    # Each test takes seconds, so print its name at its start.
    config.option.verbose = max(config.option.verbose, 1)


@pytest.fixture(scope="session")
def machines() -> Iterator[Topology]:
    with topology() as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def vpcs(machines: Topology, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Vpcs]:
    """Both VPCs with their brokers; Kafka is fetched before, where there is a network."""
    await kafka_installation()
    await asyncio.to_thread(jars.classpath, jars.MIRROR_MAKER)
    directory: Path = tmp_path_factory.mktemp("vpcs")
    made = Vpcs(machines, directory)
    made.open_firewall()
    async with made.running():
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tunnel(vpcs: Vpcs) -> AsyncIterator[Tunnel]:
    """Both ends of the tunnel, ready."""
    async with Tunnel(vpcs) as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def replicator(tunnel: Tunnel) -> AsyncIterator[OwnedProcess]:
    """The replicator on the destination VM, once it has begun to copy."""
    vpcs = tunnel.vpcs
    process = await vpcs.start_appliance(vpcs.machines.destination_vm, "replicate")

    async def copies() -> bool:
        return COPY in Kcat(in_destination_vpc(vpcs)).topics()

    try:
        await process.wait_until(copies, READY_SECONDS, f"make {COPY}")
        yield process
    finally:
        await process.stop()
