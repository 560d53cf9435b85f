"""Fetch sessions (KIP-227) on real brokers: their answers, and no loss when a session ends."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from appliance.engine.model.chunk import Chunk
from appliance.engine.read.buffer import Limits, ReadyQueue
from appliance.errors import BrokerBusy
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.fetch import FetchExchange, FetchLimits, Session, WantedPartition
from appliance.kafka.client.fetch_session import FetchSession
from appliance.kafka.protocol.metadata import Partition, Topic
from appliance.link.model.replicas import Replica
from tests.support.engine import Engine, Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMITS = FetchLimits(1_000_000, 0.2)
FINAL_EPOCH = -1


async def answered(connection: BrokerConnection, session: FetchSession) -> list[tuple[Partition, int]]:
    """One Fetch: the partitions with news, and their bytes."""
    answer = await connection.ask(session.ask(LIMITS, offers_ids=True))
    session.note_answer(answer.session_id)
    return [(fetched.partition, len(fetched.records)) for fetched in answer.partitions]


def wanted(found: Topic, partition: int, position: int = 0) -> WantedPartition:
    return WantedPartition(Partition(found.name, partition), found.id, position, 65_536)


async def opened(engine: Engine, topic: str) -> tuple[Topic, BrokerConnection, FetchSession]:
    """A session that requests every partition of a new topic, once its leader has no more news about them."""
    async with asyncio.timeout(PATIENCE):
        while topic not in (metadata := await engine.source.metadata([topic])).topics:
            await asyncio.sleep(0.02)
        found = metadata.topics[topic]
        connection = await engine.source.broker(0, "fetch")
        session = FetchSession()
        for number in range(len(found.leaders)):
            session.want(wanted(found, number))
        assert len(await answered(connection, session)) == len(found.leaders)
        while await answered(connection, session):
            await asyncio.sleep(0.02)
    return found, connection, session


async def test_in_a_session_only_partitions_with_news_are_named_and_answered(pair: Pair) -> None:
    topic = pair.topic("news", 20)
    async with pair.engine() as engine:
        found, connection, session = await opened(engine, topic)
        produce(pair.producer(), topic, 1, 7)
        ((partition, size),) = await answered(connection, session)
        assert partition == (topic, 7)
        assert size > 0
        assert (await answered(connection, session))[0][0] == (topic, 7)  # it has not got our new position
        session.want(wanted(found, 7, position=1))
        assert await answered(connection, session) == []


async def test_a_partition_that_was_dropped_is_not_sent_until_it_is_wanted_again(pair: Pair) -> None:
    topic = pair.topic("dropped", 2)
    async with pair.engine() as engine:
        found, connection, session = await opened(engine, topic)
        session.drop(Partition(topic, 0))
        produce(pair.producer(), topic, 1, 0)
        assert await answered(connection, session) == []
        session.want(wanted(found, 0))
        ((partition, _),) = await answered(connection, session)
        assert partition == (topic, 0)


async def test_copied_partitions_are_fetched_in_a_session(pair: Pair) -> None:
    topic = pair.topic("session", 3)
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
        first = await engine.fetch_session()
        for turn in range(5):
            produce(pair.producer(), topic, 10, turn % 3)
            await engine.copy_all()
        later = await engine.fetch_session()
    assert first.id == later.id
    assert first.epoch < later.epoch
    pair.compare(topic, 3)


async def test_a_session_that_the_broker_has_ended_is_made_anew_and_nothing_is_lost(pair: Pair) -> None:
    topic = pair.topic("evicted", 3)
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
        for turn in range(3):
            before = await engine.fetch_session()
            connection = await engine.source.any_broker()
            await connection.ask(FetchExchange((), LIMITS, True, {}, Session(before.id, FINAL_EPOCH)))
            produce(pair.producer(), topic, 10, turn)
            await engine.copy_all()
            assert (await engine.fetch_session()).id != before.id
        assert engine.faults == {}
    pair.compare(topic, 3)


async def test_a_session_that_has_gone_on_without_us_is_made_anew_and_nothing_is_lost(pair: Pair) -> None:
    topic = pair.topic("stolen", 2)
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
        before = await engine.fetch_session()
        connection = await engine.source.any_broker()
        names = engine.fetcher.session._names
        stolen = None
        for epoch in range(before.epoch, before.epoch + 20):
            with contextlib.suppress(BrokerBusy):
                exchange = FetchExchange((), replace(LIMITS, wait=0), True, names, Session(before.id, epoch))
                stolen = stolen or await connection.ask(exchange)
        assert stolen is not None
        produce(pair.producer(), topic, 10, 1)
        await engine.copy_all()
        assert (await engine.fetch_session()).id != before.id
        assert engine.faults == {}
    pair.compare(topic, 2)


async def read_by(engine: Engine, topic: str) -> list[Replica]:
    metadata = await engine.source.metadata([topic])
    found = metadata.topics[topic]
    return [Replica(topic, number, topic, found.id, found.id) for number in range(len(found.leaders))]


async def taken_until(engine: Engine, ready: ReadyQueue, records: int) -> list[Chunk]:
    taken: list[Chunk] = []
    async with asyncio.timeout(PATIENCE):
        while sum(chunk.records for chunk in taken) < records:
            await ready.wait()
            ready.clear()
            taken += engine.reader.take(ready, 2**30)
    return taken


async def test_a_partition_whose_buffer_is_full_is_not_sent_again_and_again(pair: Pair) -> None:
    topic = pair.topic("full", 2)
    produce(pair.producer(), topic, 1_000, size=20_000)
    ready, stuck = ReadyQueue(), ReadyQueue()
    async with pair.engine() as engine:
        full, other = await read_by(engine, topic)
        engine.reader.read(full, 0, -1, stuck, Limits())
        engine.reader.read(other, 0, -1, ready, Limits())
        async with asyncio.timeout(PATIENCE):
            while not engine.reader.full(stuck):
                stuck.clear()
                await stuck.wait()
        produce(pair.producer(), topic, 1, 1)
        await taken_until(engine, ready, 1)
        before = (await engine.fetch_session()).epoch
        connection = await engine.source.broker(0, "fetch")
        sizes = set()
        while (await engine.fetch_session()).epoch < before + 5:
            await asyncio.sleep(0.005)
            sizes.add(connection.newest.bytes)
        assert max(sizes) < 1_000
        taken = await taken_until(engine, stuck, 1_000)
    assert [chunk.next_offset for chunk in taken] == sorted({chunk.next_offset for chunk in taken})
    assert sum(chunk.records for chunk in taken) == 1_000


async def test_an_answer_that_was_on_its_way_when_a_partition_was_given_up_does_not_count(pair: Pair) -> None:
    topic = pair.topic("given-up")
    produce(pair.producer(), topic, 10)
    ready = ReadyQueue()
    async with pair.engine() as engine:
        (replica,) = await read_by(engine, topic)
        engine.reader.read(replica, 10, -1, ready, Limits())
        await engine.fetch_session()
        produce(pair.producer(), topic, 10)
        engine.reader.read(replica, 0, -1, ready, Limits())
        taken = await taken_until(engine, ready, 20)
    assert taken[0].batches[0].first_offset == 0
    assert sum(chunk.records for chunk in taken) == 20
