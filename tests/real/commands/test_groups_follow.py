"""Groups follow what is really copied: a consumer that moves to the destination reads on with the next record."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from appliance.commands.resumption import Choice, resume
from appliance.driver.background import Background
from appliance.engine.problem_log import ProblemLog
from appliance.groups.group_io import coordinated, read_offsets
from appliance.groups.group_service import GroupService, group_sync
from appliance.groups.group_sync import GroupSync
from appliance.groups.model.group_plan import GroupState
from appliance.groups.model.newest_groups import NewestGroups
from appliance.kafka.client.group_offsets import Commit
from appliance.kafka.client.groups import Group
from appliance.kafka.client.share_offsets import alter_starts
from appliance.kafka.protocol.metadata import Partition
from appliance.status.model.document import document
from appliance.status.watcher import Watcher
from tests.support.engine import Engine, Pair
from tests.support.failing_back import delete_records
from tests.support.groups import (
    CLASSIC,
    CONSUMER,
    commit,
    committed,
    consume,
    produce_numbered,
    share,
    wait_for_coordinator,
)
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def pair(pair: Pair) -> Pair:
    """A link that syncs its groups."""
    return replace(pair, groups=True)


@contextlib.asynccontextmanager
async def following(pair: Pair) -> AsyncIterator[tuple[Engine, GroupSync]]:
    """An engine, and the sync of a process that has just started."""
    async with pair.engine() as engine:
        yield engine, group_sync(engine.link(pair.settings()), pair.settings())


async def until(sync: GroupSync, state: GroupState) -> int | None:
    """Rounds until the only group is in a state; its lag."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = list((await sync.round()).values())
            if [group.state for group in found] == [state]:
                return found[0].lag
            await asyncio.sleep(0.1)


def produce_in_transactions(pair: Pair, topic: str, partitions: int, count: int) -> list[bytes]:
    """Records in transactions, every other of which is aborted: the copies lie elsewhere than their sources."""
    producer = pair.producer(**{"transactional.id": topic})
    producer.init_transactions(PATIENCE)
    values = []
    for first in range(0, count, 5):
        for lost in (False, True):
            producer.begin_transaction()
            for number in range(partitions):
                some = produce_numbered(producer, topic, 5, number, first + lost * 1000)
                values += [] if lost else some
            if lost:
                producer.abort_transaction(PATIENCE)
            else:
                producer.commit_transaction(PATIENCE)
    return values


@pytest.mark.parametrize(("before", "after"), [(CLASSIC, CLASSIC), (CONSUMER, CONSUMER), (CLASSIC, CONSUMER)])
async def test_a_consumer_that_moves_to_the_destination_reads_each_record_once(
    pair: Pair, before: str, after: str
) -> None:
    topic, group = pair.topic("orders", 3), f"g-{pair.tag}"
    values = produce_in_transactions(pair, topic, 3, 40)
    read = consume(pair.orange, group, topic, 70, before, note="noon")
    async with following(pair) as (engine, sync):
        await engine.copy_all()
        assert await until(sync, GroupState.SYNCED) == 0
    copy = pair.naming.destination(topic)
    assert {note for _, note in committed(pair.grape, group).values()} == {"noon"}
    rest = consume(pair.grape, group, copy, len(values) - len(read), after)
    assert sorted(read + rest) == sorted(values)


async def test_a_group_that_was_ahead_of_the_copy_misses_nothing_and_reads_nothing_again(pair: Pair) -> None:
    topic, group = pair.topic("orders", 2), f"g-{pair.tag}"
    produce_in_transactions(pair, topic, 2, 10)
    async with following(pair) as (engine, sync):
        await engine.copy_all()
        produce_in_transactions(pair, topic, 2, 10)
        consume(pair.orange, group, topic, 40)
        lag = await until(sync, GroupState.BEHIND)
        assert lag is None or lag > 0
        await engine.copy_all()
        assert await until(sync, GroupState.SYNCED) == 0
        last = [value for number in range(2) for value in produce_numbered(pair.producer(), topic, 7, number, 500)]
        await engine.copy_all()
    assert sorted(consume(pair.grape, group, pair.naming.destination(topic), 14)) == sorted(last)


