"""Offsets translated between real clusters: on the other side a consumer continues with the same record."""

import asyncio
import random
from collections.abc import Sequence

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from appliance.engine.model import map_growth
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.translation import TranslationState
from testbed.cluster import Cluster
from tests.support.administration import COMPACTED, configure
from tests.support.engine import Engine, Pair
from tests.support.patience import PATIENCE
from tests.support.rows import SOON, end

pytestmark = pytest.mark.asyncio(loop_scope="session")

Place = tuple[int, bytes | None, bytes | None]
"""A record: its offset, key and value."""

CHANCE = random.Random(7)


def places(cluster: Cluster, topic: str, start: int = 0, most: int | None = None) -> list[Place]:
    """The records that a read_committed consumer finds from an offset on, to the end of partition 0."""
    configuration = {
        **cluster.client_configuration(),
        "group.id": "places",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": SOON,
    }
    consumer, found = Consumer(configuration), []
    try:
        consumer.assign([TopicPartition(topic, 0, start)])
        while most is None or len(found) < most:
            message: Message | None = consumer.poll(PATIENCE)
            assert message is not None
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                break
            found.append((message.offset(), message.key(), message.value()))
    finally:
        consumer.close()
    return found


def produce_transactions(producer: Producer, topic: str, name: str, count: int) -> None:
    """Transactions of a few records each, a third of them aborted."""
    for number in range(count):
        producer.begin_transaction()
        for each in range(CHANCE.randint(1, 5)):
            producer.produce(topic, f"{name} {number} {each}".encode(), b"%d" % CHANCE.randint(0, 60), 0)
        producer.flush(PATIENCE)
        if number % 3 == 2:
            producer.abort_transaction(PATIENCE)
        else:
            producer.commit_transaction(PATIENCE)


async def assert_translated(pair: Pair, engine: Engine, topic: str) -> int:
    """Require that each source offset is translated to one before the same records, and back; return the number of
    offsets."""
    copy = pair.naming.destination(topic)
    maps = OffsetMaps(engine.destination, pair.naming)
    await maps.refresh()
    source, copied = places(pair.orange, topic), places(pair.grape, copy)
    last = max(position.next_offset for key, position in maps.positions() if key[0] == topic)
    for offset in range(last + 1):
        found = maps.translate(Partition(topic, 0), offset)
        assert found.state is TranslationState.EXACT, (offset, found)
        assert found.offset is not None
        assert following(source, offset)[:1] == following(copied, found.offset)[:1], (offset, found)
    assert maps.translate(Partition(topic, 0), last + 5).behind == 5
    for offset in range(end(pair.grape, copy, 0) + 1):
        found = maps.reverse(Partition(copy, 0), offset)
        assert found.offset is not None, (offset, found)
        assert following(source, found.offset)[:1] == following(copied, offset)[:1], (offset, found)
    for offset in CHANCE.sample(range(last), 10):
        sought = maps.translate(Partition(topic, 0), offset).offset
        assert sought is not None
        read = await asyncio.to_thread(places, pair.grape, copy, sought, 3)
        assert following(read, 0) == following(source, offset)[: len(read)]
    return last


def following(records: Sequence[Place], offset: int) -> list[tuple[bytes | None, bytes | None]]:
    return [record[1:] for record in records if record[0] >= offset]


@pytest.mark.release  # held by the simulation, invariant L
async def test_every_offset_of_transactions_aborts_and_compaction_is_translated_exactly(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_growth, "TAIL_BYTES", 20)
    monkeypatch.setattr(map_growth, "SEGMENT_BYTES", 100)
    topic = pair.topic("history", **COMPACTED)
    producer = pair.producer(**{"transactional.id": topic})
    producer.init_transactions(PATIENCE)
    produce_transactions(producer, topic, "old", 60)
    late = pair.producer()
    async with asyncio.timeout(PATIENCE):
        while len(await asyncio.to_thread(places, pair.orange, topic)) > 75:  # of some 120
            await asyncio.sleep(0.5)
            late.produce(topic, b"comes", b"late")  # rolls the segment: earlier ones are cleaned
            late.flush(PATIENCE)
    configure(pair.orange, topic, **{"cleanup.policy": "delete", "segment.ms": None})
    async with pair.engine() as engine:
        await engine.copy_all()
        for turn in range(4):
            await asyncio.to_thread(produce_transactions, producer, topic, f"turn {turn}", 10)
            await engine.copy_all()
    async with pair.engine() as engine:  # another process, whose lane starts again
        await asyncio.to_thread(produce_transactions, producer, topic, "restarted", 10)
        await engine.copy_all()
        assert await assert_translated(pair, engine, topic) > 200
    assert end(pair.grape, pair.naming.offsets_topic, engine.runners[0].lane.index) > 0
