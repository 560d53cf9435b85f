"""Commands that fail over and back, killed at a step by SIGKILL: the same command again ends in the same state."""

import asyncio
import itertools
import os
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from confluent_kafka import Producer

from tests.faults.kafka_proxy import Api, Moment
from tests.faults.killed_commands import MOMENTS, Behind, Commands, Outcome, clusters_behind_proxies
from tests.support.engine import Pair
from tests.support.groups import commit, produce_numbered
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOME = 1
"""Steps that are tried for each submission."""
_numbers = itertools.count()

Step = tuple[int, Moment]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def behind(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Behind]:
    async with clusters_behind_proxies(tmp_path_factory.mktemp("behind")) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def commands(behind: Behind, tmp_path: Path) -> AsyncIterator[Commands]:
    pair = Pair(behind.source, behind.destination, f"{os.getpid()}-{next(_numbers)}")
    async with pair.engine() as engine:
        yield Commands(behind, pair, engine, tmp_path)


@pytest.fixture(params=["some", pytest.param("all", marks=pytest.mark.release)])
def every(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "all")


def chosen(total: int, every: bool, chance: random.Random) -> Sequence[Step]:
    """The steps at which a command is killed, before or after its request is carried out: chance has it."""
    steps = range(1, total + 1)
    return [(step, chance.choice(MOMENTS)) for step in (steps if every else sorted(chance.sample(steps, SOME)))]


def only(topic: str) -> tuple[str, ...]:
    return "--topic", topic, "--yes"


@pytest.mark.parametrize("name", ["failover", pytest.param("promote", marks=pytest.mark.release)])
async def test_a_promotion_that_is_killed_at_a_step_is_finished_by_the_same_command(
    commands: Commands, name: str, every: bool, chance: random.Random
) -> None:
    (undisturbed,) = await commands.topics(1)
    steps = chosen(await commands.steps(name, *only(undisturbed)), every, chance)
    expected = await commands.outcome(undisturbed)
    assert expected.unread == ("3 of 0", "4 of 0")
    for (step, moment), topic in zip(steps, await commands.topics(len(steps)), strict=True):
        await commands.kill(step, moment, name, *only(topic))
        said = await commands.said(name, *only(topic))
        assert await commands.outcome(topic) == expected, f"killed at step {step}: {moment.value}"
        assert await commands.violations(topic, said) == [], f"killed at step {step}: {moment.value}: {said}"


async def promoted(commands: Commands, count: int) -> list[str]:
    """Promoted topics with a record that was lost, and some that the copies took."""
    made = await commands.topics(count)
    for topic in made:
        produce_numbered(commands.pair.producer(), topic, 1, first=5)
    await commands.run("failover", "--topic", "|".join(made), "--yes")
    there = Producer(commands.pair.grape.client_configuration())
    for topic in made:
        produce_numbered(there, commands.pair.naming.destination(topic), 4, first=100)
    return made


async def failed_back(commands: Commands) -> tuple[str, int, Outcome]:
    """A topic that was failed back undisturbed, in how many steps, and as it is then."""
    (first,) = await promoted(commands, 1)  # makes the topic of the positions
    await commands.run("failback", *only(first))
    (topic,) = await promoted(commands, 1)
    steps = await commands.steps("failback", *only(topic))
    outcome = await commands.outcome(topic)
    assert outcome.source == (*outcome.copy[:5], "5 of 0", *outcome.copy[5:])
    return topic, steps, outcome


async def assert_new_records_are_copied(commands: Commands, topics: Sequence[str], expected: Outcome) -> None:
    for topic in topics:
        produce_numbered(commands.pair.producer(), topic, 2, first=200)
    await commands.copy()
    assert {(await commands.outcome(topic)).copy for topic in topics} == {(*expected.copy, "200 of 0", "201 of 0")}


async def test_a_failback_that_is_killed_at_a_step_is_finished_by_the_same_command(
    commands: Commands, every: bool, chance: random.Random
) -> None:
    undisturbed, total, expected = await failed_back(commands)
    steps = chosen(total, every, chance)
    topics = await promoted(commands, len(steps))
    for (step, moment), topic in zip(steps, topics, strict=True):
        await commands.kill(step, moment, "failback", *only(topic))
        said = await commands.said("failback", *only(topic))
        assert await commands.outcome(topic) == expected, f"killed at step {step}: {moment.value}"
        assert await commands.violations(topic, said) == [], f"killed at step {step}: {moment.value}: {said}"
    await assert_new_records_are_copied(commands, [undisturbed, *topics], expected)


