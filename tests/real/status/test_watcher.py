"""The console's view of real clusters, during and after a copy by an engine."""

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Callable

import pytest
from confluent_kafka.admin import AdminClient

from appliance.link.handle import Link
from appliance.settings.values import OnGap
from appliance.status.model.document import health
from appliance.status.model.snapshot import LinkState, Snapshot
from appliance.status.model.topic_status import PartitionStatus
from appliance.status.watcher import Watcher
from tests.support.administration import delete_before
from tests.support.engine import LANES, Engine, Pair
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


@contextlib.asynccontextmanager
async def watching(pair: Pair, **changed: str) -> AsyncIterator[Watcher]:
    """A watcher with its own connections."""
    settings = pair.settings(**changed)
    async with Link.open(settings) as link:
        yield Watcher(link, settings)


@contextlib.asynccontextmanager
async def copied(pair: Pair, name: str) -> AsyncIterator[tuple[str, Watcher, Engine]]:
    """A topic with ten records, and the watcher and the engine of a link that has copied them."""
    topic = pair.topic(name)
    produce(pair, topic, 10)
    async with watching(pair) as watcher, pair.engine() as engine:
        await engine.copy_all()
        await until(watcher, is_copied)
        yield topic, watcher, engine


def is_copied(snapshot: Snapshot) -> bool:
    return snapshot.state is LinkState.COPIED


async def until(watcher: Watcher, expected: Callable[[Snapshot], bool]) -> Snapshot:
    """Take snapshots until one is as expected: a commit becomes visible when its markers are written."""
    deadline = time.monotonic() + PATIENCE
    while not expected(snapshot := await watcher.collect()):
        assert time.monotonic() < deadline, snapshot
        await asyncio.sleep(0.05)
    return snapshot


async def copied_until(engine: Engine, watcher: Watcher, expected: Callable[[Snapshot], bool]) -> Snapshot:
    """Copy until a snapshot is as expected."""
    waiting = asyncio.create_task(until(watcher, expected))
    await engine.copy_until(waiting)
    return await waiting


def only(snapshot: Snapshot) -> PartitionStatus:
    """The only partition."""
    (partition,) = snapshot.partitions
    return partition


def produce(pair: Pair, topic: str, count: int, partition: int = 0, size: int = 100) -> None:
    producer = pair.producer()
    for _ in range(count):
        producer.produce(topic, b"v" * size, partition=partition)
    assert producer.flush(PATIENCE) == 0


async def test_before_any_replicator_has_run_nothing_is_copied_and_all_of_it_is_to_be(pair: Pair) -> None:
    topic = pair.topic("new", 2)
    produce(pair, topic, 10)
    async with watching(pair) as watcher:
        snapshot = await watcher.collect()
    assert snapshot.state is LinkState.NEVER_RUN
    assert [(p.copied, p.lag_records, p.lag_seconds) for p in snapshot.partitions] == [(0, 10, None), (0, 0, 0)]


async def test_copied_and_lag_are_what_both_clusters_say(pair: Pair) -> None:
    topic = pair.topic("lag", 2)
    for partition in range(2):
        produce(pair, topic, 20, partition)
    async with watching(pair) as watcher, pair.engine() as engine:
        await engine.copy_all()
        copied = await until(watcher, is_copied)
        assert [(p.copied, p.lag_records, p.lag_seconds) for p in copied.partitions] == [(20, 0, 0)] * 2
        assert {lane.owner.run for lane in copied.lanes if lane.owner} == {engine.run}
        assert len(copied.lanes) == LANES
        produce(pair, topic, 30)
        behind = await watcher.collect()
        assert behind.state is LinkState.COPYING
        assert [(p.copied, p.lag_records) for p in behind.partitions] == [(20, 30), (20, 0)]
        assert behind.topics[0].lag_seconds == 0  # the look before has seen no more than was copied
        lag = (await watcher.collect()).topics[0].lag_seconds
        assert lag is not None
        assert 0 < lag < PATIENCE
        await engine.copy_all()
        again = await until(watcher, is_copied)
        assert [p.copied for p in again.partitions] == [50, 20]
        assert again.topics[0].rate is not None
        async with watching(pair) as other:
            fresh = await other.collect()
        assert [(p.copied, p.next_offset) for p in fresh.partitions] == [
            (p.copied, p.next_offset) for p in again.partitions
        ]


