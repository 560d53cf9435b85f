"""Resets between two real clusters: nothing is left out or copied again in silence, and what was killed goes on."""

import asyncio
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from appliance.commands.model.position_change import Place
from appliance.commands.model.reset_report import ResetReport
from appliance.commands.reset import reset
from appliance.commands.run.link_lanes import LinkLanes
from appliance.commands.run.operation import Choice
from appliance.errors import LinkRefused, SettingsError
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.copy_states import CopyEvent, CopyState
from appliance.link.model.translation import TranslationState
from tests.support.engine import LANES, Pair, copying
from tests.support.operating import (
    NOWHERE,
    YES,
    Killed,
    command,
    everywhere,
    failed_over,
    killed,
    paused,
    promoted,
    run_command,
)
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import Row

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def positioned(pair: Pair, to: str, choice: Choice = YES, number: int | None = None) -> ResetReport:
    async with command(pair, choice) as running:
        return await run_command(running, reset, Place.parse("--to", to), number)


async def rows(pair: Pair, topic: str, partitions: int = 1) -> tuple[list[list[Row]], list[list[Row]]]:
    """The rows of the source and of its copy."""
    source = await asyncio.to_thread(pair.rows, pair.orange, topic, partitions)
    return source, await asyncio.to_thread(pair.rows, pair.grape, pair.naming.destination(topic), partitions)


async def test_forwards_what_is_left_out_is_told_and_in_the_gap_ledger(pair: Pair) -> None:
    topic = pair.topic("forward", 2)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic, 10, 2)
        await paused(pair, topic)
        produce(pair.producer(), topic, 7, 1)
        report = await positioned(pair, "latest")
        assert report.document()["left_out"] == 7
        assert list(report.lines()) == [
            f"{topic}-1 goes on from offset 17; it had stopped at 10: 7 offsets are left out",
            "changed: 1 partition, 0 offsets copied again, 7 offsets left out",
            f"{topic}: stays paused, until `appliance resume`",
        ]
        (gap,) = await engine.gaps()
        assert (gap.partition, gap.first, gap.next) == (Partition(topic, 1), 10, 17)
        assert gap.cause == "the operator went on from offset 17"
        await paused(pair, topic, CopyEvent.RESUME)
        await engine.write_and_copy(topic, 3, 2)
    source, copy = await rows(pair, topic, 2)
    assert copy == [source[0], source[1][:10] + source[1][17:]]


async def test_backwards_what_is_copied_again_is_told_and_the_map_says_where_its_newest_copy_is(pair: Pair) -> None:
    topic = pair.topic("backward", 2)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic, 10, 2)
        async with copying(engine):
            report = await positioned(pair, "4", Choice(topic=topic, yes=True), number=1)
            assert report.document()["copied_again"] == 6
            assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        await engine.write_and_copy(topic, 5, 2)
        source, copy = await rows(pair, topic, 2)
        assert copy == [source[0], source[1][:10] + source[1][4:]]
        assert await engine.gaps() == []
        maps = OffsetMaps(engine.destination, pair.naming)
        assert not await maps.refresh()
    copy_of = pair.naming.destination(topic), 1
    offsets = await asyncio.to_thread(_offsets, pair, copy_of, len(copy[1]))
    for offset in range(15):
        found = maps.translate(Partition(topic, 1), offset)
        assert (found.state, found.offset) == (TranslationState.EXACT, offsets[offset if offset < 4 else offset + 6])
    assert [maps.reverse(copy_of, offset).offset for offset in offsets] == [*range(10), *range(4, 15)]


def _offsets(pair: Pair, partition: tuple[str, int], count: int) -> list[int]:
    """The offsets of the records of a partition of the destination."""
    consumer = Consumer({**pair.grape.client_configuration(), "group.id": "offsets", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(*partition, 0)])
    try:
        return [message.offset() for message in consumer.consume(count, PATIENCE)]
    finally:
        consumer.close()


