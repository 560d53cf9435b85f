"""``bin/appliance configs`` as a process, with both clusters."""

import json
from pathlib import Path

import pytest

from tests.support.administration import configuration, configure
from tests.support.commands import command, settings_file
from tests.support.engine import OtherLink, Pair

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_command_shows_what_would_be_changed_and_changes_nothing(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("configured", **{"retention.ms": "7200000"})
    copy = pair.copy_of(topic)
    async with pair.engine() as engine:
        await engine.discovery().search()
    env_file = settings_file(pair, tmp_path)
    same = await command("configs", env_file)
    assert (same.returncode, same.stdout) == (0, "every copy has its source topic's settings\n"), same.stderr
    configure(pair.orange, topic, **{"retention.ms": "3600000"})
    told = await command("configs", env_file, "--topic", topic, "--json")
    assert json.loads(told.stdout)["changes"] == {copy: {"retention.ms": {"now": "7200000", "then": "3600000"}}}
    assert configuration(pair.grape, copy)["retention.ms"] == "7200000"
    refused = await command("configs", env_file, "--topic", "(")
    assert (refused.returncode, "--topic (: no regular expression" in refused.stderr) == (2, True)


async def test_case_846_no_change_is_announced_that_nobody_makes(pair: Pair, tmp_path: Path) -> None:
    # Settings of paused copies, of another link's copies, and such as the destination refuses, were announced for ever.
    paused, refused = pair.topic("paused"), pair.topic("refused")
    env_file = settings_file(pair, tmp_path)
    async with pair.engine() as engine:
        await engine.prepare()
    assert (await command("pause", env_file, "--topic", paused, "--yes")).returncode == 0
    configure(pair.orange, paused, **{"retention.ms": "3600000"})
    told = json.loads((await command("configs", env_file, "--json")).stdout)
    assert told["changes"] == {}
    assert told["unchanged"] == {paused: "its copy is paused"}
    taken = OtherLink(pair.orange, pair.grape, pair.tag)
    configure(pair.orange, refused, **{"retention.ms": "3600000"})
    other = settings_file(taken, tmp_path, SOURCE_CLUSTER_ID=f"other-{pair.tag}")
    found = await command("configs", other, "--topic", refused, "--json")
    assert json.loads(found.stdout)["changes"] == {}
    assert json.loads(found.stdout)["unchanged"] == {refused: f"its copy belongs to {pair.naming.replicator}"}
