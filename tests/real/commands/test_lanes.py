"""Another number of lanes for an existing link: nothing is lost or doubled, whoever is killed or wakes up meanwhile."""

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Iterator, Mapping

import pytest

from appliance.commands.lanes import lanes
from appliance.commands.model.lanes_report import LanesReport
from appliance.commands.run.operation import Choice
from appliance.driver.layout_writer import LanesWriter
from appliance.engine.model import map_growth
from appliance.errors import ApplianceError, BrokerRefused, LayoutChanged, LayoutChanging, LinkRefused
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.topics import grow_topics
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.checkpoint_log import peek_checkpoints
from appliance.link.client.offset_maps import segment_records
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.copy_states import CopyEvent, CopyState
from appliance.link.model.layout import Layout
from appliance.link.model.position import Position
from appliance.link.model.states import LaneState
from tests.real.link.test_offset_maps import assert_translated
from tests.support.administration import configure, delete_before
from tests.support.engine import LANES, Engine, Pair, copying
from tests.support.operating import YES, Killed, change_states, command, everywhere, paused, run_command
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARTITIONS = 6


async def laid_out(pair: Pair, count: int, choice: Choice = YES) -> LanesReport:
    """The command's end."""
    async with command(pair, choice) as running:
        return await run_command(running, lanes, count, balance=False, sample=0)


async def checkpoints(engine: Engine) -> list[LaneCheckpoint]:
    """Those of all partitions of the positions topic, once the markers of ended transactions are written there."""
    name = engine.pair.naming.positions_topic
    metadata = await engine.destination.metadata([name])
    partitions = [Partition(name, lane) for lane in range(len(metadata.topics[name].leaders))]
    async with asyncio.timeout(PATIENCE):
        while await list_offsets(engine.destination, metadata, partitions, Bound.STABLE_END) != await list_offsets(
            engine.destination, metadata, partitions, Bound.END
        ):
            await asyncio.sleep(0.02)
    return await peek_checkpoints(engine.destination, name, len(partitions))


async def in_their_lanes(engine: Engine) -> dict[Partition, Position]:
    """The positions, once it is clear that each lies in its lane's partition alone, and so do its map's segments."""
    found: dict[Partition, Position] = {}
    held = await checkpoints(engine)
    link = held[0].link
    assert link is not None
    assert link.partitions == len(held)
    for lane, checkpoint in enumerate(held):
        assert not found.keys() & checkpoint.positions.keys()
        found |= checkpoint.positions
        lies = {*checkpoint.positions, *(gap.partition for gap in checkpoint.gaps.values())}
        lies |= {
            key[0]
            for key in await segment_records(engine.destination, Partition(engine.pair.naming.offsets_topic, lane))
        }
        assert {link.layout.lane_of(*partition) for partition in lies} <= {lane}
        assert checkpoint.allows(link.number)
    return found


def produce_everywhere(pair: Pair, topic: str, count: int = 20) -> None:
    pair.write(topic, count, PARTITIONS)


async def until_over(engine: Engine) -> None:
    """Wait until every lane has found that it is of another layout, or has a newer owner."""
    async with asyncio.timeout(PATIENCE):
        while not all(runner.lane.state is LaneState.FENCED for runner in engine.runners):
            await asyncio.sleep(0.02)


async def goes_on(engine: Engine) -> None:
    """Begin with the link's layout as it is now, and copy everything."""
    engine.runners.clear()
    engine.faults.clear()
    await engine.copy_all()


async def test_lanes_that_copy_are_fenced_and_go_on_with_more_or_fewer_and_nothing_is_lost_or_doubled(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_growth, "TAIL_BYTES", 20)
    monkeypatch.setattr(map_growth, "SEGMENT_BYTES", 100)
    topic, single = pair.topic("grown", PARTITIONS), pair.topic("single")
    async with pair.engine() as engine:
        pair.write(single, 300)
        produce_everywhere(pair, topic)
        await engine.copy_all()
        for count in (7, 1, 9, 2):
            async with copying(engine):
                before = engine.layout
                report = await laid_out(pair, count)
                assert (report.before.lanes, report.after.lanes) == (before.lanes, count)
                await until_over(engine)
            produce_everywhere(pair, topic)
            for _ in range(4):  # transactions of their own, so that the map of offsets grows
                pair.write(single, 30)
                await goes_on(engine)
            assert (engine.layout.lanes, engine.layout.number) == (count, before.number + 1)
            found = await in_their_lanes(engine)
            assert {held.records for key, held in found.items() if key[0] == topic} == {20 * (before.number + 2)}
        await assert_translated(pair, engine, single)
    await asyncio.to_thread(pair.compare, topic, PARTITIONS)
    await asyncio.to_thread(pair.compare, single)


