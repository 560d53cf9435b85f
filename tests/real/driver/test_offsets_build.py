"""Offset maps that are built by reading both logs: they equal those that have grown with the copying."""

import asyncio
import random
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from appliance.commands.offsets_build import MapOutcome, _Building, build
from appliance.commands.resumption import Choice, resume
from appliance.driver.missing_maps import Missing, tell_what_is_missing
from appliance.engine.model import map_growth
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.handle import Link
from appliance.link.model.checkpoint_records import encode_position
from appliance.link.model.offset_records import encode_dropped
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.states import LaneState
from appliance.link.model.translation import Translation, TranslationState
from appliance.settings.values import TopicNaming
from tests.support.administration import delete_before, make_topic
from tests.support.engine import Engine, Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")

Translations = list[Translation]


def produce_history(producer: Producer, topic: str, chance: random.Random, count: int) -> None:
    """Transactions of similar records, a third of them aborted."""
    for _ in range(count):
        producer.begin_transaction()
        for _ in range(chance.randint(1, 40)):
            producer.produce(topic, b"%d" % chance.randint(0, 2), b"%d" % chance.randint(0, 3), 0)
        producer.flush(PATIENCE)
        if chance.random() < 1 / 3:
            producer.abort_transaction(PATIENCE)
        else:
            producer.commit_transaction(PATIENCE)


async def translations(engine: Engine, pair: Pair, topic: str) -> tuple[Translations, Translations]:
    """The translations of all offsets in both directions, by the maps that are committed now."""
    maps = OffsetMaps(engine.destination, pair.naming)
    assert await maps.refresh() == {}
    copy = pair.copy_of(topic)
    last = max(position.next_offset for key, position in maps.positions() if key[0] == topic)
    forth = [maps.translate(Partition(topic, 0), offset) for offset in range(last + 1)]
    return forth, [maps.reverse(Partition(copy, 0), offset) for offset in range(end(pair.grape, copy, 0) + 1)]


def unheard(_: object) -> None:
    """Ignore a line of output."""


async def built(pair: Pair, topic: str) -> tuple[int, list[str]]:
    """Build the maps of a topic; return the number of failures, and the printed lines."""
    outcomes: list[MapOutcome] = []
    failures = await build(pair.settings(), lambda partition: partition[0] == topic, outcomes.append)
    return failures, [*map(str, outcomes)]


