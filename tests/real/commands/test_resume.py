"""The operator's command on real brokers: it does what it prints, and no more."""

import asyncio
import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from appliance.commands.positions_adoption import adopt_positions
from appliance.commands.resumption import Choice, resume
from appliance.errors import LinkRefused, SettingsError
from appliance.program import topic_option
from tests.support.administration import configuration, configure, grow, topics
from tests.support.commands import command, settings_file
from tests.support.engine import OtherLink, Pair
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


def unheard(_: str) -> None:
    """Ignore a line of output."""


async def test_case_17_resume_from_latest_leaves_partitions_alone_that_have_not_stopped(pair: Pair) -> None:
    # Before, a new partition that no lane had read yet began at its end, without an entry in the gap ledger.
    topic = pair.topic("added", 1)
    pair.make_copy(topic, 1)
    produce(Producer(pair.grape.client_configuration()), pair.copy_of(topic), 5)
    pair.write(topic, 10)
    async with pair.engine() as engine:
        await engine.until_all_stopped(topic, 1)
        grow(pair.orange, topic, 2)
        grow(pair.grape, pair.copy_of(topic), 2)
        produce(pair.producer(), topic, 100, 1)
        assert await resume(pair.settings(), Choice(topic, None, "latest"), unheard) == 1
        await engine.assign()
        await engine.copy_all()
    rows = await asyncio.to_thread(pair.rows, pair.grape, pair.copy_of(topic), 2)
    assert [len(each) for each in rows] == [5, 100]


async def test_an_offset_that_the_source_does_not_hold_is_refused(pair: Pair) -> None:
    topic = pair.filled("held", 10)
    async with pair.engine() as engine:
        await engine.copy_all()
        with pytest.raises(SettingsError, match="holds offsets 0 to 10: expected one of these"):
            await resume(pair.settings(), Choice(topic, 0, "11"), unheard)
        assert (await engine.positions())[topic, 0].next_offset == 10


async def test_a_dry_run_makes_and_changes_nothing(pair: Pair) -> None:
    topic, positions = pair.topic("dry"), pair.naming.positions_topic
    assert await adopt_positions(pair.settings(), unheard, only_plan=True) == 0
    assert positions not in topics(pair.grape)
    pair.write(topic, 1)
    await pair.copy_all()
    configure(pair.grape, positions, **{"delete.retention.ms": None})
    before = configuration(pair.grape, positions)
    assert await resume(pair.settings(), Choice(topic, 0, "earliest"), unheard, only_plan=True) == 1
    assert configuration(pair.grape, positions) == before


async def test_a_take_over_that_is_refused_takes_nothing(pair: Pair) -> None:
    topic = pair.filled("kept", 10)
    other = OtherLink(pair.orange, pair.grape, pair.tag)
    async with pair.engine() as engine:
        await engine.copy_all()
        with pytest.raises(LinkRefused, match="no replicator of this link has ever run"):
            await resume(other.settings(), Choice(topic, None, "earliest", take_over=True), unheard)
        assert [replica.source_topic for replica in (await engine.discovery().search()).replicas] == [topic]


async def test_case_981_a_literal_name_resumes_no_topic_that_it_would_match_as_a_regex(
    pair: Pair, tmp_path: Path
) -> None:
    # A console's restart of a.b, with `resume --topic=a.b`, resumed the paused a-b.
    dotted, dashed = pair.topic("a.b"), pair.topic("a-b")
    async with pair.engine() as engine:
        await engine.prepare()
    env_file = settings_file(pair, tmp_path)
    paused = await command("pause", env_file, "--topic", dotted, "--yes")
    assert sorted(paused.stdout.splitlines()) == [f"{dashed}: paused", f"{dotted}: paused"], paused.stderr
    for name in (dotted, dashed):
        resumed = await command("resume", env_file, topic_option(name))
        assert (resumed.returncode, resumed.stdout) == (0, f"{name}: active\n"), resumed.stderr
    only = await command("pause", env_file, topic_option(dotted), "--yes")
    assert only.stdout == f"{dotted}: paused\n"
    told = json.loads((await command("resume", env_file, topic_option(dotted), "--json")).stdout)
    assert (told["resumed"], told["changes"]) == (1, [f"{dotted}: active"])
