"""A connection that dies silently is given up, and its work continues on a new one."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest
from kio.schema.metadata.v11 import MetadataResponse

from appliance.errors import Unreachable
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.dial import connect
from appliance.kafka.client.interface import Timeouts
from appliance.kafka.protocol.metadata import request
from appliance.settings.target import Target
from testbed.cluster import Cluster
from tests.faults.kafka_proxy import Api, KafkaProxy, Moment, Tripwire
from tests.faults.proxy import Proxy
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROXY = "127.0.3.102"
SHORT = Timeouts(answer=2.0)
FOR_EVER = Timeouts(answer=10 * PATIENCE)
LARGE = 64 * 1024 * 1024


async def through_the_proxy(_: str) -> Sequence[str]:
    return (PROXY,)


async def as_it_is(host: str) -> Sequence[str]:
    return (host,)


@contextlib.asynccontextmanager
async def proxy_before(grape: Cluster, tripwire: Tripwire) -> AsyncIterator[Proxy]:
    """A proxy before the destination's one broker, at another address and the same port."""
    (target,) = grape.home_targets
    proxy = KafkaProxy(Target(PROXY, target.port), target, None, tripwire)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()


@pytest.mark.parametrize("api", [Api.PRODUCE, Api.ADD_PARTITIONS_TO_TXN, Api.END_TXN])
async def test_a_lane_whose_connection_swallows_all_goes_on_by_a_new_one(pair: Pair, api: Api) -> None:
    topic = pair.topic("swallowed")
    produce(pair.producer(), topic, 100)
    tripwire = Tripwire()
    async with (
        proxy_before(pair.grape, tripwire),
        pair.engine(resolve=through_the_proxy, timeouts=SHORT, transaction_timeout=5.0) as engine,
    ):
        await engine.copy_all()
        tripwire.arm(api, Moment.SILENT)
        produce(pair.producer(), topic, 100)
        await engine.copy_all()
        assert tripwire.sprung.is_set()
    assert len(pair.compare(topic)[0]) == 200


async def test_a_connection_that_was_idle_while_another_fell_silent_is_opened_again_before_use(pair: Pair) -> None:
    purposes = ("control", "produce", "fetch")
    async with (
        asyncio.timeout(PATIENCE),
        proxy_before(pair.grape, Tripwire()) as proxy,
        pair.engine(resolve=through_the_proxy, timeouts=Timeouts(small_answer=0.5)) as engine,
    ):
        node = next(iter((await engine.destination.metadata([])).brokers))
        before = {purpose: await engine.destination.broker(node, purpose) for purpose in purposes}
        proxy.half_open()
        proxy.heal()
        with pytest.raises(Unreachable, match="did not answer a MetadataRequest"):
            await engine.destination.metadata([])
        after = {purpose: await engine.destination.broker(node, purpose) for purpose in purposes}
        assert not any(connection.open for connection in before.values())
        for connection in after.values():
            assert await connection.call(request([]), MetadataResponse)


@dataclass(frozen=True)
class Sent:
    """A request of that many bytes."""

    size: int = 100
    name: str = "Sent"

    def frame(self, correlation: int, client_id: str) -> bytes:  # noqa: ARG002
        return bytes(self.size)

    def answer(self, frame: bytearray, correlation: int) -> bytes:  # noqa: ARG002
        return bytes(frame)


@contextlib.asynccontextmanager
async def connected_to_silence(timeouts: Timeouts) -> AsyncIterator[BrokerConnection]:
    """A connection that its peer has accepted, and from which it reads nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with asyncio.timeout(PATIENCE):
            target = Target("127.0.0.1", listening.getsockname()[1])
            connection = await connect(target, as_it_is, "test", None, timeouts)
            try:
                yield connection
            finally:
                await connection.close()


async def test_an_answer_that_does_not_come_breaks_its_connection_though_nobody_waits_for_it() -> None:
    async with connected_to_silence(FOR_EVER) as connection:
        patient = await connection.send(Sent())
        await connection.send(Sent(), 0.1)
        with pytest.raises(Unreachable, match=r"did not answer a Sent within 0\.1 s"):
            await patient
        assert not connection.open
        with pytest.raises(Unreachable, match="did not answer"):
            await connection.send(Sent())


async def test_a_peer_that_reads_nothing_is_given_up_by_who_waits_to_send() -> None:
    async with connected_to_silence(FOR_EVER) as connection:
        before = await connection.send(Sent(LARGE))
        with pytest.raises(Unreachable, match=r"did not read what it was sent within 0\.1 s"):
            await connection.send(Sent(), 0.1)
        assert not connection.open
        with pytest.raises(Unreachable):
            await before


async def test_a_resolver_that_never_answers_is_given_up() -> None:
    async def never(_: str) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(Unreachable, match=r"no address of broker\.example was found within 0\.1 s"):
            await connect(Target("broker.example", 9092), never, "test", None, Timeouts(connect=0.1))


async def test_a_dead_peer_is_noticed_well_below_a_minute() -> None:
    async with connected_to_silence(FOR_EVER) as connection:
        assert connection._transport is not None
        tcp: socket.socket = connection._transport.get_extra_info("socket")
        assert tcp.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle, interval, count = (
            tcp.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert idle + interval * count <= 30
        assert 0 < tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 30_000
