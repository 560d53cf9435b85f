"""Heartbeats of MirrorMaker 2's form between two real clusters."""

import asyncio
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, TopicPartition

from appliance.errors import Unreachable
from appliance.groups.mirror_formats import Heartbeats
from appliance.kafka.records.records import Record, body
from appliance.link.model.mirror_records import Heartbeat, decode_heartbeat
from appliance.link.model.naming import HEARTBEATS
from appliance.settings.target import Target
from appliance.status.watcher import Watcher
from bench.lib.running import free_port
from testbed.cluster import Cluster
from tests.support.engine import Engine, Pair
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


def heartbeats(pair: Pair, engine: Engine) -> Heartbeats:
    return Heartbeats(engine.link(pair.settings()))


def written(cluster: Cluster, topic: str, source: str) -> list[Heartbeat]:
    """The heartbeats of one link, as an independent consumer reads them."""
    consumer = Consumer({**cluster.client_configuration(), "group.id": source, "enable.auto.commit": False})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Heartbeat] = []
        last = -1
        while last < end - 1:
            message = consumer.poll(PATIENCE)
            assert message is not None
            headers = [(name, content) for name, content in message.headers() or []]
            found.append(decode_heartbeat(Record(0, 0, body(message.key(), message.value(), headers))))
            last = message.offset()
    finally:
        consumer.close()
    return [each for each in found if each.source == source]


async def test_a_heartbeat_is_written_for_each_way_and_tells_how_long_the_one_before_took(pair: Pair) -> None:
    async with pair.engine() as engine:
        beating = heartbeats(pair, engine)
        await beating.beat()
        way = beating.way
        await beating.beat()
    local = await asyncio.to_thread(written, pair.grape, HEARTBEATS, pair.tag)
    come = await asyncio.to_thread(written, pair.grape, f"{pair.tag}.heartbeats", pair.tag)
    assert [(each.destination, each.way) for each in local] == [("grape", None)] * 2
    assert [(each.destination, each.way) for each in come] == [("grape", None), ("grape", way)]
    assert way is not None
    assert way >= 0


async def test_without_the_source_no_heartbeat_comes_from_it_and_with_it_again_they_do(pair: Pair) -> None:
    nowhere = Target("127.0.0.1", free_port("127.0.0.1"))
    async with pair.engine(source_at=nowhere) as engine:
        beating = heartbeats(pair, engine)
        with pytest.raises(Unreachable):
            await beating.beat()
        assert beating.way is None
        async with pair.engine() as other:
            beating.link.source = other.source
            await beating.beat()
    local = await asyncio.to_thread(written, pair.grape, HEARTBEATS, pair.tag)
    come = await asyncio.to_thread(written, pair.grape, f"{pair.tag}.heartbeats", pair.tag)
    assert (len(local), len(come)) == (2, 1)


async def test_status_shows_the_newest_heartbeat_and_how_long_one_took(pair: Pair) -> None:
    settings = replace(pair, formats=True).settings()
    async with pair.engine() as engine:
        watcher = Watcher(engine.link(settings), settings)
        assert (await watcher.collect()).heartbeat is None
        beating = heartbeats(pair, engine)
        await beating.beat()
        first = (await watcher.collect()).heartbeat
        assert first is not None
        assert (first.source, first.destination, first.way) == (pair.tag, "grape", None)
        way = beating.way
        await beating.beat()
        second = (await watcher.collect()).heartbeat
        assert second is not None
        assert (second.at >= first.at, second.way) == (True, way)
        without = Watcher(engine.link(pair.settings()), pair.settings())
        assert (await without.collect()).heartbeat is None
