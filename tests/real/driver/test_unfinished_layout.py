"""A change of the layout that a replicator of an older release has begun by itself, and was killed in."""

import asyncio

import pytest

from appliance.driver.layout_writer import LanesWriter
from appliance.engine.model import map_growth
from appliance.errors import LayoutChanging
from appliance.kafka.protocol.metadata import Partition
from tests.real.commands.test_lanes import (
    PARTITIONS,
    goes_on,
    in_their_lanes,
    killed_after,
    laid_out,
    produce_everywhere,
)
from tests.support.engine import Pair
from tests.support.older_placing import place_as_an_older_release
from tests.support.operating import Killed, command

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def killed_placing(pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """All partitions of the topic were to go to one of four lanes."""
    async with command(pair) as running:
        with killed_after(monkeypatch, steps), pytest.raises(Killed):
            await place_as_an_older_release(running, {Partition(topic, number): 2 for number in range(PARTITIONS)})


async def test_a_change_that_a_replicator_of_an_older_release_was_killed_in_is_ended_by_the_next_start(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_growth, "TAIL_BYTES", 0)  # each transaction leaves a segment
    topic = pair.topic("killed", PARTITIONS)
    async with pair.engine() as engine:
        await engine.establish(LANES="4")
        produce_everywhere(pair, topic)
        await engine.copy_all()
        for count, steps in enumerate((2, 4, 5), 1):  # announced, fenced, segments copied
            await killed_placing(pair, topic, monkeypatch, steps)
            produce_everywhere(pair, topic, 3)
            await goes_on(engine)
            assert (engine.layout.number, engine.layout.placed) == (count, {})
            await in_their_lanes(engine)
    await asyncio.to_thread(pair.compare, topic, PARTITIONS)


async def test_a_command_that_begins_a_change_meanwhile_is_left_to_its_operator(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = pair.topic("meanwhile", PARTITIONS)
    async with pair.engine() as engine:
        await engine.establish(LANES="4")
        produce_everywhere(pair, topic)
        await engine.copy_all()
        await killed_placing(pair, topic, monkeypatch, 2)
        take = LanesWriter.take_id

        async def begun_meanwhile(self: LanesWriter) -> None:
            with monkeypatch.context() as usual:
                usual.setattr(LanesWriter, "take_id", take)
                with killed_after(usual, 2), pytest.raises(Killed):
                    await laid_out(pair, 2)
            await take(self)

        with monkeypatch.context() as patch:
            patch.setattr(LanesWriter, "take_id", begun_meanwhile)
            with pytest.raises(LayoutChanging, match="if that command was killed"):
                await engine.establish()
        await laid_out(pair, 3)
        await goes_on(engine)
        assert engine.layout.lanes == 3
        await in_their_lanes(engine)
    await asyncio.to_thread(pair.compare, topic, PARTITIONS)