async def test_four_partitions_that_carry_everything_get_a_lane_each(pair: Pair) -> None:
    topic = pair.topic("hot", 16)
    async with pair.engine() as engine:
        await engine.establish(LANES="4")
        hot = [number for number in range(16) if engine.layout.lane_of(topic, number) == 0]
        assert len(hot) == 4
        for number in range(16):
            produce(pair.producer(), topic, 500 if number in hot else 1, number)
        await engine.copy_all()
        async with command(pair, Choice(dry_run=True)) as running:
            planned = await run_command(running, lanes, None, balance=True, sample=0)
        assert (await shown(pair))[-1].startswith(
            "`appliance lanes --balance` would bring the busiest lane from 100% to 2"
        )
        report = await balanced(pair)
        assert report.after.placed == planned.after.placed
        assert sorted({report.after.lane_of(topic, number) for number in hot}) == [0, 1, 2, 3]
        assert len(report.moved) <= 4
        await goes_on(engine)
        assert len(await in_their_lanes(engine)) == 16
        assert (await balanced(pair)).is_same
        for number in hot:
            produce(pair.producer(), topic, 10, number)
        await goes_on(engine)
        await laid_out(pair, 3)  # by hash alone again
        await goes_on(engine)
        assert not engine.layout.placed
        await in_their_lanes(engine)
    await asyncio.to_thread(pair.compare, topic, 16)


async def balanced(pair: Pair) -> LanesReport:
    async with command(pair) as running:
        return await run_command(running, lanes, None, balance=True, sample=0)


async def shown(pair: Pair) -> list[str]:
    async with command(pair) as running:
        return list((await run_command(running, lanes, None, balance=False, sample=0)).lines())


async def test_lanes_are_left_alone_while_another_command_has_work_left_in_them(pair: Pair) -> None:
    topic = pair.topic("settled", 2)
    async with pair.engine() as engine:
        with pytest.raises(LinkRefused, match="no replicator of this link has ever run"):
            await laid_out(pair, 2)
        pair.write(topic, 10)
        await engine.copy_all()
        await change_states(pair, CopyEvent.FAIL_OVER, topic=topic)
        before = await in_their_lanes(engine)
        with pytest.raises(LinkRefused, match=f"^{topic} is failing over: end that first, then change the lanes$"):
            await laid_out(pair, 2)
        await change_states(pair, CopyEvent.PROMOTED, topic=topic)
        assert (await laid_out(pair, 7, Choice(dry_run=True))).after.lanes == 7
        assert await in_their_lanes(engine) == before
        await laid_out(pair, 7)
        assert await in_their_lanes(engine) == before
        assert await everywhere(pair, topic) == {CopyState.PROMOTED}  # in the new lanes, too


