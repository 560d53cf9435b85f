"""Metadata requests: the choice of the broker, and the topics that the answer has."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from appliance.kafka.client.cluster import KafkaCluster
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings, SaslMechanism, SecurityProtocol, Side
from bench.lib.running import OWN_ADDRESS, free_port
from tests.support.engine import Pair, as_it_is, cluster_settings
from tests.support.scripted_broker import scripted_broker

_QUESTIONS = 100


@contextlib.asynccontextmanager
async def counting(target: Target, asked: list[Target]) -> AsyncIterator[Target]:
    """A proxy before a broker that counts connections."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(target)
        near, far = await asyncio.open_connection(target.host, target.port)
        await asyncio.gather(_pass(reader, far), _pass(near, writer))

    server = await asyncio.start_server(serve, OWN_ADDRESS, 0)
    try:
        yield Target(*server.sockets[0].getsockname()[:2])
    finally:
        server.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(4096):
            writer.write(data)
    writer.close()


async def test_case_20_a_broker_that_answers_is_not_the_only_one_that_is_ever_asked() -> None:
    # A broker that is cut off from the others reports its old metadata for ever.
    behind = [Target(OWN_ADDRESS, free_port(OWN_ADDRESS)) for _ in range(2)]
    asked: list[Target] = []
    async with (
        counting(behind[0], asked) as one,
        counting(behind[1], asked) as other,
        contextlib.AsyncExitStack() as all_,
    ):
        for target in behind:
            await all_.enter_async_context(scripted_broker(target.host, target.port, [one, other], newest=13))
        settings = ClusterSettings(
            Side.SOURCE, "c", (one, other), "", Secret(""), SecurityProtocol.PLAINTEXT, SaslMechanism.PLAIN, None
        )
        async with KafkaCluster(settings, as_it_is, "test") as cluster:
            for _ in range(_QUESTIONS):
                await cluster.metadata([])
    assert set(asked) == set(behind)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "\N{SNOWMAN}", "x" * 250, "x" * 40_000])
async def test_case_1106_a_name_that_no_topic_can_have_is_one_of_no_topic(pair: Pair, name: str) -> None:
    topic = pair.topic("there")
    async with KafkaCluster(cluster_settings(pair.orange, Side.SOURCE), as_it_is, "test") as cluster:
        assert (await cluster.metadata([name, topic])).topics.keys() == {topic}
        assert (await cluster.metadata([name])).topics == {}
