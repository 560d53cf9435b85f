"""``bin/appliance offsets`` and ``appliance.client``, with the source dead."""

import asyncio
import contextlib
import io
import json
from pathlib import Path

import pytest

from appliance import cli
from appliance.client import OffsetTranslator, TranslationState, read_settings, translate
from tests.support.commands import settings_file
from tests.support.engine import Pair
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def command(env_file: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    printed = io.StringIO()

    def run() -> int:
        with contextlib.redirect_stdout(printed):
            return asyncio.run(cli.command("offsets").run(parsed, asyncio.Event())) or 0

    parser = cli._parser("offsets", cli.command("offsets"))
    parsed = parser.parse_args(["offsets", "translate", "--env-file", str(env_file), *arguments])
    return await asyncio.to_thread(run), printed.getvalue()


async def test_offsets_are_translated_both_ways_while_the_source_is_dead(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("orders")
    async with pair.engine() as engine:
        for count in (10, 20):
            produce(pair.producer(), topic, count)
            await engine.copy_all()
    env_file, copy = settings_file(pair, tmp_path), pair.naming.destination(topic)
    place = ["--partition", "0", "--offset"]
    code, text = await command(env_file, "--topic", topic, *place, "15")
    assert (code, text) == (0, f"{topic}-0 offset 15 is {copy}-0 offset 16\n")  # one marker lies between
    code, text = await command(env_file, "--topic", copy, *place, "16", "--reverse", "--json")
    (line,) = json.loads(text)
    assert (code, line["to_topic"], line["to_offset"], line["state"]) == (0, topic, 15, "exact")
    code, text = await command(env_file, "--topic", topic, *place, "33")
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
