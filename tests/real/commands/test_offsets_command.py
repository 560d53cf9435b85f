"""``bin/appliance offsets`` and ``appliance.client``, with the source dead; and names that no topic has."""

import asyncio
import json
from pathlib import Path

import pytest

from appliance.client import OffsetTranslator, TranslationState, read_settings, translate
from tests.support.commands import answer, settings_file
from tests.support.engine import Pair
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_offsets_are_translated_both_ways_while_the_source_is_dead(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("orders")
    async with pair.engine() as engine:
        for count in (10, 20):
            produce(pair.producer(), topic, count)
            await engine.copy_all()
    env_file, copy = settings_file(pair, tmp_path), pair.naming.destination(topic)
    place = ["--partition", "0", "--offset"]
    code, text = await answer("offsets", env_file, "translate", "--topic", topic, *place, "15")
    assert (code, text) == (0, f"{topic}-0 offset 15 is {copy}-0 offset 16\n")  # one marker lies between
    code, text = await answer("offsets", env_file, "translate", "--topic", copy, *place, "16", "--reverse", "--json")
    (line,) = json.loads(text)
    assert (code, line["to_topic"], line["to_offset"], line["state"]) == (0, topic, 15, "exact")
    code, text = await answer("offsets", env_file, "translate", "--topic", topic, *place, "33")
    assert (code, text) == (1, f"{topic}-0 offset 33 is 3 offsets past what is copied\n")


async def test_programs_translate_with_asyncio_and_without(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("payments")
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
    link = read_settings(settings_file(pair, tmp_path))
    async with OffsetTranslator(link) as translator:
        assert (await translator.translate(topic, 0, 4)).offset == 4
        assert (await translator.reverse(pair.naming.destination(topic), 0, 4)).offset == 4
        assert (await translator.translate("nothing", 0, 4)).state is TranslationState.UNKNOWN
    assert (await asyncio.to_thread(translate, link, topic, 0, 9)).offset == 9


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("verify", ["--topic"]),
        ("status", ["--topic"]),
        ("offsets", ["translate", "--partition=0", "--offset=0", "--topic"]),
        ("configs", ["--topic"]),
        ("acls", ["--topic"]),
        ("resume", ["--topic-name"]),
        ("reset", ["--to=0", "--topic-name"]),
        ("pause", ["--dry-run", "--topic-name"]),
        ("failover", ["--dry-run", "--topic-name"]),
        ("promote", ["--dry-run", "--topic-name"]),
        ("failback", ["--dry-run", "--topic-name"]),
        ("rm-topic", ["--dry-run", "--topic-name"]),
    ],
)
async def test_case_1115_a_name_that_no_topic_can_have_is_answered_as_that_of_a_missing_topic(
    pair: Pair, tmp_path: Path, name: str, arguments: list[str]
) -> None:
    # Of one with a blank, or a long one, brokers say INVALID_TOPIC_EXCEPTION, with which the command ended.
    env_file = settings_file(pair, tmp_path)
    await pair.copied(pair.filled("orders", 3))
    code, missing = await answer(name, env_file, *arguments, "nowhere")
    assert code == 2
    for none_can_have in ("no where", "x" * 250):
        its_code, text = await answer(name, env_file, *arguments, none_can_have)
        plain = text.replace("\\", "").replace("--topic-name=", "--topic ")
        assert (its_code, plain) == (code, missing.replace("nowhere", none_can_have))
