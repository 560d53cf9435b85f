"""Real brokers with a client quota: the replicator waits for their throttle time, and copies everything."""

import asyncio
from dataclasses import dataclass, field

import pytest
from kio.schema.alter_client_quotas.v1 import AlterClientQuotasRequest, AlterClientQuotasResponse
from kio.schema.alter_client_quotas.v1.request import EntityData, EntryData, OpData
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse
from kio.static.primitive import f64

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.protocol.metadata import Everything, EverythingExchange, Metadata, request
from appliance.kafka.protocol.wire import TypedExchange
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def limit(cluster: KafkaCluster, client_id: str, quota: str, value: float) -> None:
    """Give the clients of this name a quota."""
    entity = EntityData(entity_type="client-id", entity_name=client_id)
    entry = EntryData(entity=(entity,), ops=(OpData(key=quota, value=f64(value), remove=False),))
    request = AlterClientQuotasRequest(entries=(entry,), validate_only=False)
    answer = await (await cluster.controller()).call(request, AlterClientQuotasResponse)
    assert [entry.error_code for entry in answer.entries] == [ErrorCode.none]


@dataclass
class Noted:
    """A Metadata request for all topics that notes its sending time."""

    everything: EverythingExchange = field(
        default_factory=lambda: EverythingExchange(Everything(), TypedExchange(request(None), MetadataResponse))
    )
    sent: float = 0.0
    name: str = "MetadataRequest"

    def frame(self, correlation: int, client_id: str) -> bytes:
        self.sent = asyncio.get_running_loop().time()
        return self.everything.frame(correlation, client_id)

    def answer(self, frame: bytearray, correlation: int) -> Metadata:
        return self.everything.answer(frame, correlation)


async def until_throttled(connection: BrokerConnection) -> tuple[float, float]:
    """Ask until the broker throttles the connection; return the time of the request, and the throttle time in
    seconds."""
    while True:
        asked = Noted()
        answer = await connection.ask(asked)
        if answer.throttle_time:
            return asked.sent, answer.throttle_time.total_seconds()


async def test_a_connection_that_the_broker_throttles_is_not_used_before_the_time_has_passed(pair: Pair) -> None:
    async with asyncio.timeout(PATIENCE), pair.engine() as engine:
        await limit(engine.destination, pair.tag, "request_percentage", 0.01)
        connection = await engine.destination.any_broker()
        for _ in range(3):
            before, throttled = await until_throttled(connection)
            asked = Noted()
            await connection.ask(asked)
            assert asked.sent >= before + throttled
        assert connection.open


async def test_a_lane_that_is_throttled_copies_everything_by_the_same_connection(pair: Pair) -> None:
    topic = pair.topic("throttled")
    produce(pair.producer(), topic, 600, size=500)
    async with pair.engine() as engine:
        await engine.prepare()
        await limit(engine.destination, pair.tag, "producer_byte_rate", 20_000.0)
        node = next(iter((await engine.destination.metadata([])).brokers))
        connection = await engine.destination.broker(node, "produce")
        await engine.copy_all()
        assert connection._sending._throttled_until > 0
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
        assert await engine.destination.broker(node, "produce") is connection
    assert len(pair.compare(topic)[0]) == 610
