"""kafka-reo's four variables, and nothing else, run the replicator."""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from demo.setenv import process_environment
from testbed.process import OwnedProcess
from tests.support.administration import topics
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import read_rows, until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARTITIONS = 3


def four(pair: Pair, topic: str) -> dict[str, str]:
    return {
        "KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS": pair.orange.home_bootstrap,
        "KAFKA_CLUSTERS_SOURCE_TOPIC": topic,
        "KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS": pair.grape.home_bootstrap,
        "KAFKA_CLUSTERS_DESTINATION_TOPIC": f"destination-{topic}",
    }


async def start(name: str, variables: Mapping[str, str], directory: Path, *options: str) -> OwnedProcess:
    """A command in a directory without settings, with these in its environment."""
    line = ["env", f"--chdir={directory}", sys.executable, "-m", "appliance.cli", name, *options]
    environment = {**process_environment(os.environ, directory), **variables}
    return await OwnedProcess.start(name, line, directory / f"{name}.log", environment)


async def until_copied(pair: Pair, topic: str, count: int) -> None:
    """Wait for this many copies in each partition, and compare them with their originals."""
    for partition in range(PARTITIONS):
        copies = await until_rows(pair.grape, f"destination-{topic}", count, partition)
        assert copies == read_rows(pair.orange, topic, partition)


@pytest.mark.release  # held by tests/containers/test_direct.py, and a kill by tests/spark/test_replicator.py
async def test_four_variables_copy_one_topic_exactly_once_and_go_on_after_a_kill(pair: Pair, tmp_path: Path) -> None:
    topic, other = pair.topic("source", PARTITIONS), pair.topic("source-other")
    produce(pair.producer(), other, 10)
    for round_, ended_by in enumerate((signal.SIGKILL, signal.SIGTERM), start=1):
        for partition in range(PARTITIONS):
            produce(pair.producer(), topic, 500, partition)
        replicator = await start("replicate", four(pair, topic), tmp_path)
        try:
            await until_copied(pair, topic, 500 * round_)
            psutil.Process(replicator.pid).send_signal(ended_by)
            assert await replicator.wait(PATIENCE) == (0 if ended_by is signal.SIGTERM else -signal.SIGKILL)
        finally:
            await replicator.kill()
    made = {name for name in topics(pair.grape) if pair.tag in name}
    link, *_ = {name.rpartition(".")[0] for name in made if name.startswith("replicator-")}
    assert made == {f"destination-{topic}", f"{link}.positions", f"{link}.offsets"}