async def test_markers_and_aborted_records_leave_no_lag(pair: Pair) -> None:
    topic = pair.topic("markers")
    producer = pair.producer(**{"transactional.id": topic})
    producer.init_transactions(PATIENCE)
    for commit in (True, False):
        producer.begin_transaction()
        for _ in range(5):
            producer.produce(topic, b"v")
        producer.flush(PATIENCE)
        (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE)
    async with watching(pair) as watcher, pair.engine() as engine:
        await engine.copy_all()
        snapshot = await until(watcher, is_copied)
    assert (only(snapshot).copied, only(snapshot).end_offset, only(snapshot).lag_records) == (5, 12, 0)


async def test_a_stopped_partition_says_why_and_since_when(pair: Pair) -> None:
    topic = pair.topic("oversize")
    pair.make_copy(topic, 1, **{"max.message.bytes": "20000"})
    produce(pair, topic, 10)
    produce(pair, topic, 1, size=50_000)
    before = time.time() * 1000
    async with watching(pair) as watcher, pair.engine() as engine:
        await engine.prepare()
        status = only(await copied_until(engine, watcher, lambda snapshot: snapshot.state is LinkState.STOPPED))
    assert status.stopped is not None
    assert "MESSAGE_TOO_LARGE" in status.stopped.reason
    assert before <= status.stopped.since <= time.time() * 1000
    assert (status.copied, status.lag_records) == (10, 1)


