"""Brokers with older versions of some APIs, or without some: requests that they do not offer are never sent."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Mapping

import pytest

from appliance.errors import BrokerUnsupported
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import NOWHERE
from appliance.settings.target import Target
from appliance.settings.values import Side
from tests.support.administration import configuration, configure, grow
from tests.support.engine import Engine, Pair, as_it_is, cluster_settings
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rewriting import Seeming, seeming_broker

pytestmark = pytest.mark.asyncio(loop_scope="session")

Ranges = Mapping[int, tuple[int, int]]

REDPANDA = {0: (0, 7), 1: (4, 13), 2: (0, 4), 3: (0, 8), 10: (0, 3), 19: (0, 5), 22: (0, 3), 24: (0, 3), 26: (0, 3)}
REDPANDA |= {32: (0, 2), 37: (0, 3), 44: (0, 0)}
OLDEST = {0: (7, 7), 1: (12, 12), 2: (4, 4), 3: (7, 7), 10: (1, 1), 19: (4, 4), 22: (1, 1), 24: (1, 1), 26: (1, 1)}
OLDEST |= {32: (1, 1), 37: (1, 1), 44: (0, 0)}
READ_ONLY = {1: (12, 13), 2: (4, 6), 3: (7, 11)}
KAFKA_1 = {0: (0, 5), 1: (0, 6), 2: (0, 2), 3: (0, 5)}


@contextlib.asynccontextmanager
async def between(pair: Pair, source: Seeming, destination: Seeming) -> AsyncIterator[Engine]:
    """An engine between rewriting proxies before the brokers."""
    async with (
        seeming_broker(pair.orange.home_targets[0], source) as source_at,
        seeming_broker(pair.grape.home_targets[0], destination) as destination_at,
        pair.engine(source_at, destination_at) as engine,
    ):
        yield engine


@pytest.mark.parametrize(
    ("at_source", "at_destination"),
    [(REDPANDA, REDPANDA), (OLDEST, OLDEST), (READ_ONLY, REDPANDA), ({}, OLDEST), (REDPANDA, {})],
    ids=["redpanda", "oldest", "a-source-that-is-only-read", "old-destination", "redpanda-to-kafka"],
)
async def test_records_are_copied_with_no_more_than_what_is_offered(
    pair: Pair, at_source: Ranges, at_destination: Ranges
) -> None:
    topic = pair.topic("old", 2, **{"retention.ms": "7200000"})
    produce(pair.producer(), topic, 20)
    source, destination = Seeming(offered=at_source), Seeming(offered=at_destination)
    async with between(pair, source, destination) as engine:
        await engine.copy_all()
        grow(pair.orange, topic, 3)
        produce(pair.producer(), topic, 10, 2)
        await engine.assign()
        await engine.copy_all()
        ids = (await engine.destination.metadata([pair.naming.destination(topic)])).topics
    assert [len(rows) for rows in pair.compare(topic, 3)] == [20, 0, 10]
    assert source.beyond == destination.beyond == set()
    assert 3 in {key for key, _ in source.asked}
    assert {topic.id == NOWHERE for topic in ids.values()} == {at_destination.get(3, (0, 99))[1] < 10}


async def test_a_source_is_asked_only_for_what_it_is_used_for(pair: Pair) -> None:
    topic = pair.topic("read", 1)
    produce(pair.producer(), topic, 20)
    source = Seeming()
    async with between(pair, source, Seeming()) as engine:
        await engine.copy_all()
    assert {key for key, _ in source.asked} == {1, 2, 3, 18, 23, 32}


async def test_settings_that_a_destination_cannot_change_are_not_followed_and_records_are(pair: Pair) -> None:
    topic = pair.topic("settings", 1, **{"retention.ms": "7200000"})
    produce(pair.producer(), topic, 20)
    without = {key: versions for key, versions in REDPANDA.items() if key != 44}
    destination = Seeming(offered=without)
    async with between(pair, Seeming(), destination) as engine:
        await engine.copy_all()
        configure(pair.orange, topic, **{"retention.ms": "3600000"})
        await engine.assign()
        await engine.copy_all()
    assert destination.beyond == set()
    assert len(pair.compare(topic)[0]) == 20
    assert configuration(pair.grape, pair.naming.destination(topic))["retention.ms"] == "7200000"


@pytest.mark.parametrize("side", Side)
async def test_too_old_a_broker_is_named_at_log_in_with_its_side_and_what_it_lacks(pair: Pair, side: Side) -> None:
    seeming = Seeming(offered=KAFKA_1)
    async with seeming_broker(pair.orange.home_targets[0], seeming) as at:
        with pytest.raises(BrokerUnsupported) as caught:
            await metadata_of(pair, side, at)
    text = str(caught.value)
    assert f"{at} of the {side} cluster is too old a broker" in text
    assert "Fetch 12 (it has 0 to 6)" in text
    assert ("Produce 7 to 9 (it has 0 to 5)" in text, "InitProducerId" in text) == (side is Side.DESTINATION,) * 2
    assert {key for key, _ in seeming.asked} == {18}


@pytest.mark.parametrize("side", Side)
async def test_a_broker_that_does_not_know_the_question_for_versions_is_too_old(pair: Pair, side: Side) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        correlation = (await reader.readexactly(size))[4:8]
        # In version 0: UNSUPPORTED_VERSION, and one API, ApiVersions from 0 to 2.
        body = correlation + struct.pack(">hihhh", 35, 1, 18, 0, 2)
        writer.write(struct.pack(">i", len(body)) + body)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        at = Target("127.0.0.1", int(server.sockets[0].getsockname()[1]))
        with pytest.raises(
            BrokerUnsupported, match=f"of the {side} cluster is too old a broker: it lacks ApiVersions 3"
        ):
            await metadata_of(pair, side, at)


async def metadata_of(pair: Pair, side: Side, at: Target) -> None:
    async with (
        asyncio.timeout(PATIENCE),
        KafkaCluster(cluster_settings(pair.orange, side, at), as_it_is, "me") as kafka,
    ):
        await kafka.metadata([])