@pytest.fixture(params=[1, pytest.param(8, marks=pytest.mark.release)])
def times(request: pytest.FixtureRequest) -> int:
    """The number of steps at which another operator comes."""
    return int(request.param)


@pytest.mark.release  # held by tests/real/commands/test_commands_at_odds.py and test_states.py
@pytest.mark.parametrize("other", ["failover", "promote", "pause"])
async def test_a_failover_during_which_another_operator_gives_a_command_ends_well_or_says_so(
    commands: Commands, other: str, times: int, chance: random.Random
) -> None:
    (undisturbed,) = await commands.topics(1)
    total = await commands.steps("failover", *only(undisturbed))
    expected = await commands.outcome(undisturbed)
    for topic in await commands.topics(times):
        async with commands.stopped(step := chance.randint(1, total), "failover", *only(topic)) as first:
            second = await commands.start(other, *only(topic))
            await commands.code(second)
        await commands.code(first)
        assert len(set((await commands.outcome(topic)).states)) == 1, f"at step {step}"
        await commands.run("failover", *only(topic))
        assert await commands.outcome(topic) == expected, f"at step {step}"


@pytest.mark.release  # held by tests/real/commands/test_commands_at_odds.py
@pytest.mark.parametrize("other", ["failback", "failover"])
async def test_a_failback_during_which_another_operator_gives_a_command_ends_well_or_says_so(
    commands: Commands, other: str, times: int, chance: random.Random
) -> None:
    _, total, expected = await failed_back(commands)
    topics = await promoted(commands, times)
    for topic in topics:
        async with commands.stopped(step := chance.randint(1, total), "failback", *only(topic)) as first:
            second = await commands.start(other, *only(topic))
            await commands.code(second)
        await commands.code(first)
        await commands.run("failback", *only(topic))
        assert await commands.outcome(topic) == expected, f"at step {step}"
    await assert_new_records_are_copied(commands, topics, expected)


async def test_a_failover_during_which_the_source_comes_back_tells_what_it_knows(
    commands: Commands, times: int, chance: random.Random
) -> None:
    source, _ = commands.behind.proxies
    (undisturbed,) = await commands.topics(1)
    total = await commands.steps("failover", *only(undisturbed))
    synced = await commands.outcome(undisturbed)
    topics = await commands.topics(times)
    for topic in topics:
        produce_numbered(commands.pair.producer(), topic, 1, first=5)
        source.cut()
        step = chance.randint(1, total)
        commands.behind.trap.strike_at(step, Moment.SILENT, source.heal, passes=True)
        said = await commands.run("failover", *only(topic))
        source.heal()
        found = await commands.outcome(topic)
        assert found.states == synced.states
        assert found.copy == synced.copy
        assert found.unread == (found.copy if "groups: unknown" in said else synced.unread), f"at step {step}"
        again = await commands.run("failover", *only(topic))
        assert f"{topic}-0: copied up to offset 5, the source ends at 6: 1 behind" in again


@pytest.mark.release  # held by tests/real/commands/test_group_sync.py
async def test_a_sync_of_groups_that_is_killed_at_a_commit_is_finished_by_the_next_replicator(
    commands: Commands, every: bool, chance: random.Random
) -> None:
    groups = [f"{commands.group}-{number}" for number in range(3)]
    (topic,) = await commands.topics(1)
    copy = commands.pair.naming.destination(topic)
    steps = [(step, chance.choice(MOMENTS)) for step in (range(1, 4) if every else [chance.randint(1, 3)])]
    commands.behind.trap.apis = {Api.OFFSET_COMMIT}
    for offset, (step, moment) in enumerate(steps, 1):
        for group in groups:
            commit(commands.pair.orange, group, {(topic, 0): offset})
        await commands.kill(step, moment, "replicate")
        replicator = await commands.start("replicate")
        try:
            async with asyncio.timeout(PATIENCE):
                while {(await commands.unread(group, copy)) for group in groups} != {5 - offset}:
                    await asyncio.sleep(0.2)
        finally:
            await replicator.stop()
