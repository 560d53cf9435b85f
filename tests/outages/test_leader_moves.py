"""Leaders that move while all brokers live, and partitions without a leader that answers, on real brokers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic

from appliance.commands.resumption import Choice, resume
from appliance.engine.read.buffer import Limits, ReadyQueue
from appliance.engine.read.source_reader import SourceReader
from appliance.errors import ApplianceError, Unreachable
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import NOWHERE, Partition
from appliance.link.model.replicas import Replica
from testbed.cluster import Cluster
from tests.support.administration import COMPACTED, configure, make_topic
from tests.support.engine import Engine, Pair
from tests.support.leaders import described, move
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import SOON, end

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def moving(pair: Pair, three_brokers: Cluster) -> Pair:
    return Pair(three_brokers, pair.grape, pair.tag)


def topic_on(pair: Pair, name: str, *replicas: Sequence[int], **configs: str) -> str:
    """A source topic with these replicas for each partition, the leader first."""
    full = f"{name}-{pair.tag}"
    make_topic(pair.orange, NewTopic(full, len(replicas), replica_assignment=list(map(list, replicas)), config=configs))
    return full


def asked(engine: Engine, topic: str) -> set[int]:
    """The nodes from which a topic's partition is read now."""
    return {fetcher.node for fetcher in engine.reader.router.fetchers.values() if (topic, 0) in fetcher.session._wanted}


def offsets(cluster: Cluster, topic: str) -> set[int]:
    """The values of all records that a consumer sees."""
    reading = {"group.id": "v", "enable.partition.eof": True, "fetch.wait.max.ms": SOON}
    consumer = Consumer({**cluster.client_configuration(), **reading})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = set()
        while (message := consumer.poll(PATIENCE)) is not None and message.error() is None:
            found.add(message.offset() or 0)
        return found
    finally:
        consumer.close()


async def test_reading_follows_the_leader_though_the_old_one_lives(moving: Pair) -> None:
    topic = topic_on(moving, "moves", [1, 2])
    produce(moving.producer(), topic, 10)
    async with moving.engine() as engine:
        await engine.copy_all()
        for leader, follower in ((2, 1), (1, 2)):
            assert asked(engine, topic) == {follower}
            await move(moving.orange, {Partition(topic, 0): (leader, follower)})
            async with asyncio.timeout(PATIENCE):
                while asked(engine, topic) != {leader}:
                    await asyncio.sleep(0.02)
            produce(moving.producer(), topic, 10)
            await engine.copy_all()
        assert engine.faults == {}
    assert len(moving.compare(topic)[0]) == 30


async def test_case_630_a_place_under_a_leader_that_writes_nothing_is_read_on_from_under_the_next_one(
    moving: Pair,
) -> None:
    # No log has a batch of the place's epoch; the next leader names the one before it.
    topic = topic_on(moving, "silent", [1, 2])
    produce(moving.producer(), topic, 10)
    async with moving.engine() as engine:
        await engine.copy_all()
        before = (await engine.positions())[topic, 0]
        await move(moving.orange, {Partition(topic, 0): (2, 1)})
        assert await resume(moving.settings(), Choice(topic, 0, "latest"), lambda _: None) == 1
        held = (await engine.positions())[topic, 0]
        assert held.next_offset == before.next_offset
        assert held.leader_epoch > before.leader_epoch
        await move(moving.orange, {Partition(topic, 0): (1, 2)})
        produce(moving.producer(), topic, 10)
        await engine.copy_all()
        assert engine.faults == {}
    assert len(moving.compare(topic)[0]) == 20


async def test_a_topic_that_gets_its_id_while_it_is_read_is_read_on(moving: Pair) -> None:  # invariant G
    topic = topic_on(moving, "upgraded", [1, 2])
    produce(moving.producer(), topic, 10)
    ready = ReadyQueue()
    async with moving.engine() as engine:
        known = (await engine.source.metadata([topic])).topics[topic]
        replica = Replica(topic, 0, topic, known.id, known.id)
        engine.reader.read(replace(replica, source_id=NOWHERE), 0, -1, ready, Limits())
        async with asyncio.timeout(PATIENCE):
            await ready.wait()
        assert engine.reader.take_stops(ready) == []
        assert sum(chunk.records for chunk in engine.reader.take(ready, 2**30)) == 10


