"""``bin/appliance verify`` as a process: its output and its exit code."""

import json
from pathlib import Path

import pytest

from tests.support.commands import command, settings_file
from tests.support.engine import Pair
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_command_says_all_of_it_by_its_exit_code_as_json_and_as_a_table(pair: Pair, tmp_path: Path) -> None:
    orders, payments = pair.topic("orders", 2), pair.topic("payments")
    for topic, partition in ((orders, 0), (orders, 1), (payments, 0)):
        produce(pair.producer(), topic, 200, partition)
    async with pair.engine() as engine:
        await engine.copy_all()
    env_file = settings_file(pair, tmp_path)

    equal = await command("verify", env_file, "--json")
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
    behind = await command("verify", env_file, "--wait", "0")
    assert (behind.returncode, behind.stderr) == (1, "")
    (line,) = (line for line in behind.stdout.splitlines() if payments in line)
    assert "behind by 7 records" in line
    assert "0 to 200" in line

    only = await command("verify", env_file, "--topic", orders, "--json")
    assert only.returncode == 0
    assert {partition["topic"] for partition in json.loads(only.stdout)["partitions"]} == {orders}

    refused = await command("verify", env_file, "--topic", "nowhere")
    assert refused.returncode == 2
    assert refused.stderr.startswith("appliance verify: --topic nowhere: no topic of the source that is copied: see ")


async def test_a_regex_that_matches_nothing_proves_nothing(pair: Pair, tmp_path: Path) -> None:
    refused = await command("verify", settings_file(pair, tmp_path, REPLICA_TOPICS_SOURCE_REGEX="nowhere.*"))
    assert refused.returncode == 2
    assert refused.stderr == (
        "appliance verify: REPLICA_TOPICS_SOURCE_REGEX=nowhere.* matches no topic of the source\n"
    )