async def test_a_gap_that_was_left_is_told(pair: Pair) -> None:
    topic = pair.topic("gap")
    produce(pair, topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
    produce(pair, topic, 10)
    delete_before(pair.orange, topic, 0, 15)
    async with watching(pair) as watcher, pair.engine(on_gap=OnGap.RECORD) as engine:
        await engine.copy_all()
        snapshot = await until(watcher, is_copied)
    gaps = only(snapshot).gaps
    assert gaps is not None
    assert [(gap.first, gap.next, gap.cause) for gap in gaps] == [(10, 15, "deleted at the source")]
    assert only(snapshot).copied == 15


async def test_an_open_transaction_is_named_and_gone_when_it_is_over(pair: Pair) -> None:
    topic = pair.topic("open")
    produce(pair, topic, 10)
    before = time.time() * 1000
    opened = pair.producer(**{"transactional.id": f"till-{pair.tag}"})
    opened.init_transactions(PATIENCE)
    opened.begin_transaction()
    opened.produce(topic, b"v")
    opened.flush(PATIENCE)
    produce(pair, topic, 10)
    async with watching(pair) as watcher, pair.engine() as engine:
        await engine.prepare()
        snapshot = await copied_until(engine, watcher, lambda seen: only(seen).copied == 10 and bool(only(seen).held))
        hold = only(snapshot).held
        assert hold is not None
        assert (hold.transaction.transactional_id, hold.transaction.first_offset) == (f"till-{pair.tag}", 10)
        assert (hold.waiting, hold.transaction.producer_id >= 0) == (11, True)
        assert before - 1000 <= hold.transaction.began <= time.time() * 1000
        assert is_copied(snapshot)  # the end up to which records may be copied
        opened.commit_transaction(PATIENCE)
        await engine.copy_all()
        snapshot = await until(watcher, is_copied)
    assert (only(snapshot).held, only(snapshot).copied) == (None, 21)


async def test_the_newest_of_two_replicators_is_the_one_that_has_the_lanes(pair: Pair) -> None:
    topic = pair.topic("two", LANES)

    def owned_by(engine: Engine) -> Callable[[Snapshot], bool]:
        return lambda snapshot: {lane.owner.run if lane.owner else "" for lane in snapshot.lanes} == {engine.run}

    async with watching(pair) as watcher, pair.engine() as older, pair.engine() as newer:
        for engine in (older, newer):
            produce(pair, topic, 10)
            await engine.copy_all()
            await until(watcher, owned_by(engine))


async def test_positions_that_somebody_leaves_undecided_are_named_with_their_lane(pair: Pair) -> None:
    async with copied(pair, "hanging") as (_, watcher, _):
        hanging = pair.producer(**{**pair.grape.client_configuration(), "transactional.id": f"hanging-{pair.tag}"})
        hanging.init_transactions(PATIENCE)
        hanging.begin_transaction()
        hanging.produce(pair.naming.positions_topic, b"{}", b"{}", partition=1)
        hanging.flush(PATIENCE)
        snapshot = await until(watcher, lambda snapshot: any(lane.held for lane in snapshot.lanes))
        (lane,) = [lane for lane in snapshot.lanes if lane.held]
        assert lane.held is not None
        assert (lane.lane, lane.held.transactional_id) == (1, f"hanging-{pair.tag}")
        hanging.abort_transaction(PATIENCE)
        await until(watcher, lambda snapshot: not any(lane.held for lane in snapshot.lanes))


async def test_a_positions_topic_that_is_gone_takes_what_it_said_with_it(pair: Pair) -> None:
    async with copied(pair, "forgotten") as (_, watcher, _):
        positions = pair.naming.positions_topic
        admin = AdminClient(pair.grape.client_configuration())
        admin.delete_topics([positions])[positions].result(PATIENCE)
        snapshot = await until(watcher, lambda snapshot: snapshot.state is LinkState.NEVER_RUN)
    assert (only(snapshot).copied, snapshot.lanes) == (0, ())


async def test_a_foreign_record_among_the_positions_is_unknown_and_not_guessed(pair: Pair) -> None:
    async with copied(pair, "garbage") as (_, watcher, _):
        stranger = pair.producer(**pair.grape.client_configuration())
        stranger.produce(pair.naming.positions_topic, b"hello", b"key", partition=0)
        stranger.flush(PATIENCE)
        snapshot = await until(watcher, lambda snapshot: snapshot.destination.unknown is not None)
    assert snapshot.destination.unknown is not None
    assert "holds something else" in snapshot.destination.unknown.reason
    assert only(snapshot).copied is None


async def test_a_copy_that_is_gone_or_made_anew_is_unknown_and_not_copied(pair: Pair) -> None:
    async with copied(pair, "copy") as (topic, watcher, _):
        for change, what in (
            (pair.delete_copy, "is not there any more"),
            (functools.partial(pair.make_copy, partitions=1), "was deleted and made anew"),
        ):
            await asyncio.to_thread(change, topic)
            snapshot = await until(watcher, lambda snapshot, what=what: what in str(only(snapshot).unknown))
            assert (only(snapshot).lag_records, snapshot.state) == (None, LinkState.UNKNOWN)
            well, told = health(snapshot, snapshot.at)
            assert not well
            assert what in str(told["troubles"])


@pytest.mark.parametrize("side", ["SOURCE", "DESTINATION"])
async def test_a_cluster_that_does_not_answer_is_unknown_and_the_other_one_is_not(pair: Pair, side: str) -> None:
    async with copied(pair, "silent"):
        """The clusters hold what was copied."""
    async with watching(pair, **{f"{side}_BROKER_SERVERS": "127.0.3.9:9"}) as watcher:
        first, second = await watcher.collect(), await watcher.collect()
    assert first.state is LinkState.UNKNOWN
    silent, other = (second.source, second.destination) if side == "SOURCE" else (second.destination, second.source)
    assert other.unknown is None
    assert silent.unknown is not None
    assert f"{side}_BROKER_SERVERS" in silent.unknown.reason
    assert silent.unknown.since <= first.at
    assert only(second).lag_records is None
    assert only(second).copied == (10 if side == "SOURCE" else None)