async def test_a_time_is_the_first_record_that_is_not_older_or_the_end(pair: Pair) -> None:
    topic = pair.topic("timed", 2, **{"retention.ms": "-1"})
    producer = pair.producer()
    for number in range(10):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=1_000_000 + number * 1_000)
    producer.produce(topic, b"old", partition=1, timestamp=500_000)
    assert producer.flush(PATIENCE) == 0
    async with pair.engine() as engine:
        await engine.copy_all()
        at = datetime.fromtimestamp(1_003.5, UTC).isoformat()
        dry = await positioned(pair, at, Choice(dry_run=True))
        assert [(each.replica.partition, each.after.next_offset) for each in dry.changes] == [(0, 4)]
        assert "would change: 1 partition, 6 offsets copied again, 0 offsets left out" in list(dry.lines())
        assert (await positioned(pair, "1009000ms")).document()["copied_again"] == 1


async def test_what_is_promoted_another_links_or_not_held_is_refused_in_one_line(pair: Pair) -> None:
    topic, other = pair.topic("refused"), pair.topic("other")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await engine.write_and_copy(other)
        before = await engine.positions()
        await failed_over(pair, Choice(topic=topic, yes=True))
        with pytest.raises(LinkRefused, match=f"^topic {topic} is promoted: its positions are not changed by hand$"):
            await positioned(pair, "earliest")
        with pytest.raises(SettingsError, match="holds offsets 0 to 10: expected one of these"):
            await positioned(pair, "11", Choice(topic=other, yes=True))
        with pytest.raises(SettingsError, match="--partition 7: no chosen topic has such a partition"):
            await positioned(pair, "earliest", Choice(topic=other, yes=True), number=7)
        with pytest.raises(SettingsError, match="there is no terminal to ask at: give --yes"):
            await positioned(pair, "earliest", Choice(topic=other))
        assert await engine.positions() == before
        assert await everywhere(pair, other) == {CopyState.ACTIVE}


async def test_a_stopped_partition_goes_on_where_the_operator_says(pair: Pair) -> None:
    topic = pair.topic("stopped")
    pair.make_copy(topic, 1)
    produce(Producer(pair.grape.client_configuration()), pair.naming.destination(topic), 5)
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.prepare()
        await engine.until_all_stopped(topic, 1)
        report = await positioned(pair, "3")
        assert report.document()["partitions"] == [
            {"topic": topic, "partition": 0, "before": None, "after": 3, "copied_again": None, "left_out": None}
        ]
        await engine.copy_all()
    source, copy = await rows(pair, topic)
    assert copy[0][5:] == source[0][3:]


async def test_of_two_resets_at_once_one_place_holds_in_every_partition(pair: Pair) -> None:
    topic = pair.topic("contended", LANES)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic, 10, LANES)
        ended = await asyncio.gather(positioned(pair, "3"), positioned(pair, "6"), return_exceptions=True)
        unexpected = [error for error in ended if isinstance(error, BaseException)]
        assert all(isinstance(error, LinkRefused) for error in unexpected), unexpected
        assert len(unexpected) < 2
        assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        places = {(await engine.positions())[topic, number].next_offset for number in range(LANES)}
        assert len(places) == 1
        assert places < {3, 6}


async def test_case_225_a_reset_that_was_killed_keeps_nobody_from_failing_over_when_the_source_is_dead(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The reset could not be ended without the source, and the topic could not be promoted before it had ended.
    topic = pair.topic("cut-off", LANES)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic, 10, LANES)

        with monkeypatch.context() as patch:
            patch.setattr(LinkLanes, "move", killed)
            with pytest.raises(Killed):
                await positioned(pair, "4")
        assert await everywhere(pair, topic) == {CopyState.RESETTING}
        with pytest.raises(LinkRefused, match=f"`bin/appliance reset --topic-name={topic} --to=4` ends it"):
            await positioned(pair, "latest")
        await paused(pair, topic, CopyEvent.RESUME)
        assert await everywhere(pair, topic) == {CopyState.RESETTING}
        with pytest.raises(LinkRefused, match=f"{topic}: resetting, so never copied to the end: the same `appliance"):
            await promoted(pair, Choice(topic=topic, yes=True, allow_loss=True))
        assert await everywhere(pair, topic) == {CopyState.RESETTING}
        report = await failed_over(pair, SOURCE_BROKER_SERVERS=NOWHERE)
        assert topic not in report.kept
        assert await everywhere(pair, topic) == {CopyState.PROMOTED}
        with pytest.raises(LinkRefused, match=f"topic {topic} is promoted"):
            await positioned(pair, "4")
