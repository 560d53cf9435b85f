"""``bin/appliance configs`` as a process, with both clusters."""

import json
from pathlib import Path

import pytest

from tests.support.administration import configuration, configure
from tests.support.commands import command, settings_file
from tests.support.engine import Pair

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_command_shows_what_would_be_changed_and_changes_nothing(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("configured", **{"retention.ms": "7200000"})
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        await engine.discovery().look()
    env_file = settings_file(pair, tmp_path)
    same = await command("configs", env_file)
    assert (same.returncode, same.stdout) == (0, "every copy has its source topic's settings\n"), same.stderr
    configure(pair.orange, topic, **{"retention.ms": "3600000"})
    told = await command("configs", env_file, "--topic", topic, "--json")
    assert json.loads(told.stdout)["changes"] == {copy: {"retention.ms": {"now": "7200000", "then": "3600000"}}}
    assert configuration(pair.grape, copy)["retention.ms"] == "7200000"
    refused = await command("configs", env_file, "--topic", "(")
    assert (refused.returncode, "--topic (: expected a regular expression" in refused.stderr) == (2, True)
