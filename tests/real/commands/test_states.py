"""States of a link between two real clusters: every replicator obeys them, whatever was killed before."""

import asyncio

import pytest

from appliance.errors import Fenced, LinkRefused
from appliance.link.model.copy_states import LINK, CopyEvent, CopyState, effective
from tests.support.engine import Engine, Pair, copying
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.states import change_states, link_states

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def everywhere(engine: Engine, topic: str) -> set[CopyState]:
    """The states of a topic's copy by the lanes' checkpoints."""
    states = link_states(engine)
    await states.read()
    return {effective(checkpoint.states, topic) for checkpoint in states.checkpoints}


async def until_lanes_know(engine: Engine, topic: str, state: CopyState) -> None:
    """Wait until every running lane has begun anew and has read the state."""
    async with asyncio.timeout(PATIENCE):
        while {effective(runner.lane.checkpoint.states, topic) for runner in engine.runners} != {state}:
            await asyncio.sleep(0.05)


async def test_what_is_paused_is_not_copied_and_goes_on_exactly_once_when_it_is_resumed(pair: Pair) -> None:
    paused, other = pair.topic("paused", 4), pair.topic("other", 4)
    async with pair.engine() as engine:
        for topic in (paused, other):
            for partition in range(4):
                produce(pair.producer(), topic, 20, partition)
        await engine.copy_all()
        async with copying(engine):
            await change_states(engine, CopyEvent.PAUSE, [paused])
            await until_lanes_know(engine, paused, CopyState.PAUSED)
            for topic in (paused, other):
                for partition in range(4):
                    produce(pair.producer(), topic, 30, partition)
            async with asyncio.timeout(PATIENCE):
                await engine.until_copied(other, 50, 4)
            assert [(await engine.positions())[paused, n].records for n in range(4)] == [20] * 4
            assert paused not in {r.source_topic for r in (await engine.discovery().search()).replicas}
            await change_states(engine, CopyEvent.RESUME, [paused])
            async with asyncio.timeout(PATIENCE):
                await engine.until_copied(paused, 50, 4)
        await engine.copy_all()
    assert [len(rows) for rows in await asyncio.to_thread(pair.compare, paused, 4)] == [50] * 4
    await asyncio.to_thread(pair.compare, other, 4)


async def test_topics_to_come_have_the_links_state(pair: Pair) -> None:
    pair.topic("first")
    async with pair.engine() as engine:
        await engine.prepare()
        await change_states(engine, CopyEvent.PAUSE)
        pair.topic("second")
        found = await engine.discovery().search()
        assert not found.replicas
        assert not found.missing
        assert set(found.inactive.values()) == {CopyState.PAUSED}
        assert set(found.inactive) == {f"first-{pair.tag}", f"second-{pair.tag}"}


async def test_a_replicator_that_stood_still_during_a_failover_cannot_write_afterwards(pair: Pair) -> None:
    topic = pair.topic("asleep", 4)
    async with pair.engine() as engine, pair.engine() as late:
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
        await late.prepare()
        await change_states(engine, CopyEvent.FAIL_OVER)
        produce(pair.producer(), topic, 10)
        for runner in engine.runners:
            held = runner.lane.checkpoint.positions
            with pytest.raises(Fenced):
                await runner.lane.commit([], {replica: held[replica.source] for replica in runner.replicas})
        async with copying(late):
            await until_lanes_know(late, topic, CopyState.FAILING_OVER)
        assert (await late.positions())[topic, 0].records == 10
    assert len((await asyncio.to_thread(pair.rows, pair.grape, pair.naming.destination(topic), 1))[0]) == 10


async def test_a_replicator_that_wakes_up_after_a_failover_begins_anew_and_obeys(pair: Pair) -> None:
    topic = pair.topic("awake", 4)
    async with pair.engine() as engine:
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
        await change_states(engine, CopyEvent.FAIL_OVER)
        await change_states(engine, CopyEvent.PROMOTED)
        produce(pair.producer(), topic, 10)
        async with copying(engine):
            await until_lanes_know(engine, topic, CopyState.PROMOTED)
        assert (await engine.positions())[topic, 0].records == 10


async def test_of_two_operators_at_once_one_prevails_in_every_lane(pair: Pair) -> None:
    topic = pair.topic("contended", 4)
    async with pair.engine() as engine:
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
        one, other = link_states(engine, "one@host"), link_states(engine, "other@host")
        await one.read()
        await other.read()
        ended = await asyncio.gather(
            one.change(None, CopyEvent.PAUSE), other.change(None, CopyEvent.FAIL_OVER), return_exceptions=True
        )
        unexpected = [error for error in ended if isinstance(error, BaseException)]
        assert all(isinstance(error, LinkRefused) for error in unexpected), unexpected
        states = link_states(engine)
        await states.read()
        assert len({checkpoint.states[LINK].change for checkpoint in states.checkpoints}) == 1


async def test_a_link_that_was_never_made_has_no_states_to_change(pair: Pair) -> None:
    async with pair.engine() as engine:
        with pytest.raises(LinkRefused, match="no replicator of this link has ever run"):
            await link_states(engine).read()
