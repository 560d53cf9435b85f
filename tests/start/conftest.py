"""A link's folder for each test, and one Python environment of the scripts for all."""

import socket
from pathlib import Path

import pytest

from tests.start.folder import ADDRESS, Link


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache with the scripts' Python environment, which the first script makes."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def port() -> str:
    """A free port of ADDRESS."""
    with socket.create_server((ADDRESS, 0)) as listening:
        number = listening.getsockname()[1]
    return str(number)


@pytest.fixture
def link(tmp_path: Path, cache: Path, port: str) -> Link:
    return Link(
        tmp_path / "kafka-cloud-replicator-orange-grape", cache, {"TUNNEL_LISTEN": ADDRESS, "TUNNEL_PORT": port}
    )
