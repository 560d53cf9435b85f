"""Changes of the link's SQL, written down by each lane on a real broker before it copies."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from appliance.commands.resumption import Choice, resume
from appliance.engine.write.lane import Lane
from appliance.errors import Fenced
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.model.checkpoint import LaneCheckpoint, Owner
from appliance.link.model.link_sql import LinkSql, SqlChange, history
from appliance.link.model.states import LaneState
from appliance.sql.model.statement import Statement
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")

A, B = Statement("SELECT key FROM records"), Statement("SELECT value FROM records")


async def copied(pair: Pair, statement: Statement | None) -> list[SqlChange]:
    """All changes, after a run with a statement has copied everything."""
    async with pair.engine() as engine:
        engine.statement = statement
        await engine.copy_all()
        checkpoints = await engine._checkpoints()
    return [change for checkpoint in checkpoints for change in checkpoint.sql.values()]


async def test_a_change_is_written_down_with_the_offset_from_which_on_it_holds(pair: Pair) -> None:
    topic = pair.topic("changes")
    written = []
    for statement in (None, A, A, B, None):
        produce(pair.producer(), topic, 10)
        written.append(await copied(pair, statement))
    assert [len(changes) for changes in written] == [0, 1, 1, 2, 3]
    assert [(first, sql.text) for first, sql in history(written[-1], Partition(topic, 0))] == [
        (0, ""),
        (10, A.text),
        (30, B.text),
        (40, ""),
    ]


async def test_a_run_with_other_sql_ends_the_one_before_it_and_is_not_ended_by_its_late_lanes(pair: Pair) -> None:
    topic = pair.topic("older")
    produce(pair.producer(), topic, 10)
    async with pair.engine() as older, pair.engine() as newer:
        older.statement, newer.statement = A, B
        await older.copy_all()
        produce(pair.producer(), topic, 10)
        await newer.copy_all()
        index = newer.runners[0].lane.index
        owner = Owner(older.run, "late", "host", 0, older.generation)
        late = Lane(index, older.destination, pair.naming, owner, 60.0)
        await late.start()
        with pytest.raises(Fenced, match=newer.run):
            await late.agree_on_sql(older.sql)
        assert late.state is LaneState.FENCED
        assert newer.run in str(await late.taken_by())
        produce(pair.producer(), topic, 10)
        await newer.copy_all()
        changes = [change for each in await newer._checkpoints() for change in each.sql.values()]
    assert [(first, sql.text) for first, sql in history(changes, Partition(topic, 0))] == [(0, A.text), (10, B.text)]


async def test_case_420_a_lane_that_saw_no_change_between_two_to_the_same_sql_writes_the_second_down(
    pair: Pair,
) -> None:
    topic = pair.topic("returns")
    produce(pair.producer(), topic, 10)
    await copied(pair, None)
    async with pair.engine() as engine:
        await engine.establish()
        await engine.assign()
        index = engine.runners[0].lane.index
        for generation, sql in enumerate([LinkSql(1, "A"), LinkSql(1, "A"), LinkSql(3, "A"), LinkSql(4)], start=2):
            lane = Lane(index, engine.destination, pair.naming, Owner("run", "w", "h", 0, generation), 60.0)
            assert await _agreed(lane, sql)
    assert [change.sql.number for change in lane.checkpoint.sql.values()] == [1, 3, 4]


async def test_case_471_what_is_copied_again_was_copied_by_the_sql_of_that_time(pair: Pair) -> None:
    topic = pair.topic("again")
    for statement in (None, A, B):
        produce(pair.producer(), topic, 10)
        await copied(pair, statement)
    assert await resume(pair.settings(), Choice(topic, 0, "5"), lambda _: None) == 1
    changes = await copied(pair, B)
    assert [(first, sql.text) for first, sql in history(changes, Partition(topic, 0))] == [(0, ""), (5, B.text)]


class Killed:
    """A cluster whose caller is killed in one of its calls."""

    def __init__(self, cluster: KafkaCluster, calls: int) -> None:
        self._cluster = cluster
        self.left = calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._cluster, name)
        return self._counted(found) if asyncio.iscoroutinefunction(found) else found

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise asyncio.CancelledError
            return await call(*arguments, **named)

        return counted


async def test_a_change_that_is_killed_in_any_call_is_made_by_the_next_start(pair: Pair) -> None:
    topic = pair.topic("killed")
    produce(pair.producer(), topic, 10)
    await copied(pair, None)
    async with pair.engine() as engine:
        await engine.establish()
        await engine.assign()
        index = engine.runners[0].lane.index
        before, ended, calls = LinkSql(), False, 0
        while not ended:
            sql = LinkSql(before.number + 1, f"SELECT {calls}")
            killed = Killed(engine.destination, calls)
            lane = Lane(index, killed, pair.naming, Owner("killed", "w", "h", 0, 2 * calls), 60.0)  # type: ignore[arg-type]
            ended = await _agreed(lane, sql)
            known = LaneCheckpoint()
            await peek_checkpoint(engine.destination, pair.naming.positions_topic, index, known)
            assert history(known.sql.values(), Partition(topic, 0))[-1][1] in (before, sql)
            again = Lane(index, engine.destination, pair.naming, Owner("again", "w", "h", 0, 2 * calls + 1), 60.0)
            assert await asyncio.wait_for(_agreed(again, sql), PATIENCE)
            (first, raw), (offset, newest) = history(again.checkpoint.sql.values(), Partition(topic, 0))
            assert (first, raw, offset, newest) == (0, LinkSql(), 10, sql)
            before, calls = sql, calls + 1
        assert calls > 4


async def _agreed(lane: Lane, sql: LinkSql) -> bool:
    """True if it was not killed."""
    try:
        await lane.start()
        await lane.agree_on_sql(sql)
    except asyncio.CancelledError:
        return False
    return True
