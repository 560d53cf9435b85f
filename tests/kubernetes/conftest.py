"""A node of Kubernetes for all tests of the suite."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from testbed.kubernetes.node import Node, node
from tests.containers.sites import GRAPE
from tests.kubernetes.brokers import Brokers, brokers
from tests.support.image import image_archive
from tests.support.requirements import missing


def pytest_configure(config: pytest.Config) -> None:
    if lacking := missing("kubernetes"):
        pytest.exit(lacking, returncode=1)
    # Each test takes seconds, so print its name at its start.
    config.option.verbose = max(config.option.verbose, 1)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster() -> AsyncIterator[Node]:
    """The node, which asks the DNS server of the destination's VPC for the names of its brokers."""
    domain = GRAPE.bootstrap.host.partition(".")[2]
    async with node(forwarded={domain: GRAPE.dns.host}) as made:
        yield made


@pytest.fixture(scope="session")
def archive() -> Path:
    """The appliance's image, built before the node takes memory and processors."""
    return image_archive()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def beside(archive: Path, cluster: Node, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Brokers]:
    """Both clusters of brokers, beside a node that has the appliance's image."""
    await asyncio.to_thread(cluster.import_image, archive)
    async with brokers(cluster, tmp_path_factory.mktemp("clusters")) as made:
        yield made
