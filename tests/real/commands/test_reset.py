"""Resets between two real clusters: nothing is left out or copied again in silence, and what was killed goes on."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from appliance.commands.model.position_change import Place
from appliance.commands.model.reset_report import ResetReport
from appliance.commands.pause import set_paused
from appliance.commands.reset import reset
from appliance.commands.run.link_lanes import LinkLanes, Moves
from appliance.commands.run.operation import Choice
from appliance.errors import LinkRefused, SettingsError
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.copy_states import CopyEvent, CopyState
from appliance.link.model.position import Position
from appliance.link.model.translation import TranslationState
from tests.support.engine import LANES, Engine, Pair, copying
from tests.support.operating import NOWHERE, YES, Killed, command, everywhere, failed_over, promoted, run_command
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import Row

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def positioned(pair: Pair, to: str, choice: Choice = YES, number: int | None = None) -> ResetReport:
    async with command(pair, choice) as running:
        return await run_command(running, reset, Place.parse("--to", to), number)


async def paused(pair: Pair, topic: str, event: CopyEvent = CopyEvent.PAUSE) -> None:
    async with command(pair, Choice(topic=topic, yes=True)) as running:
        await run_command(running, set_paused, event)


async def copied(engine: Engine, topic: str, records: int = 10, partitions: int = 1) -> None:
    for partition in range(partitions):
        produce(engine.pair.producer(), topic, records, partition)
    await engine.copy_all()


async def rows(pair: Pair, topic: str, partitions: int = 1) -> tuple[list[list[Row]], list[list[Row]]]:
    """The rows of the source and of its copy."""
    source = await asyncio.to_thread(pair.rows, pair.orange, topic, partitions)
    return source, await asyncio.to_thread(pair.rows, pair.grape, pair.naming.destination(topic), partitions)


async def test_forwards_what_is_left_out_is_told_and_in_the_gap_ledger(pair: Pair) -> None:
    topic = pair.topic("forward", 2)
    async with pair.engine() as engine:
        await copied(engine, topic, 10, 2)
        await paused(pair, topic)
        produce(pair.producer(), topic, 7, 1)
        report = await positioned(pair, "latest")
        assert report.document()["left_out"] == 7
        assert list(report.lines()) == [
            f"{topic}-1 goes on from offset 17; it had stopped at 10: 7 offsets are left out",
            "changed: 1 partitions, 0 offsets copied again, 7 offsets left out",
            f"{topic}: stays paused, until `appliance resume`",
        ]
        (gap,) = await engine.gaps()
        assert (gap.partition, gap.first, gap.next) == (Partition(topic, 1), 10, 17)
        assert gap.cause == "the operator went on from offset 17"
        await paused(pair, topic, CopyEvent.RESUME)
        await copied(engine, topic, 3, 2)
    source, copy = await rows(pair, topic, 2)
    assert copy == [source[0], source[1][:10] + source[1][17:]]


async def test_backwards_what_is_copied_again_is_told_and_the_map_says_where_its_newest_copy_is(pair: Pair) -> None:
    topic = pair.topic("backward", 2)
    async with pair.engine() as engine:
        await copied(engine, topic, 10, 2)
        async with copying(engine):
            report = await positioned(pair, "4", Choice(topic=topic, yes=True), number=1)
            assert report.document()["copied_again"] == 6
            assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        await copied(engine, topic, 5, 2)
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
        assert "would change: 1 partitions, 6 offsets copied again, 0 offsets left out" in list(dry.lines())
        assert (await positioned(pair, "1009000ms")).document()["copied_again"] == 1


async def test_what_is_promoted_another_links_or_not_held_is_refused_in_one_line(pair: Pair) -> None:
    topic, other = pair.topic("refused"), pair.topic("other")
    async with pair.engine() as engine:
        await copied(engine, topic)
        await copied(engine, other)
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


async def test_a_reset_that_is_killed_after_any_write_is_ended_by_the_same_command(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, each: int
) -> None:
    # Lanes run meanwhile: what had moved already must not be copied, and then be moved once more.
    topics = {at: pair.topic(f"killed-{at}", LANES) for at in range(1, 3 * LANES + 1, each)}
    async with pair.engine() as engine:
        for topic in topics.values():
            for partition in range(LANES):
                produce(pair.producer(), topic, 5, partition)
        await engine.copy_all()
        async with copying(engine):
            for at, topic in topics.items():
                choice = Choice(topic=topic, yes=True)
                monkeypatch.setattr(LinkLanes, "move", _once_told(pair, topic))
                with monkeypatch.context() as patch:
                    _kill_after(patch, at)
                    with pytest.raises(Killed):
                        await positioned(pair, "earliest", choice)
                if await everywhere(pair, topic) == {CopyState.RESETTING}:
                    with pytest.raises(
                        LinkRefused, match=f"`bin/appliance reset --topic-name={topic} --to=earliest` ends it"
                    ):
                        await positioned(pair, "latest", choice)
                    await paused(pair, topic, CopyEvent.RESUME)
                if await everywhere(pair, topic) != {CopyState.ACTIVE}:
                    await positioned(pair, "earliest", choice)
                assert await everywhere(pair, topic) == {CopyState.ACTIVE}
    async with pair.engine() as engine:
        await engine.copy_all()
    for topic in topics.values():
        source, copy = await rows(pair, topic, LANES)
        assert copy == [row + row for row in source]


_MOVE = LinkLanes.move


def _once_told(pair: Pair, topic: str) -> Callable[..., Awaitable[None]]:
    """The step that moves positions: by then every lane has to know that nothing is copied meanwhile."""

    async def move(self: LinkLanes, index: int, moves: Callable[[Mapping[Partition, Position]], Moves]) -> None:
        assert await everywhere(pair, topic) == {CopyState.RESETTING}
        await _MOVE(self, index, moves)

    return move


def _kill_after(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Have a command end right after so many writes of states and positions."""
    left = steps

    def counted(step: object) -> object:
        @functools.wraps(step)  # type: ignore[arg-type]
        async def write(*arguments: object) -> None:
            nonlocal left
            await step(*arguments)  # type: ignore[operator]
            left -= 1
            if not left:
                raise Killed

        return write

    for name in ("_write", "move"):
        patch.setattr(LinkLanes, name, counted(getattr(LinkLanes, name)))


async def test_of_two_resets_at_once_one_place_holds_in_every_partition(pair: Pair) -> None:
    topic = pair.topic("contended", LANES)
    async with pair.engine() as engine:
        await copied(engine, topic, 10, LANES)
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
        await copied(engine, topic, 10, LANES)

        async def killed(*_: object) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(LinkLanes, "move", killed)
            with pytest.raises(Killed):
                await positioned(pair, "4")
        assert await everywhere(pair, topic) == {CopyState.RESETTING}
        with pytest.raises(LinkRefused, match=f"{topic}: resetting, so never copied to the end: the same `appliance"):
            await promoted(pair, Choice(topic=topic, yes=True, allow_loss=True))
        assert await everywhere(pair, topic) == {CopyState.RESETTING}
        report = await failed_over(pair, SOURCE_BROKER_SERVERS=NOWHERE)
        assert topic not in report.kept
        assert await everywhere(pair, topic) == {CopyState.PROMOTED}
        with pytest.raises(LinkRefused, match=f"topic {topic} is promoted"):
            await positioned(pair, "4")