async def test_a_replica_rebuilt_from_a_compacted_log_is_not_taken_for_a_truncated_one(moving: Pair) -> None:
    # The last copied records have an epoch of which a replica, rebuilt from the remaining records, has none.
    topic = topic_on(moving, "rebuilt", [1, 2], **COMPACTED)
    producer = moving.producer()

    def write(*keys: int) -> None:
        for key in keys:
            producer.produce(topic, b"value", b"%d" % key)
            assert producer.flush(PATIENCE) == 0

    write(-1)
    await move(moving.orange, {Partition(topic, 0): (2, 1)})
    write(*range(20))
    async with moving.engine() as engine:
        await engine.copy_all()
    position = end(moving.orange, topic, 0)
    await move(moving.orange, {Partition(topic, 0): (1, 2)})
    async with asyncio.timeout(PATIENCE):
        while set(range(1, position)) & await asyncio.to_thread(offsets, moving.orange, topic):
            write(*range(20), 99)
            await asyncio.sleep(0.5)
            write(99)  # rolls the segment: earlier ones are cleaned
    await move(moving.orange, {Partition(topic, 0): (0,)})
    configure(moving.orange, topic, **{"cleanup.policy": "delete", "segment.ms": None})
    async with moving.engine() as engine:
        await engine.copy_all()
        assert engine.faults == {}
        held = (await engine.positions())[topic, 0]
    assert held.stopped == ""
    assert held.next_offset == end(moving.orange, topic, 0) > position


async def test_a_partition_without_a_leader_is_named_and_keeps_no_other_from_being_read(moving: Pair) -> None:
    alone, other = topic_on(moving, "alone", [1]), topic_on(moving, "other", [2])
    for topic in (alone, other):
        produce(moving.producer(), topic, 10)
    async with moving.engine() as engine:
        await engine.copy_all()
        await moving.orange.kill(1)
        async with asyncio.timeout(PATIENCE):
            while (await asyncio.to_thread(described, moving.orange, [alone]))[alone, 0].leader >= 0:
                await asyncio.sleep(0.1)
        produce(moving.producer(), other, 10)
        reading = asyncio.create_task(engine.caught_up(besides=(alone, 0)))
        await engine.copy_until(reading)
        async with asyncio.timeout(PATIENCE):
            while f"{alone}-0 at its leader" not in engine.faults:
                await asyncio.sleep(0.02)
        assert not [subject for subject in engine.faults if other in subject]
        assert "has no leader now" in str(engine.faults[f"{alone}-0 at its leader"])
        await moving.orange.restart(1)
        produce(moving.producer(), alone, 10)
        await engine.copy_all()
        async with asyncio.timeout(PATIENCE):
            while engine.faults:
                await asyncio.sleep(0.02)
    assert [len(moving.compare(topic)[0]) for topic in (alone, other)] == [20, 20]


async def test_a_leader_that_cannot_be_reached_is_named_until_others_lead_its_partitions_and_these_are_read(
    moving: Pair,
) -> None:
    hidden, seen = topic_on(moving, "hidden", [1]), topic_on(moving, "seen", [2])
    for topic in (hidden, seen):
        produce(moving.producer(), topic, 10)
    unreachable = moving.orange.plan.nodes[1].address
    refused: list[str] = []

    async def resolve(host: str) -> Sequence[str]:
        if host == unreachable:
            refused.append(host)
            raise Unreachable(f"{host} is not allowed")
        return (host,)

    faults: dict[str, ApplianceError | None] = {}
    ready = ReadyQueue()
    async with moving.engine() as engine, KafkaCluster(engine.source.settings, resolve, "test") as source:
        reader = SourceReader(source, faults.__setitem__)
        for topic in (hidden, seen):
            known = (await engine.source.metadata([topic])).topics[topic]
            reader.read(Replica(topic, 0, topic, known.id, known.id), 0, -1, ready, Limits())
        async with asyncio.timeout(PATIENCE):
            await ready.wait()
        (chunk,) = reader.take(ready, 2**30)
        async with asyncio.timeout(PATIENCE):
            while len(refused) < 3:
                await asyncio.sleep(0.02)
        named = dict(faults)
        await move(moving.orange, {(hidden, 0): (2,)})
        async with asyncio.timeout(PATIENCE):
            while faults["source broker 1"] is not None:
                await asyncio.sleep(0.02)
        await reader.close()
    assert (chunk.replica.source_topic, chunk.records) == (seen, 10)
    assert f"is not allowed; not read meanwhile: {hidden}-0" in str(named["source broker 1"])
    assert not [subject for subject in named if seen in subject]