async def test_case_460_a_killed_change_is_ended_though_a_command_had_begun_just_before_the_lanes_were_fenced(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The change waited for the state that the command had left, and the command for the change.
    topic = pair.topic("crossed", PARTITIONS)
    async with pair.engine() as engine:
        produce_everywhere(pair, topic)
        await engine.copy_all()
        take = LanesWriter.take_id

        async def begun_meanwhile(self: LanesWriter) -> None:
            await change_states(pair, CopyEvent.FAIL_OVER, topic=topic)
            await take(self)

        with monkeypatch.context() as patch, killed_after(patch, 3):  # the lanes are fenced
            patch.setattr(LanesWriter, "take_id", begun_meanwhile)
            with pytest.raises(Killed):
                await laid_out(pair, 7)
        async with command(pair) as other:
            with pytest.raises(LinkRefused, match="the lanes of the link are being changed"):
                await other.lanes.read()
        with pytest.raises(LinkRefused, match=f"^{topic} is failing over: end that first, then change the lanes$"):
            await laid_out(pair, 7)
        await in_their_lanes(engine)
        await engine.establish()
        assert (engine.layout.lanes, engine.layout.number) == (LANES, 1)
        assert await everywhere(pair, topic) == {CopyState.FAILING_OVER}


async def test_where_the_topics_cannot_be_grown_the_link_goes_on_as_it_was(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = pair.topic("denied", PARTITIONS)
    async with pair.engine() as engine:
        produce_everywhere(pair, topic)
        await engine.copy_all()

        async def denied(cluster: Cluster, _: Mapping[str, int]) -> dict[str, ApplianceError]:
            assert not await grow_topics(cluster, {pair.naming.positions_topic: 9})  # one of the two has grown
            name = pair.naming.offsets_topic
            return {name: BrokerRefused(f"add partitions to {name}: no Alter", "DENIED")}

        with monkeypatch.context() as patch:
            patch.setattr("appliance.driver.layout_writer.grow_topics", denied)
            with pytest.raises(BrokerRefused, match="no Alter"):
                await laid_out(pair, 9)
        produce_everywhere(pair, topic, 3)
        await goes_on(engine)
        assert engine.layout.lanes == LANES
        await in_their_lanes(engine)
    await asyncio.to_thread(pair.compare, topic, PARTITIONS)


async def test_a_command_that_knows_the_old_lanes_ends_and_one_that_comes_later_takes_the_new_ones(pair: Pair) -> None:
    topic = pair.topic("paused", 2)
    async with pair.engine() as engine:
        pair.write(topic, 10)
        await engine.copy_all()
        async with command(pair) as running:
            await running.lanes.read()
            await laid_out(pair, 7)
            with pytest.raises(LayoutChanged, match=r"run this again$"):
                await running.lanes.change(None, CopyEvent.PAUSE)
        assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        await paused(pair)
        assert await everywhere(pair, topic) == {CopyState.PAUSED}
        await laid_out(pair, 2)
        assert await everywhere(pair, topic) == {CopyState.PAUSED}


async def test_of_two_changes_at_once_one_holds_and_the_other_says_so(pair: Pair) -> None:
    topic = pair.topic("twice", PARTITIONS)
    async with pair.engine() as engine:
        produce_everywhere(pair, topic)
        await engine.copy_all()
        for _ in range(3):
            ended = await asyncio.gather(laid_out(pair, 7), laid_out(pair, 2), return_exceptions=True)
            refused = [error for error in ended if isinstance(error, BaseException)]
            assert all(isinstance(error, LinkRefused) for error in refused), refused
            assert len(refused) < 2
            await goes_on(engine)
            await in_their_lanes(engine)
            produce_everywhere(pair, topic, 3)
        await goes_on(engine)
    await asyncio.to_thread(pair.compare, topic, PARTITIONS)


async def test_case_487_lanes_whose_link_record_was_lost_after_a_change_are_made_whole_by_what_the_refusals_name(
    pair: Pair,
) -> None:
    # Before, the replicator waited for the command, and the command asked for a start of the replicator.
    layouts = Layout(LANES), Layout(5, 1)
    names = (f"lost{number}" for number in itertools.count())
    elsewhere = (name for name in names if all(each.lane_of(f"{name}-{pair.tag}", 0) for each in layouts))
    topic = pair.topic(next(elsewhere))
    async with pair.engine() as engine:
        pair.write(topic, 20)
        await engine.copy_all()
        await laid_out(pair, 5)
        await goes_on(engine)
        name = pair.naming.positions_topic
        configure(pair.grape, name, **{"cleanup.policy": "delete"})
        await asyncio.to_thread(delete_before, pair.grape, name, 0, end(pair.grape, name, 0))
        configure(pair.grape, name, **{"cleanup.policy": "compact"})
        assert (await checkpoints(engine))[0].link is None
        with pytest.raises(LayoutChanging, match="`appliance lanes --set 5` writes it again"):
            await engine.establish()
        await laid_out(pair, 5)
        pair.write(topic, 20)
        await goes_on(engine)
        assert (engine.layout.lanes, engine.layout.number) == (5, 2)
    await asyncio.to_thread(pair.compare, topic)


STEPS = ("take_id", "grow", "fence", "_write")


@contextlib.contextmanager
def killed_after(monkeypatch: pytest.MonkeyPatch, steps: int) -> Iterator[None]:
    """Have the command end right after so many of its steps; a write is one."""
    left = steps

    def counted(step: object) -> object:
        @functools.wraps(step)  # type: ignore[arg-type]
        async def work(*arguments: object) -> object:
            nonlocal left
            done = await step(*arguments)  # type: ignore[operator]
            left -= 1
            if not left:
                raise Killed
            return done

        return work

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(LanesWriter, name, counted(getattr(LanesWriter, name)))
        yield
