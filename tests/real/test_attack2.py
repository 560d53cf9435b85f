"""Attacks: losses at the destination that go unnoticed, answers that never settle, a broker that is asked for ever."""

import asyncio
import struct
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kio.schema.end_txn.v3 import EndTxnRequest, EndTxnResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataRequest

from appliance.demo.cluster import Cluster
from appliance.demo.plan import ClusterPlan, Node
from appliance.errors import ApplianceError
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.connection import BrokerConnection, Timeouts
from appliance.kafka.transactions import end_transaction, milliseconds
from appliance.kafka.transactions import Producer as LaneProducer
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings, SaslMechanism, SecurityProtocol, Side
from tests.support.administration import make_topic, wait_for_leader
from tests.support.engine import LANES, Engine, Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import end, read_rows
from tests.support.scripted_broker import framed, metadata_answer, versions

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}


@pytest_asyncio.fixture(loop_scope="session")
async def three(tmp_path: Path) -> AsyncIterator[Cluster]:
    nodes = tuple(Node(n, f"127.0.77.{n + 21}") for n in range(3))
    async with Cluster(ClusterPlan("attacked", nodes, SecurityProtocol.PLAINTEXT), tmp_path) as cluster:
        yield cluster


@pytest.fixture
def own(three: Cluster) -> Pair:
    return Pair(three, three, uuid.uuid4().hex[:8])


async def copied_or_stopped(engine: Engine, topic: str, cluster: Cluster) -> None:
    while (held := engine.held(topic)) is None or not (held.stopped or held.next_offset >= end(cluster, topic, 0)):
        await asyncio.sleep(0.05)


async def test_a_positions_topic_that_lost_its_tail_doubles_nothing(own: Pair, three: Cluster) -> None:
    # An unclean election of the positions topic alone: the copies are whole, and what is remembered of them is old.
    topic, positions = f"tail-{own.tag}", own.naming.positions_topic
    make_topic(three, NewTopic(topic, 1, replica_assignment=[[0]]))
    make_topic(three, NewTopic(own.naming.destination(topic), 1, replica_assignment=[[0]]))
    config = UNCLEAN | {"cleanup.policy": "compact"}
    make_topic(three, NewTopic(positions, LANES, replica_assignment=[[1, 2]] * LANES, config=config))
    produce(own.producer(), topic, 10)
    async with own.engine() as engine:
        await engine.copy_all()
        await three.kill(2)
        produce(own.producer(), topic, 10)
        await engine.copy_all()
        assert len(read_rows(three, own.naming.destination(topic), 0)) == 20
    await three.kill(1)
    await three.broker(2).launch()
    await asyncio.to_thread(wait_for_leader, three, positions, 2)
    produce(own.producer(), topic, 5)
    async with own.engine() as engine:
        await engine.prepare()
        await engine.copy_until(asyncio.create_task(copied_or_stopped(engine, topic, three)))
        print("FAULTS", engine.faults, engine.held(topic))
        await engine._until_decided()
    source = read_rows(three, topic, 0)
    copied = read_rows(three, own.naming.destination(topic), 0)
    print("ROWS", len(source), len(copied))
    assert len(copied) in (20, 25)
    assert copied == source[: len(copied)]


