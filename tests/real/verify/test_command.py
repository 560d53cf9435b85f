"""``bin/appliance verify`` as a process: what it prints, and what its exit code says."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.settings import write_settings

pytestmark = pytest.mark.asyncio(loop_scope="session")


def settings(pair: Pair, directory: Path, **changed: str) -> Path:
    """A setenv.sh for both clusters, which are reached directly."""
    variables: Mapping[str, str] = {
        "SOURCE_CLUSTER_ID": pair.tag,
        "SOURCE_BROKER_SERVERS": ",".join(map(str, pair.orange.home_targets)),
        "SOURCE_SECURITY_PROTOCOL": "PLAINTEXT",
        "SOURCE_ROUTE": "direct",
        "DESTINATION_CLUSTER_ID": "grape",
        "DESTINATION_BROKER_SERVERS": ",".join(map(str, pair.grape.home_targets)),
        "DESTINATION_SECURITY_PROTOCOL": "PLAINTEXT",
        "REPLICA_TOPICS_SOURCE_REGEX": pair.naming.included.pattern,
        "REPLICA_TOPICS_DEST_SUFFIX": "copy",
    } | changed
    return write_settings(directory / "setenv.sh", variables)


async def command(env_file: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "appliance.cli", "verify", "--env-file", str(env_file), *arguments]
    return await asyncio.to_thread(
        subprocess.run, line, capture_output=True, text=True, timeout=PATIENCE, env=dict(os.environ), check=False
    )


async def test_the_command_says_all_of_it_by_its_exit_code_as_json_and_as_a_table(pair: Pair, tmp_path: Path) -> None:
    orders, payments = pair.topic("orders", 2), pair.topic("payments")
    for topic, partition in ((orders, 0), (orders, 1), (payments, 0)):
        produce(pair.producer(), topic, 200, partition)
    async with pair.engine() as engine:
        await engine.copy_all()
    env_file = settings(pair, tmp_path)

    equal = await command(env_file, "--json")
    assert (equal.returncode, equal.stderr) == (0, "")
    told = json.loads(equal.stdout)
    assert (told["destination"], told["equal"], told["records"]) == ("grape", True, 600)
    assert [(p["topic"], p["partition"], p["state"]) for p in told["partitions"]] == [
        (orders, 0, "equal"),
        (orders, 1, "equal"),
        (payments, 0, "equal"),
    ]
    assert all(len(partition["digest"]) == 64 for partition in told["partitions"])

    produce(pair.producer(), payments, 7)
    behind = await command(env_file, "--wait", "0")
    assert (behind.returncode, behind.stderr) == (1, "")
    (line,) = (line for line in behind.stdout.splitlines() if payments in line)
    assert "behind by 7 records" in line
    assert "0 to 200" in line

    only = await command(env_file, "--topic", orders, "--json")
    assert only.returncode == 0
    assert {partition["topic"] for partition in json.loads(only.stdout)["partitions"]} == {orders}

    refused = await command(env_file, "--topic", "nowhere")
    assert refused.returncode == 2
    assert refused.stderr == "appliance verify: --topic nowhere: the source cluster has no such topic\n"


async def test_a_regex_that_matches_nothing_proves_nothing(pair: Pair, tmp_path: Path) -> None:
    refused = await command(settings(pair, tmp_path, REPLICA_TOPICS_SOURCE_REGEX="nowhere.*"))
    assert refused.returncode == 2
    assert refused.stderr == (
        "appliance verify: REPLICA_TOPICS_SOURCE_REGEX=nowhere.* matches no topic of the source\n"
    )