async def test_case_111_a_map_that_is_built_says_what_one_says_that_grew_with_the_copying(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seed = random.randrange(2**32)
    chance, topic = random.Random(seed), pair.topic("history")
    producer = pair.producer(**{"transactional.id": topic})
    producer.init_transactions(PATIENCE)
    monkeypatch.setattr(map_growth, "TAIL_BYTES", 20)
    monkeypatch.setattr(map_growth, "SEGMENT_BYTES", 100)
    monkeypatch.setattr("appliance.commands.offsets_build.SEGMENT_BYTES", 100)
    async with pair.engine() as engine:
        for _ in range(4):
            await asyncio.to_thread(produce_history, producer, topic, chance, 8)
            await engine.copy_all()
        grown = await translations(engine, pair, topic)
        assert {found.state for found in grown[0]} == {TranslationState.EXACT}, f"seed {seed}"
        await forget_maps(engine, pair, topic)
        forgotten = await translations(engine, pair, topic)
        assert {found.state for found in forgotten[0][:-1]} == {TranslationState.UNKNOWN}, f"seed {seed}"
        await tell_what_is_missing(Link(engine.source, engine.destination, pair.naming))
        assert [record.message for record in caplog.records if "offsets build" in record.message], f"seed {seed}"
        assert await built(pair, topic) == (0, [f"{topic}-0: copy offsets 0 to {len(grown[1]) - 1} have a map now"])
        again = await translations(engine, pair, topic)
        assert again == grown, f"seed {seed}"
        await asyncio.to_thread(produce_history, producer, topic, chance, 8)
        await engine.copy_all()  # the lane takes its transactional id back, and continues the map
        more = await translations(engine, pair, topic)
        assert {found.state for found in more[0]} == {TranslationState.EXACT}, f"seed {seed}"
        assert more[0][: len(again[0]) - 1] == again[0][:-1]
        assert await built(pair, topic) == (0, [])
        caplog.clear()
        await tell_what_is_missing(Link(engine.source, engine.destination, pair.naming))
        assert not [record.message for record in caplog.records if "offsets build" in record.message], f"seed {seed}"


async def test_case_204_a_map_that_was_read_is_not_written_where_something_is_known_by_now(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What was read stayed as it was, whatever had become of the copy until the lane was fenced.
    topic = pair.filled("built", 20)
    async with pair.engine() as engine:
        await engine.copy_all()
        grown = await translations(engine, pair, topic)
        await forget_maps(engine, pair, topic)
        read, others = _Building._read, list[tuple[int, list[str]]]()

        async def slow(self: _Building, missing: Missing) -> list[OffsetTail]:
            monkeypatch.setattr(_Building, "_read", read)
            stretches = await read(self, missing)
            others.append(await built(pair, topic))
            return stretches

        monkeypatch.setattr(_Building, "_read", slow)
        changed = f"{topic}-0: not built: its copy was changed, or its map built, meanwhile"
        assert await built(pair, topic) == (1, [changed])
        assert others == [(0, [f"{topic}-0: copy offsets 0 to 21 have a map now"])]
        assert await translations(engine, pair, topic) == grown


async def test_case_355_the_map_of_a_shared_copy_is_built_by_what_the_link_has_written_there(pair: Pair) -> None:
    # Before, the records of the destination's own producers were taken for wrong copies.
    shared = replace(pair, kind=TopicNaming.IDENTICAL)
    topic = shared.topic("shared")
    make_topic(shared.grape, NewTopic(topic, 1, 1))
    ours, others = shared.producer(), Producer(shared.grape.client_configuration())
    async with shared.engine() as engine:
        for _ in range(3):
            produce(others, topic, 7)
            produce(ours, topic, 20)
            await engine.copy_all()
        grown = await translations(engine, shared, topic)
        await forget_maps(engine, shared, topic)
        failed, (line,) = await built(shared, topic)
        assert (failed, line.endswith("have a map now")) == (0, True), line
        assert (await translations(engine, shared, topic))[0] == grown[0]


async def test_case_112_a_copy_that_differs_from_its_source_gets_no_map(pair: Pair) -> None:
    topic = pair.filled("skipped", 20)
    async with pair.engine() as engine:
        await engine.copy_all()
        pair.write(topic, 20)
        assert await resume(pair.settings(), Choice(topic, 0, "latest"), unheard) == 1
        pair.write(topic, 20)
        await engine.copy_all()
        await forget_maps(engine, pair, topic)
        before = await translations(engine, pair, topic)
        failed, (line,) = await built(pair, topic)
        assert failed == 1
        assert line.startswith(f"{topic}-0: not built: source offset 20 and copy offset 21 do not hold the same record")
        assert await translations(engine, pair, topic) == before


async def test_case_113_a_map_is_built_of_what_retention_has_left_on_both_sides(pair: Pair) -> None:
    topic = pair.topic("retained")
    copy = pair.copy_of(topic)
    async with pair.engine() as engine:
        for _ in range(6):
            pair.write(topic, 10)
            await engine.copy_all()
        grown = await translations(engine, pair, topic)
        await forget_maps(engine, pair, topic)
        delete_before(pair.orange, topic, 0, 15)
        delete_before(pair.grape, copy, 0, 7)
        assert (await built(pair, topic))[0] == 0
        forth, back = await translations(engine, pair, topic)
        assert forth[15:] == grown[0][15:]
        assert {found.state for found in forth[:15]} == {TranslationState.UNKNOWN}
        assert back[17:] == grown[1][17:]


async def forget_maps(engine: Engine, pair: Pair, topic: str) -> None:
    """Remove a topic's map, as if an older release had copied the topic."""
    maps = OffsetMaps(engine.destination, pair.naming)
    await maps.refresh()
    (runner,) = [each for each in engine.runners if topic in {replica.source_topic for replica in each.replicas}]
    lane, (replica,) = runner.lane, [each for each in runner.replicas if each.source_topic == topic]
    if lane.state is not LaneState.COPYING:
        await lane.start()
    segments = maps._logs[lane.index].segments(replica.source)
    dropped = [encode_dropped((replica.source, each.range.copy_from), 1) for each in segments]
    position = replace(lane.checkpoint.positions[replica.source], tail=None)
    records = {lane.positions: [encode_position(replica.source, position, 1)], lane.offsets: dropped}
    await lane.write((), lambda *_: records if dropped else {lane.positions: records[lane.positions]})
    lane.checkpoint.positions[replica.source] = position
    await engine.until_decided()