async def test_a_loss_is_noticed_where_brokers_lack_offset_for_leader_epoch(
    own: Pair, three: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The hole is filled by records of an aborted transaction; only the batch at the end would tell.
    offers = BrokerConnection.offers
    monkeypatch.setattr(BrokerConnection, "offers", lambda self, key, version: key != 23 and offers(self, key, version))
    topic = f"nolookup-{own.tag}"
    copy = own.naming.destination(topic)
    make_topic(three, NewTopic(topic, 1, replica_assignment=[[0]]))
    make_topic(three, NewTopic(copy, 1, replica_assignment=[[1, 2]], config=UNCLEAN))
    make_topic(
        three,
        NewTopic(
            own.naming.positions_topic, LANES, replica_assignment=[[0]] * LANES, config={"cleanup.policy": "compact"}
        ),
    )
    produce(own.producer(), topic, 10)
    async with own.engine() as engine:
        await engine.copy_all()
        await three.kill(2)
        produce(own.producer(), topic, 10)
        await engine.copy_all()
    await three.kill(1)
    await three.broker(2).launch()
    await asyncio.to_thread(wait_for_leader, three, copy, 2)
    await asyncio.to_thread(fill_by_aborted, three, copy)
    produce(own.producer(), topic, 5)
    async with own.engine() as engine:
        await engine.prepare()
        await engine.copy_until(asyncio.create_task(copied_or_stopped(engine, topic, three)))
        held = engine.held(topic)
        print("HELD", held, engine.faults, len(read_rows(three, copy, 0)))
        assert held is not None
        assert "has lost what it had acknowledged" in held.stopped


async def test_a_loss_is_noticed_though_a_transaction_is_open_in_the_hole(own: Pair, three: Cluster) -> None:
    # Read committed, the leader shows nothing from there on: that is no hole left by compaction.
    topic = f"openhole-{own.tag}"
    copy = own.naming.destination(topic)
    make_topic(three, NewTopic(topic, 1, replica_assignment=[[0]]))
    make_topic(three, NewTopic(copy, 1, replica_assignment=[[1, 2]], config=UNCLEAN))
    config = {"cleanup.policy": "compact"}
    make_topic(three, NewTopic(own.naming.positions_topic, LANES, replica_assignment=[[0]] * LANES, config=config))
    produce(own.producer(), topic, 10)
    async with own.engine() as engine:
        await engine.copy_all()
        await three.kill(2)
        produce(own.producer(), topic, 10)
        await engine.copy_all()
    await three.kill(1)
    await three.broker(2).launch()
    await asyncio.to_thread(wait_for_leader, three, copy, 2)
    other = await asyncio.to_thread(fill_by_open, three, copy)
    produce(own.producer(), topic, 5)
    async with own.engine() as engine:
        await engine.prepare()
        await engine.copy_until(asyncio.create_task(copied_or_stopped(engine, topic, three)))
        held = engine.held(topic)
        await asyncio.to_thread(other.abort_transaction, PATIENCE)
        await engine._until_decided()
        print("HELD", held, engine.faults, len(read_rows(three, copy, 0)))
        assert held is not None
        assert "has lost what it had acknowledged" in held.stopped


def fill_by_open(cluster: Cluster, topic: str) -> Producer:
    other = Producer({**cluster.client_configuration(), "transactional.id": f"other-{topic}"})
    other.init_transactions(PATIENCE)
    other.begin_transaction()
    for _ in range(30):
        other.produce(topic, b"open", partition=0)
    other.flush(PATIENCE)
    return other


def fill_by_aborted(cluster: Cluster, topic: str) -> None:
    other = Producer({**cluster.client_configuration(), "transactional.id": f"other-{topic}"})
    other.init_transactions(PATIENCE)
    other.begin_transaction()
    for _ in range(30):
        other.produce(topic, b"aborted", partition=0)
    other.flush(PATIENCE)
    other.abort_transaction(PATIENCE)


def settings(*targets: Target) -> ClusterSettings:
    return ClusterSettings(
        Side.SOURCE, "source", targets, SecurityProtocol.PLAINTEXT, SaslMechanism.PLAIN, "", Secret(""), None
    )


async def as_is(host: str) -> tuple[str, ...]:
    return (host,)


class Talker:
    """A broker that lists brokers, and counts how often it was asked for that; with a tagged field of the future."""

    def __init__(self, tagged: bool = False) -> None:
        self.asked = 0
        self.brokers: list[Target] = []
        self.tagged = tagged

    async def start(self) -> Target:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return Target(*self.server.sockets[0].getsockname()[:2])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                content = await reader.readexactly(size)
                key, _, correlation = struct.unpack_from(">hhi", content)
                if key == MetadataRequest.__api_key__:
                    self.asked += 1
                    answer = framed(metadata_answer(self.brokers), correlation)
                    if self.tagged:
                        # KIP-482: one tagged field, number 9, of one byte, where there was none; a reader skips it.
                        body = answer[4:-1] + bytes([1, 9, 1, 0])
                        answer = struct.pack(">i", len(body)) + body
                elif key == EndTxnRequest.__api_key__:
                    await asyncio.sleep(2)
                    ended = EndTxnResponse(throttle_time=milliseconds(0), error_code=ErrorCode.none)
                    answer = framed(ended, correlation)
                else:
                    answer = framed(versions(newest=13), correlation)
                writer.write(answer)
        except (EOFError, ConnectionError):
            pass
        finally:
            writer.transport.abort()


async def test_an_answer_with_a_tagged_field_of_the_future_is_settled_one_way_or_the_other() -> None:
    talker = Talker(tagged=True)
    target = await talker.start()
    talker.brokers = [target]
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: print("LOOP", context))
    async with KafkaCluster(settings(target), as_is, "t", timeouts=Timeouts(1.0, 1.0, 1.0)) as cluster:
        asked = asyncio.create_task(cluster.metadata([]))
        # Ten times the deadline that every wait on a broker has.
        done, _ = await asyncio.wait([asked], timeout=10)
        assert done, "the answer's future never settles: its timer is cancelled, and it is in no queue any more"
        assert asked.exception() is None or isinstance(asked.exception(), ApplianceError)
    talker.server.close()


async def test_metadata_are_asked_of_another_broker_some_time() -> None:
    # One that is cut off from the controllers, and not from us, tells what was true then, for as long as that lasts.
    stale, fresh = Talker(), Talker()
    targets = [await stale.start(), await fresh.start()]
    stale.brokers = fresh.brokers = targets
    async with KafkaCluster(settings(*targets), as_is, "t") as cluster:
        for _ in range(500):
            cluster.forget_coordinator("lane")
            await cluster.metadata([])
        print("ASKED", stale.asked, fresh.asked)
        assert stale.asked and fresh.asked
    stale.server.close()
    fresh.server.close()


async def test_a_commit_that_takes_its_time_is_not_broken_off_by_another_lanes_question() -> None:
    # A broker answers a connection's requests in turn: Metadata waits behind EndTxn, with a third of its patience.
    talker = Talker()
    target = await talker.start()
    talker.brokers = [target]
    timeouts = Timeouts(connect=5.0, answer=15.0, small_answer=1.0)
    async with KafkaCluster(settings(target), as_is, "t", timeouts=timeouts) as cluster:
        await cluster.metadata([])
        coordinator = await cluster.broker(0)
        commit = asyncio.create_task(end_transaction(coordinator, LaneProducer("lane-0", 1, 1), 30.0))
        await asyncio.sleep(0)
        other = asyncio.create_task(cluster.metadata([]))
        await asyncio.wait([commit, other])
        print("COMMIT", commit.exception(), "OTHER", other.exception())
        assert commit.exception() is None
    talker.server.close()
