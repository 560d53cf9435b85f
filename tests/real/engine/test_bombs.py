"""Batches of a few KB that stand for hundreds of MB: copied as they are, or stopped alone, always within the memory."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from appliance.kafka.client.fetch import FetchLimits, fetch_partition
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.batch import HEADER_SIZE
from appliance.kafka.records.committed import visible
from appliance.link.handle import Link
from appliance.link.model.stops import FOLLOWING
from appliance.logs.model.span import CopyState
from appliance.verify.verification import Verification
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan
from tests.support.engine import Engine, Pair
from tests.support.memory import at_most
from tests.support.patience import PATIENCE
from tests.support.verifying import results_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

BYTES = 200_000_000
MEMORY = 350
"""MiB that a task may take: 256 were measured for a batch of 64, decompressed, decoded, joined and compressed."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clusters(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Cluster, Cluster]]:
    """Clusters with the memory that a broker takes to check such batches; those of other tests would end with it."""
    directory = tmp_path_factory.mktemp("bombs")
    plans = [ClusterPlan.plain(name, address=f"127.0.3.{at}") for name, at in (("bombed", 41), ("bombing", 42))]
    async with Cluster(plans[0], directory) as orange, Cluster(plans[1], directory) as grape:
        yield orange, grape


def bombs(pair: Pair, topic: str, count: int = 5, *, codec: str = "zstd", on_copy: bool = False) -> None:
    """Batches of one record of zeros each, by an ordinary client."""
    at = pair.grape.client_configuration() if on_copy else {}
    producer = pair.producer(**{**at, "compression.type": codec, "message.max.bytes": 10**9})
    for _ in range(count):
        producer.produce(topic, bytes(BYTES), partition=0)
        assert producer.flush(PATIENCE) == 0


async def payloads(engine: Engine, topic: str, *, of_copy: bool = False) -> list[bytes]:
    """The compressed records of each batch of a topic."""
    cluster = engine.destination if of_copy else engine.source
    metadata = await cluster.metadata([topic])
    fetched = await fetch_partition(cluster, metadata, Partition(topic, 0), 0, "bombs", FetchLimits(2**25, 1.0))
    batches, _ = visible(fetched.records, fetched.aborted, 0, fetched.stable_end)
    return [bytes(each.data[HEADER_SIZE:]) for each in batches]


async def test_case_950_bombs_are_copied_and_verified_as_they_are_within_the_memory(pair: Pair) -> None:
    # They took 2,004 MiB: tiny batches were joined, whatever they were uncompressed.
    topic, other = pair.topic("bombs"), pair.topic("other")
    bombs(pair, topic)
    pair.write(other, 100)
    async with pair.engine() as engine:
        with at_most(MEMORY):
            await engine.copy_all()
            found = await results_of(Verification(Link(engine.source, engine.destination, pair.naming)), [], PATIENCE)
        assert {each.state for each in found} == {CopyState.EQUAL}
        copied = await payloads(engine, pair.copy_of(topic), of_copy=True)
        assert copied == await payloads(engine, topic)
        assert len(copied) == 5


async def test_case_952_a_bomb_that_must_be_rebuilt_stops_its_partition_alone_within_the_memory(pair: Pair) -> None:
    topic, other = (pair.topic(name, **{"message.timestamp.type": "LogAppendTime"}) for name in ("bombs", "other"))
    pair.write(topic, 3)
    bombs(pair, topic)
    pair.write(other, 100)
    async with pair.engine() as engine:
        await engine.prepare()
        with at_most(MEMORY):
            reason = str(await engine.until_stopped(topic))
        held = engine.position(topic)
        assert held.next_offset == 3
    assert "the batch at offset 3 does not decompress: it takes more than" in reason
    assert f"{FOLLOWING} 4" in reason


async def test_case_956_verify_names_a_batch_that_is_too_large_to_compare_and_goes_on(pair: Pair) -> None:
    topic, other = pair.topic("bombs"), pair.topic("other")
    copy = pair.copy_of(topic)
    pair.write(other, 100)
    async with pair.engine() as engine:
        await engine.copy_all()
        bombs(pair, topic, 2)
        bombs(pair, copy, 2, codec="gzip", on_copy=True)  # another codec: their records are compared
        with at_most(MEMORY):
            run = Verification(Link(engine.source, engine.destination, pair.naming))
            found = {each.topic: each for each in await results_of(run, [], 0.0)}
    assert found[other].state is CopyState.EQUAL
    assert found[topic].state is CopyState.NOT_COMPARED
    assert "the batch at offset 0 does not decompress: it takes more than" in found[topic].detail
