"""``bin/appliance import`` as a process, and the links that it makes, with both clusters."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import command
from tests.support.engine import Pair
from tests.support.imports import MIRROR_MAKER
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHECKOUT = Path(__file__).parents[3]
FOLDERS = ("kafka-cloud-replicator-source-target", "kafka-cloud-replicator-target-source")


async def run(directory: Path, module: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A module's process in ``directory``, when it has ended."""
    line = [sys.executable, "-m", module, *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{CHECKOUT}:{os.environ.get('PYTHONPATH', '')}"}
    options = {"capture_output": True, "text": True, "timeout": PATIENCE, "env": environment, "cwd": directory}
    return await asyncio.to_thread(subprocess.run, line, check=False, **options)


async def imported(directory: Path, text: str) -> "subprocess.CompletedProcess[str]":
    (directory / "mm2.properties").write_text(text)
    return await run(directory, "appliance.cli", "import", "mm2", "mm2.properties", "--out", "links")


async def test_both_directions_of_mirror_makers_settings_reach_the_clusters_as_they_are(
    pair: Pair, tmp_path: Path
) -> None:
    topic = pair.topic("imported")
    text = MIRROR_MAKER.replace("topics = .*", f"topics = {topic}")
    for address, cluster in (("127.0.31.1:9092", pair.orange), ("127.0.32.1:9092", pair.grape)):
        text = text.replace(address, ",".join(map(str, cluster.home_targets)))
    made = await imported(tmp_path, text)
    assert made.returncode == 0, made.stderr
    for folder in FOLDERS:
        status = await command("configs", tmp_path / "links" / folder / "setenv.sh")
        assert status.returncode == 0, status.stderr


@pytest.mark.parametrize("machine", ["source", "destination"])
async def test_the_prepare_scripts_accept_both_directions_when_they_are_filled_in(machine: str, tmp_path: Path) -> None:
    text = MIRROR_MAKER.replace("127.0.31.1", "b0.source.example").replace("127.0.32.1", "b0.target.example")
    made = await imported(tmp_path, text)
    assert made.returncode == 0, made.stderr
    assert "SOURCE_SIDE_TUNNEL_IP: missing" in made.stdout
    for folder in FOLDERS:
        path = tmp_path / "links" / folder / "setenv.sh"
        refused = await run(path.parent, "deploy.prepare", machine, "--check")
        assert (refused.returncode, "SOURCE_SIDE_TUNNEL_IP: missing" in refused.stderr) == (2, True)
        filled_in = path.read_text().replace("SOURCE_SIDE_TUNNEL_IP=''", "SOURCE_SIDE_TUNNEL_IP='203.0.113.7'")
        path.write_text(filled_in.replace("DESTINATION_SIDE_TUNNEL_IP=''", "DESTINATION_SIDE_TUNNEL_IP='198.51.100.9'"))
        accepted = await run(path.parent, "deploy.prepare", machine, "--check")
        # With --check, 1 says that files would be written.
        assert (accepted.returncode, accepted.stderr) == (1, "")
        assert "docker-compose.yml" in accepted.stdout
