"""A replicator that changes the layout of its link by itself: whoever is killed, newer or in its way meanwhile."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from appliance.commands.layout_writer import LanesWriter
from appliance.driver.establish import Established, Establishing
from appliance.driver.model.lane_balance import Rebalance
from appliance.driver.running_layout import RunningLayout
from appliance.errors import LayoutChanging, LinkRefused
from appliance.link.model.checkpoint import Owner
from appliance.link.model.copy_states import CopyEvent
from appliance.link.model.layout import Layout
from appliance.link.model.states import LaneState
from tests.real.commands.test_promotion import Killed, command
from tests.real.engine.test_lanes import (
    PARTITIONS,
    checkpoints,
    goes_on,
    in_their_lanes,
    killed_after,
    laid_out,
    produce_everywhere,
)
from tests.support.engine import Engine, Pair, copying
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


def own(engine: Engine) -> Owner:
    return Owner(engine.run, "driver", "", 0, engine.generation)


def running(engine: Engine) -> RunningLayout:
    return RunningLayout(engine.pair.settings(), engine.source, engine.destination)


def proposed(engine: Engine, topic: str, lane: int) -> Rebalance:
    """All partitions of the topic in one lane."""
    before, partitions = engine.layout, [(topic, number) for number in range(PARTITIONS)]
    after = replace(before, placed=dict.fromkeys(partitions, lane))
    return Rebalance(before, after, dict.fromkeys(partitions, 1.0), 300.0, (0.9, 0.5))


async def established(engine: Engine, by: Owner | None = None) -> Established:
    """The link at a start, or, by its name, in the midst of a run."""
    making = Establishing(engine.pair.settings(), engine.source, engine.destination, engine.run)
    return await running(engine).establish(making, by)


async def settled(engine: Engine) -> Layout:
    """The layout once a start finds one that holds: a commit is answered before its markers are written."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(LayoutChanging):
                return (await established(engine)).layout
            await asyncio.sleep(0.05)


async def test_a_replicator_places_partitions_and_goes_on_with_the_layout(pair: Pair) -> None:
    topic = pair.topic("placed", PARTITIONS)
    async with pair.engine() as engine:
        produce_everywhere(pair, topic)
        await engine.copy_all()
        assert await running(engine).change(proposed(engine, topic, 2), own(engine))
        found = await settled(engine)
        record = (await checkpoints(engine))[0].layout
        assert record is not None
        assert (record.number, record.why, record.run, record.changing) == (1, "by load", "", False)
        assert {found.lane_of(topic, number) for number in range(PARTITIONS)} == {2}
        produce_everywhere(pair, topic)
        await goes_on(engine)
        assert engine.layout == found
        await in_their_lanes(engine)
        again = await running(engine).change(replace(proposed(engine, topic, 1), before=Layout(4)), own(engine))
        assert again is None  # it was meant for an older layout
        assert await settled(engine) == found
    await asyncio.to_thread(pair.compare, topic, PARTITIONS)


async def test_a_replicator_that_was_fenced_changes_no_layout_and_disturbs_nobody(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = pair.topic("older", PARTITIONS)
    async with pair.engine() as older, pair.engine() as newer:
        produce_everywhere(pair, topic)
        await older.copy_all()
        take = LanesWriter.take_id

        async def fenced_meanwhile(self: LanesWriter) -> None:
            await newer.copy_all()
            await take(self)

        with monkeypatch.context() as patch:  # it was the newest one when it looked
            patch.setattr(LanesWriter, "take_id", fenced_meanwhile)
            assert await running(older).change(proposed(older, topic, 2), own(older)) is None
        async with copying(newer):
            assert await running(older).change(proposed(older, topic, 2), own(older)) is None
            produce_everywhere(pair, topic)
            await newer.until_copied(topic, 40, PARTITIONS)
        assert {runner.lane.state for runner in newer.runners} <= {LaneState.COLD, LaneState.COPYING}
        assert not newer.faults
        assert await settled(newer) == Layout(4)
        # Not even what the newer one has left unfinished.
        with killed_after(monkeypatch, 3), pytest.raises(Killed):
            await running(newer).change(proposed(newer, topic, 2), own(newer))
        with pytest.raises(LayoutChanging, match="if its replicator was killed, the next one ends it"):
            await established(older, own(older))
        assert await settled(newer) == Layout(4, 1)
    await asyncio.to_thread(pair.compare, topic, PARTITIONS)


async def test_a_change_by_a_replicator_that_is_killed_after_any_step_is_ended_by_the_next_start(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = pair.topic("killed", PARTITIONS)
    async with pair.engine() as engine:
        produce_everywhere(pair, topic)
        await engine.copy_all()
        for steps in (2, 4, 5):  # announced, fenced, decided
            with killed_after(monkeypatch, steps), pytest.raises(Killed):
                await running(engine).change(proposed(engine, topic, steps % 4), own(engine))
            await settled(engine)
            produce_everywhere(pair, topic, 3)
            await goes_on(engine)
            await in_their_lanes(engine)
        assert {engine.layout.lane_of(topic, number) for number in range(PARTITIONS)} == {1}  # that of the last change
    await asyncio.to_thread(pair.compare, topic, PARTITIONS)


async def test_a_command_that_works_on_the_link_comes_first(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = pair.topic("first", PARTITIONS)
    async with pair.engine() as engine:
        produce_everywhere(pair, topic)
        await engine.copy_all()
        with killed_after(monkeypatch, 3), pytest.raises(Killed):
            await laid_out(pair, 2)
        assert await running(engine).change(proposed(engine, topic, 2), own(engine)) is None
        with pytest.raises(LayoutChanging, match="if that command was killed"):
            await established(engine)
        await laid_out(pair, 3)
        await goes_on(engine)
        async with command(pair) as other:
            await other.link.read()
            await other.link.change([topic], CopyEvent.FAIL_OVER)
        with pytest.raises(LinkRefused, match=f"^{topic} is failing over: end that first"):
            await running(engine).change(proposed(engine, topic, 2), own(engine))
        assert await settled(engine) == engine.layout


async def test_a_change_that_a_command_overtakes_is_refused_and_the_command_holds(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = pair.topic("overtaken", PARTITIONS)
    async with pair.engine() as engine:
        produce_everywhere(pair, topic)
        await engine.copy_all()
        fence = LanesWriter.fence

        async def overtaken(self: LanesWriter) -> object:
            with monkeypatch.context() as usual:
                usual.setattr(LanesWriter, "fence", fence)
                await laid_out(pair, 2)
            return await fence(self)

        with monkeypatch.context() as patch:
            patch.setattr(LanesWriter, "fence", overtaken)
            with pytest.raises(LinkRefused, match="another command changes the lanes"):
                await running(engine).change(proposed(engine, topic, 2), own(engine))
        assert (await settled(engine)).lanes == 2
        await goes_on(engine)
        await in_their_lanes(engine)


async def test_a_stop_waits_for_a_change_that_has_begun(pair: Pair) -> None:
    topic = pair.topic("stopped", PARTITIONS)
    async with pair.engine() as engine:
        produce_everywhere(pair, topic)
        await engine.copy_all()
        changing = running(engine)
        look = asyncio.create_task(changing.change(proposed(engine, topic, 2), own(engine)))
        await asyncio.sleep(0)
        look.cancel()
        await changing.close()
        assert look.cancelled()
        assert (await settled(engine)).lane_of(topic, 0) == 2
