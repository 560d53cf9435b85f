"""Stops on real brokers: the commands that the status prints end them."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.administration import configure
from tests.support.commands import command, settings_file
from tests.support.engine import Pair
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


def send(producer: Producer, topic: str, *keys: bytes | None) -> None:
    """Write a record of each key, in a batch of its own."""
    for key in keys:
        producer.produce(topic, b"value", key, partition=0)
        assert producer.flush(PATIENCE) == 0


async def status(env_file: Path, topic: str) -> Any:
    """A topic as JSON."""
    told = await command("status", env_file, "--topic", topic, "--json")
    return json.loads(told.stdout)["topics"][0]


async def typed(env_file: Path, printed: str) -> str:
    """Run a command as it is printed; its output."""
    _, name, *words = shlex.split(printed)
    done = await command(name, env_file, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("number", [0, 1], ids=["mended", "passed"])
async def test_case_851_records_without_keys_that_a_compacted_copy_refuses_stop_with_a_remedy(
    pair: Pair, tmp_path: Path, number: int
) -> None:
    # "INVALID_RECORD", and not a word of what to do.
    topic, env_file = pair.topic("keyless"), settings_file(pair, tmp_path)
    copy = pair.copy_of(topic)
    pair.make_copy(topic, 1, **{"cleanup.policy": "compact"})
    send(pair.producer(), topic, b"a", b"b")
    async with pair.engine() as engine:
        await engine.copy_all()
        send(pair.producer(), topic, None)
        await engine.until_stopped(topic)
    (partition,) = (await status(env_file, topic))["partitions"]
    assert f"if they have no keys, take compact out of cleanup.policy of {copy}" in partition["stopped"]["reason"]
    remedy = partition["remedies"][number]
    if number == 0:
        configure(pair.grape, copy, **{"cleanup.policy": "delete"})
    await typed(env_file, remedy["command"])
    send(pair.producer(), topic, b"c")
    await pair.copy_all()
    after = (await status(env_file, topic))["partitions"][0]
    assert (after["stopped"], after["remedies"], after["lag_records"]) == (None, [], 0)
    assert [(gap["first"], gap["next"]) for gap in after["gaps"]] == ([] if number == 0 else [(2, 3)])


async def test_case_852_a_topic_made_anew_with_fewer_partitions_goes_on_by_what_the_status_prints(
    pair: Pair, tmp_path: Path
) -> None:
    # The partitions that were no more were unknown for ever; resume did not know them, and promote refused.
    topic, env_file = pair.topic("smaller", 3), settings_file(pair, tmp_path)
    pair.write(topic, 5, 3)
    async with pair.engine() as engine:
        await engine.copy_all()
        pair.delete(topic)
        pair.topic("smaller", 1)
        pair.write(topic, 4)
        await engine.assign()
        await engine.until_stopped(topic)
    found = await status(env_file, topic)
    assert [each["stopped"] is None for each in found["partitions"]] == [False] * 3
    for each in found["partitions"]:
        for remedy in each["remedies"]:
            await typed(env_file, remedy["command"])
    await pair.copy_all()
    assert (await command("status", env_file)).returncode == 0
    told = await command("promote", env_file, "--topic", topic, "--dry-run")
    assert (told.returncode, f"{topic}: would be promoted" in told.stdout) == (0, True), told.stderr
    assert pair.copy_counts(topic, 3) == [9, 5, 5]


async def test_case_853_resume_alone_retries_all_that_has_stopped(pair: Pair, tmp_path: Path) -> None:
    # "nothing of the link is paused, and no partition of it is stopped", where two were.
    topics, env_file = [pair.topic("one"), pair.topic("two")], settings_file(pair, tmp_path)
    for topic in topics:
        pair.make_copy(topic, 1, **{"max.message.bytes": "20000"})
        pair.producer().flush(PATIENCE)
        send(pair.producer(), topic, bytes(50_000))
    async with pair.engine() as engine:
        await engine.prepare()
        for topic in topics:
            await engine.until_all_stopped(topic, 1)
    for topic in topics:
        configure(pair.grape, pair.copy_of(topic), **{"max.message.bytes": "200000"})
    shown = await command("resume", env_file, "--dry-run")
    assert (shown.returncode, len(shown.stdout.splitlines())) == (0, 2)
    assert (await command("resume", env_file)).stdout == shown.stdout
    again = await command("resume", env_file)
    assert (again.returncode, "no partition of it is stopped" in again.stdout) == (0, True)