async def test_a_share_group_that_moves_to_the_destination_misses_nothing(pair: Pair) -> None:
    topic, group = pair.topic("orders"), f"g-{pair.tag}"
    wait_for_coordinator(pair.orange, group)
    async with following(pair) as (engine, sync):
        values = produce_in_transactions(pair, topic, 1, 20)
        (begun,), _ = await coordinated(engine.source, [Group(group, -1, kind="share")])
        assert not await alter_starts(engine.source, {begun: {Partition(topic, 0): Commit(0)}})
        share(pair.orange, group, topic, 20)
        values += produce_in_transactions(pair, topic, 1, 20)
        share(pair.orange, group, topic, 20)
        start = (await read_offsets(engine.source, [begun]))[0][begun.name][topic, 0].offset
        assert start > 0
        await engine.copy_all()
        assert await until(sync, GroupState.SYNCED) == 0
        (made,) = sync.plans.values()
        (own,) = made.partitions
        assert own.upstream.offset == start
        assert own.translation.offset is not None
        assert own.translation.offset < start  # aborted records have no copy
        values += produce_numbered(pair.producer(), topic, 5, first=700)
        await engine.copy_all()
        rest = share(pair.grape, group, pair.naming.destination(topic), 5)
    assert rest == values[-len(rest) :]


async def test_case_726_a_group_below_the_start_of_a_log_on_either_side_continues_at_the_first_record_of_the_copy(
    pair: Pair,
) -> None:
    # Below the source's start it was unknown for ever; a commit below the copy's start let `latest` jump to the end.
    topic, group = pair.topic("orders"), f"g-{pair.tag}"
    copy = pair.naming.destination(topic)
    values = produce_numbered(pair.producer(), topic, 20)
    delete_records(pair.orange, topic, 10)
    commit(pair.orange, group, {(topic, 0): 4})
    async with following(pair) as (engine, sync):
        await engine.copy_all()
        assert await until(sync, GroupState.SYNCED) == 0
        assert committed(pair.grape, group) == {(copy, 0): (0, "")}
        delete_records(pair.grape, copy, 3)
        await until(group_sync(engine.link(pair.settings()), pair.settings()), GroupState.SYNCED)
    assert committed(pair.grape, group) == {(copy, 0): (3, "")}
    assert consume(pair.grape, group, copy, 7) == values[13:]


async def test_case_727_a_group_is_not_moved_past_records_that_are_to_be_copied_again(pair: Pair) -> None:
    # After a backward reset its place was the copy's end, past records that the copy held and did not hold again yet.
    topic, group = pair.topic("orders"), f"g-{pair.tag}"
    copy = pair.naming.destination(topic)
    values = produce_numbered(pair.producer(), topic, 20)
    commit(pair.orange, group, {(topic, 0): 12})
    async with following(pair) as (engine, sync):
        await engine.copy_all()
        await until(sync, GroupState.SYNCED)
        assert await resume(pair.settings(), Choice(topic, 0, "4"), str) == 1
        assert await until(sync, GroupState.BEHIND) == 8
    assert committed(pair.grape, group) == {(copy, 0): (12, "")}
    assert consume(pair.grape, group, copy, 8) == values[12:]


async def test_groups_follow_beside_the_replicator_and_its_status_shows_them(pair: Pair) -> None:
    topic, group = pair.topic("orders", 2), f"g-{pair.tag}"
    newest, problems = NewestGroups(), ProblemLog()
    async with pair.engine() as engine:
        produce_numbered(pair.producer(), topic, 20)
        commit(pair.orange, group, {(topic, 0): 12})
        background = Background(problems)
        background.start([GroupService(engine.link(pair.settings()), pair.settings(), newest, problems)])
        await engine.copy_all()
        async with asyncio.timeout(PATIENCE):
            while [seen.state for seen in newest.plans] != [GroupState.SYNCED]:
                await asyncio.sleep(0.05)
        await background.stop()
        assert not newest.problem
        assert problems.open == {}
        for shared in (newest, None):
            watcher = Watcher(engine.link(pair.settings()), pair.settings(), None, shared)
            shown = document(await watcher.collect())
            (own,) = shown["groups"]  # type: ignore[misc]
            assert (own["group"], own["state"], own["lag"]) == (group, "synced", 0)
            assert (own["partitions"][0]["source_offset"], shown["groups_unknown"]) == (12, None)
