"""Topics of one name in several clusters, copied in all directions at once: each record once everywhere."""

import asyncio
import itertools
import random
import re
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kio.schema.list_transactions.v0 import ListTransactionsRequest, ListTransactionsResponse

from appliance.doctor.destination_rights import Destination
from appliance.doctor.step import Verdict
from appliance.errors import LinkRefused
from appliance.failover.operation import Choice
from appliance.failover.removal import remove_topics
from appliance.failover.shared_offsets import SharedOffsets
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.fetch import FetchLimits
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.partition_reader import fetch_partition
from appliance.kafka.client.transactions import Producer as LaneProducer
from appliance.kafka.client.transactions import init_producer_id
from appliance.kafka.records.batch import split
from appliance.kafka.records.records import key_and_value
from appliance.link.client.checkpoint_log import read_records
from appliance.link.client.registry import Registry
from appliance.link.model.checkpoint import LinkRecord
from appliance.link.model.claims import Claim
from appliance.link.model.copy_states import CopyState as CopyStates
from appliance.link.model.link_check import producers_fault
from appliance.link.model.link_topics import LinkTopics
from appliance.link.model.naming import PRODUCERS, Naming
from appliance.link.model.producers import encode_producer
from appliance.link.model.translation import Translation
from appliance.replicator.discovery import TopicDiscovery
from appliance.settings.values import TopicNaming
from appliance.status.model.messages import remarks
from appliance.status.model.snapshot import LinkState, Snapshot
from appliance.status.watcher import Watcher
from appliance.verify.model.report import CopyState
from appliance.verify.verification import Verification
from testbed.cluster import Cluster
from tests.conftest import plain, plans
from tests.support.administration import COMPACTED, configure
from tests.support.engine import Engine, Pair
from tests.support.failing_back import command, failed_back, promoted, states
from tests.support.mesh import Mesh, copy_all, until_decided
from tests.support.patience import PATIENCE
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clusters(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Cluster, Cluster]]:
    """Clusters of these tests alone, which change a topic that all links share."""
    orange, grape = (Cluster(plan, tmp_path_factory.mktemp("own")) for plan in plans())
    async with orange, grape:
        yield orange, grape


@pytest.fixture
def two(pair: Pair) -> Mesh:
    """Two clusters that copy to each other."""
    return Mesh({"orange": pair.orange, "grape": pair.grape}, pair.tag)


_FORGETFUL = {
    "transactional.id.expiration.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lime(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """A third cluster, which forgets idle transactional ids after a second."""
    plan = plain("lime", "127.0.3.3")
    forgetful = replace(plan, properties=(*plan.properties, *_FORGETFUL.items()))
    async with Cluster(forgetful, tmp_path_factory.mktemp("lime")) as cluster:
        yield cluster


@pytest.fixture
def three(pair: Pair, lime: Cluster) -> Mesh:
    """Three clusters, each of which copies to both others."""
    return Mesh({"orange": pair.orange, "grape": pair.grape, "lime": lime}, pair.tag)


def require_audited(snapshot: Snapshot) -> None:
    """Require that a link has dropped what the links into its source wrote there."""
    assert snapshot.state is LinkState.COPIED, snapshot
    assert [partition.dropped for partition in snapshot.partitions] == [each.written for each in snapshot.partitions]
    assert not any("links count" in remark for remark in remarks(snapshot))


async def require_equal(engine: Engine) -> None:
    """Require that the link's own records are equal on both sides."""
    run = Verification(engine.source, engine.destination, engine.pair.naming, latest=False, progress=lambda *_: None)
    results = await run.run([], PATIENCE)
    assert {result.state for result in results} == {CopyState.EQUAL}, results
    assert sum(result.records for result in results) == sum(
        held.records for held in (await engine.positions()).values()
    )


async def stopped(engine: Engine, topic: str) -> str:
    """Copy until the first partition of a topic has stopped; the reason."""
    await engine.prepare()
    return await engine.until_all_stopped(topic, 1)


async def until_forgotten(cluster: KafkaCluster, transactional_id: str) -> None:
    """Wait until a cluster no longer knows a transactional id."""
    broker = await cluster.broker(0)

    async def known() -> bool:
        listed = await broker.call(ListTransactionsRequest(), ListTransactionsResponse)
        return transactional_id in {str(state.transactional_id) for state in listed.transaction_states}

    async with asyncio.timeout(PATIENCE):
        while await known():
            await asyncio.sleep(0.1)


async def test_records_of_both_sides_are_on_both_sides_once_and_in_order(two: Mesh) -> None:
    topic = two.topic("orders", 2)
    for partition in range(2):
        two.produce("orange", topic, 100, partition)
        two.produce("grape", topic, 50, partition, abort=False)
        two.produce("grape", topic, 30, partition, abort=True)
    async with two.engines() as engines:
        for engine in engines:
            await engine.prepare()
        await copy_all(engines)
        two.produce("orange", topic, 20, abort=False)
        two.produce("grape", topic, 20, 1)
        await copy_all(engines)
        two.require_all(topic, 2)
        forth, back = [[engine.held(topic, partition) for partition in range(2)] for engine in engines]
        for engine in engines:
            require_audited(await Watcher(engine.pair.settings(), engine.source, engine.destination).collect())
            await require_equal(engine)
    for there, here in zip(forth, back, strict=True):
        assert there is not None
        assert here is not None
        assert (there.records, here.records) == (here.dropped, there.dropped)
        assert min(there.records, here.records) > 0


@pytest.mark.parametrize("turns", [2, pytest.param(4, marks=pytest.mark.release)])
async def test_a_mesh_of_three_clusters_has_each_record_once_whatever_is_cut_off(three: Mesh, turns: int) -> None:
    topic = three.topic("orders", 2)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for turn in range(turns):
        for name in three.clusters:
            three.produce(name, topic, 50, turn % 2, abort=None)
            three.produce(name, topic, 20, abort=False)
            three.produce(name, topic, 10, 1, abort=True)
        async with three.engines() as engines:
            for engine in engines:
                await engine.prepare()
            running = [asyncio.create_task(runner.run(asyncio.Event())) for e in engines for runner in e.runners]
            await asyncio.sleep(chance.uniform(0, 0.3))
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
    async with three.engines() as engines:
        for engine in engines:
            await engine.prepare()
        await copy_all(engines)
        held = {engine.pair.link: engine.held(topic, 0) for engine in engines}
    three.require_all(topic, 2)
    for name in three.clusters:
        incoming = [held[link.link] for link in three.links if link.grape is three.clusters[name]]
        outgoing = [held[link.link] for link in three.links if link.orange is three.clusters[name]]
        copied = sum(position.records for position in incoming if position)
        assert [position.dropped for position in outgoing if position] == [copied, copied], f"seed {seed}"


@pytest.mark.parametrize("rounds", [(6,), pytest.param((3, 6), marks=pytest.mark.release)])
async def test_a_group_that_moves_skips_no_record_of_any_cluster(three: Mesh, rounds: tuple[int, ...]) -> None:
    topic = three.topic("orders")
    chance = random.Random(seed := random.randrange(2**32))
    for links in rounds:
        async with three.engines() as engines:
            for engine in engines:
                await engine.prepare()
            for name in three.clusters:
                three.produce(name, topic, chance.randint(1, 30), abort=None)
                three.produce(name, topic, chance.randint(1, 30), abort=False)
            await copy_all(chance.sample(engines, links))
            await until_decided(engines)
            held = {cluster.plan.name: offsets(cluster, topic) for cluster in three.clusters.values()}
            ids = {
                each.pair.orange.plan.name: (await each.source.metadata([topic])).topics[topic].id for each in engines
            }
            for engine in engines:
                here, there = held[engine.pair.orange.plan.name], held[engine.pair.grape.plan.name]
                translator = SharedOffsets(engine.source, engine.destination, engine.pair.naming)
                assert await translator.refresh([(topic, 0)]) == {}
                for offset in range(end(engine.pair.orange, topic, 0) + 1):
                    read = {value for value, at in here.items() if at < offset}
                    unread = [at for value, at in there.items() if value not in read]
                    found = translator.translate((topic, 0), offset, ids[engine.pair.orange.plan.name])
                    known = f"seed {seed}: {offset} of {engine.pair.link}: {found}, {sorted(unread)}"
                    if links < len(engines):
                        assert found.offset is None or found.offset <= min(unread, default=found.offset), known
                    else:
                        assert found.offset is not None, known
                        assert found.offset == min(unread) if unread else found.offset > max(there.values()), known


async def test_case_357_a_group_is_not_moved_past_records_of_a_link_that_has_not_begun(two: Mesh) -> None:
    # A link without a position was taken for one that had nothing to copy.
    first = two.topic("payments")
    two.produce("orange", first, 5)
    two.produce("grape", first, 5)
    async with two.engines() as engines:
        for engine in engines:
            await engine.prepare()
            await engine.copy_until(asyncio.create_task(engine.until_copied(first, 5)))
        forth, _ = engines
        topic = two.topic("orders")
        await forth.assign()
        two.produce("grape", topic, 5)
        two.produce("orange", topic, 5)
        await forth.copy_until(asyncio.create_task(forth.until_copied(topic, 5)))
        await until_decided(engines)
        translator = SharedOffsets(forth.source, forth.destination, forth.pair.naming)
        assert await translator.refresh([(topic, 0), (first, 0)]) == {}
        ids = (await forth.source.metadata([first, topic])).topics
        unknown = translator.translate((topic, 0), 0, ids[topic].id)
        known = translator.translate((first, 0), 0, ids[first].id)
        other = translator.translate((first, 0), 0, uuid.uuid4())
    assert (known.offset, known.reason) == (0, "")
    assert unknown.reason == f"{next(reversed(list(two.links))).naming.replicator} has no position of {topic}-0 yet"
    assert "it was made anew" in other.reason


async def test_case_362_a_link_of_other_topics_keeps_no_group_from_moving(two: Mesh) -> None:
    # Any link with identical names was taken for one that may write to the topic, and had no position of it for ever.
    topic = ""
    for mesh in (Mesh(two.clusters, f"other-{uuid.uuid4().hex}"), two):
        topic = mesh.topic("orders")
        mesh.produce("orange", topic, 5)
        async with mesh.engines() as engines:
            for engine in engines:
                await engine.prepare()
            await copy_all(engines)
            await until_decided(engines)
    async with two.engines() as (forth, _):
        found = await translated(forth, topic, 3)
    assert (found.offset, found.reason) == (3, "")


@pytest.mark.parametrize("case", ["no longer matched", "excluded"])
async def test_case_363_topics_that_a_link_no_longer_takes_keep_no_group_from_moving(two: Mesh, case: str) -> None:
    # Claims kept the regex that they were made with, and no exclude regex.
    other = Mesh(two.clusters, f"other-{uuid.uuid4().hex}")
    other.produce("orange", other.topic("orders"), 5)
    both = [replace(link.naming, included=re.compile(f".*({two.tag}|{other.tag})")) for link in other.links]
    async with other.engines() as engines:
        for engine in engines:
            await engine.prepare()
        await copy_all(engines)
        for engine, naming in zip(engines, both, strict=True):
            await discovery(engine, naming).look()
        topic = two.topic("orders")
        two.produce("orange", topic, 5)
        async with two.engines() as ours:
            for engine in ours:
                await engine.prepare()
            await copy_all(ours)
            await until_decided([*engines, *ours])
            before = await translated(ours[0], topic, 3)
            for engine, naming in zip(engines, both, strict=True):
                excluding = replace(naming, excluded=re.compile(f".*{two.tag}"))
                await discovery(engine, excluding if case == "excluded" else engine.pair.naming).look()
            after = await translated(ours[0], topic, 3)
    assert before.offset is None
    assert f"has no position of {topic}-0 yet" in before.reason
    assert (after.offset, after.reason) == (3, "")


@pytest.mark.parametrize("case", ["no longer matched", "excluded"])
async def test_case_369_a_group_is_not_moved_past_records_of_a_link_that_has_given_the_topic_up(
    two: Mesh, case: str
) -> None:
    # The claim of a removed topic was gone, and then the regex: nobody accounted for what the link had copied.
    topic, other = two.topic("orders"), two.topic("payments")
    for cluster, name in (("grape", topic), ("grape", other), ("orange", other)):
        two.produce(cluster, name, 5)
    async with two.engines() as engines:
        for engine in engines:
            await engine.prepare()
        await copy_all(engines)
        two.produce("orange", topic, 5)
        await copy_all(engines)
        await until_decided(engines)
        forth, back = engines
        before = await translated(forth, topic, 0)
        async with command(back.pair, Choice(yes=True, topic=topic)) as running:
            await remove_topics(running)
        narrowed = replace(back.pair.naming, included=re.compile(f"payments-{two.tag}"))
        excluding = replace(back.pair.naming, excluded=re.compile(topic))
        await discovery(back, excluding if case == "excluded" else narrowed).look()
        after = await translated(forth, topic, 0)
        found = await translated(forth, other, 0)
    assert (before.offset, found.offset) == (0, 0)
    assert after.offset is None
    assert after.reason == f"{back.pair.naming.replicator} has no position of {topic}-0 yet"


async def test_case_370_a_group_is_not_moved_past_records_of_a_link_whose_only_copy_was_taken_over(two: Mesh) -> None:
    # A link that claims none of its positions' copies was taken for one without identical names.
    topic = two.topic("orders")
    two.produce("grape", topic, 5)
    async with two.engines() as engines:
        for engine in engines:
            await engine.prepare()
        await copy_all(engines)
        two.produce("orange", topic, 5)
        await copy_all(engines)
        await until_decided(engines)
        forth, _ = engines
        before = await translated(forth, topic, 0)
        taker = Registry(forth.source, f"replicator-taker-{two.tag}")
        copy_id = (await forth.source.metadata([topic])).topics[topic].id
        assert await taker.claim({topic: copy_id}, take_over=True) == {}
        after = await translated(forth, topic, 0)
    assert (before.offset, after.offset, after.reason) == (0, 0, "")


async def test_a_copy_that_was_given_up_keeps_a_group_from_moving_until_it_is_made_anew_or_the_link_is_deleted(
    two: Mesh,
) -> None:
    topic = two.topic("orders")
    two.produce("orange", topic, 5)
    async with two.engines() as engines:
        for engine in engines:
            await engine.prepare()
        await copy_all(engines)
        await until_decided(engines)
        forth, _ = engines
        link = f"replicator-gone-{two.tag}"
        registry = Registry(forth.source, link, shares=True, topics=LinkTopics("nothing"))
        now = (await forth.source.metadata([topic])).topics[topic].id
        places: list[Translation] = []
        for topic_id in (uuid.uuid4(), now):
            assert await registry.claim({topic: topic_id}) == {}
            await registry.give_up([topic])
            places.append(await translated(forth, topic, 3))
        await registry.give_up((), Claim(link, 1, deleted_by="me"))
        places.append(await translated(forth, topic, 3))
    assert [place.offset for place in places] == [3, None, 3]
    assert places[1].reason == f"{link} has no position of {topic}-0 yet"


def discovery(engine: Engine, naming: Naming) -> TopicDiscovery:
    """The discovery of a link whose settings were changed."""
    return TopicDiscovery(engine.source, engine.destination, naming, engine.pair.settings().topics)


async def translated(engine: Engine, topic: str, offset: int) -> Translation:
    """The place of a group that moves with a link, by what the registries say now."""
    translator = SharedOffsets(engine.source, engine.destination, engine.pair.naming)
    assert await translator.refresh([(topic, 0)]) == {}
    source_id = (await engine.source.metadata([topic])).topics[topic].id
    return translator.translate((topic, 0), offset, source_id)


def offsets(cluster: Cluster, topic: str) -> dict[bytes, int]:
    """The offset of each committed record of a topic's first partition, by its value."""
    found: dict[bytes, int] = {}
    consumer = Consumer(
        {**cluster.client_configuration(), "group.id": "unused", "isolation.level": "read_committed"}
        | {"enable.partition.eof": True, "fetch.wait.max.ms": 10}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(PATIENCE)) is not None and not (error := message.error()):
            found[bytes(message.value() or b"")] = message.offset() or 0
        assert message is not None, "the end was not reached"
        assert error.code() == KafkaError._PARTITION_EOF, error
    finally:
        consumer.close()
    return found


async def test_what_a_lane_wrote_before_its_producer_id_expired_is_still_known(three: Mesh) -> None:
    topic = three.topic("orders")
    three.produce("lime", topic, 10)
    three.produce("orange", topic, 10)
    forth = next(link for link in three.links if link.link.startswith("orange-to-lime"))
    ids = set()
    for _ in range(2):
        async with forth.engine() as engine:
            await engine.copy_all()
            (runner,) = engine.runners
            ids.add(runner.lane.producer.id)
            await until_forgotten(engine.destination, forth.naming.transactional_id(runner.lane.index))
        three.produce("orange", topic, 10)
    assert len(ids) == 2
    async with three.engines() as engines:
        for engine in engines:
            await engine.prepare()
        await copy_all(engines)
    three.require_all(topic)


async def test_names_outlast_the_compaction_of_their_topic(two: Mesh) -> None:
    topic = two.topic("orders")
    forth = next(two.links)
    two.produce("orange", topic, 10)
    configured = {name: value for name, value in COMPACTED.items() if name != "cleanup.policy"}
    async with forth.engine() as engine:
        await engine.copy_all()
        (runner,) = engine.runners
        key, written = b'"producer": %d}' % runner.lane.producer.id, 1
        runner.lane.begin_anew()
        configure(forth.grape, PRODUCERS, **configured)
        try:
            async with asyncio.timeout(PATIENCE):
                while sum(name.endswith(key) for name in await names(engine.destination)) == written:
                    await runner.lane.start()  # in a new epoch: the name is written again, by the same key
                    runner.lane.begin_anew()
                    written += 1
                    await asyncio.sleep(0.3)
        finally:
            configure(forth.grape, PRODUCERS, **dict.fromkeys(configured))
    two.produce("grape", topic, 10, abort=False)
    async with two.engines() as engines:
        for engine in engines:
            await engine.prepare()
        await copy_all(engines)
    two.require_all(topic)


@pytest.mark.release
async def test_what_a_lane_wrote_before_its_epochs_were_used_up_is_still_known(two: Mesh) -> None:
    topic = two.topic("orders")
    forth, _ = two.links
    two.produce("orange", topic, 10)
    ids = set[int]()
    async with forth.engine() as engine:
        await engine.copy_all()
        (runner,) = engine.runners
        ids.add(runner.lane.producer.id)
        name = forth.naming.transactional_id(runner.lane.index)
        while len(ids) == 1:
            coordinator = await engine.destination.coordinator(name)
            ids.add((await init_producer_id(coordinator, name, 30.0)).id)
    two.produce("orange", topic, 10)
    async with two.engines() as engines:
        for engine in engines:
            await engine.prepare()
        await copy_all(engines)
    two.require_all(topic)


async def names(cluster: KafkaCluster) -> list[bytes]:
    """The keys in the topic of producers, as often as they are there."""
    metadata = await cluster.metadata([PRODUCERS])
    found, at, last = list[bytes](), 0, (await list_offsets(cluster, metadata, [(PRODUCERS, 0)], Bound.STABLE_END))
    while at < last[PRODUCERS, 0]:
        records, at = await read_records(cluster, metadata, (PRODUCERS, 0), at)
        found += [key_and_value(record.body)[0] or b"" for record in records]
    return found


async def test_a_lane_whose_name_was_lost_stops_the_partition_instead_of_a_loop(two: Mesh) -> None:
    topic = two.topic("orders")
    lane = f"replicator-lost-{two.tag}.lane-3"
    producer = Producer({**two.clusters["grape"].client_configuration(), "transactional.id": lane})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce(topic, b"a copy")
    producer.commit_transaction(PATIENCE)
    _, back = two.links
    async with back.engine() as engine:
        reason = await stopped(engine, topic)
    assert "replicator-producers lacks producer id" in reason
    assert f"of {lane}" in reason
    assert back.rows(two.clusters["orange"], topic, 1) == [[]]


async def test_case_354_a_lost_name_stops_no_other_partition(two: Mesh) -> None:
    # Before, no partition with an unknown producer id in the same Fetch was copied either.
    topic = two.topic("orders", 2)
    two.produce("grape", topic, 10, 1, abort=False)
    lost = {"transactional.id": f"replicator-lost-{two.tag}.lane-3"}
    producer = Producer({**two.clusters["grape"].client_configuration(), **lost})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce(topic, b"a copy", partition=0)
    producer.commit_transaction(PATIENCE)
    _, back = two.links
    async with back.engine() as engine:
        await engine.prepare()
        await engine.until_stopped(topic, 0)
        held = engine.held(topic, 1)
    assert held is not None
    assert (held.records, held.stopped) == (10, "")


async def test_a_registered_producer_id_on_a_batch_that_no_lane_wrote_stops_the_partition(two: Mesh) -> None:
    topic = two.topic("orders")
    forth, back = two.links
    async with forth.engine() as engine:
        await engine.prepare()  # makes the topics of producers
    producer = Producer({**two.clusters["grape"].client_configuration(), "enable.idempotence": True})
    producer.produce(topic, b"not a copy")
    producer.flush(PATIENCE)
    async with back.engine() as engine:
        await engine.establish()
        metadata = await engine.source.metadata([topic])
        fetched = await fetch_partition(engine.source, metadata, (topic, 0), 0, "test", FetchLimits(10_000, 0.1))
        (found,) = split(fetched.records)
        lane = encode_producer(
            metadata.cluster_id, LaneProducer("replicator-x.lane-0", found.header.producer_id, 0), back.naming, 1
        )
        key, value = key_and_value(lane.body)
        producer.produce(PRODUCERS, key=key, value=value)
        producer.flush(PATIENCE)
        reason = await stopped(engine, topic)
    assert "is not transactional and has producer id" in reason
    assert back.rows(two.clusters["orange"], topic, 1) == [[]]


async def test_without_the_topic_of_producers_that_it_knows_a_link_does_not_start(two: Mesh) -> None:
    two.topic("orders")
    forth, _ = two.links
    settings = forth.settings()
    async with forth.engine() as engine:
        await engine.establish()
        record = LinkRecord("", 2, 2, 0, uuid.uuid4().hex)
        topic = (await engine.source.metadata([PRODUCERS])).topics[PRODUCERS]
    assert "and the link knew another one" in producers_fault(record, topic, Naming.of(settings))
    assert "is missing" in producers_fault(record, None, Naming.of(settings))
    assert not producers_fault(replace(record, producers=topic.id.hex), topic, Naming.of(settings))


async def test_a_compacted_topic_is_copied_only_if_each_key_has_one_writer(two: Mesh) -> None:
    compacted = two.topic("compacted", **{"cleanup.policy": "compact"})
    plain_one = two.topic("orders")
    forth, _ = two.links
    async with forth.engine() as engine:
        await engine.establish()
        found = await engine.discovery().look()
        snapshot = await Watcher(forth.settings(), engine.source, engine.destination).collect()
        one_writer = await engine.discovery(REPLICA_ONE_WRITER_PER_KEY="yes").look()
    assert {replica.source_topic for replica in found.replicas} == {plain_one}
    assert "REPLICA_ONE_WRITER_PER_KEY=yes" in found.unfit[compacted]
    assert [topic.name for topic in snapshot.topics if topic.stopped] == [compacted]
    assert {replica.source_topic for replica in one_writer.replicas} == {plain_one, compacted}


async def test_a_copy_of_a_link_that_leaves_no_producer_ids_is_not_copied_back(two: Mesh) -> None:
    topic = two.topic("orders")
    two.produce("orange", topic, 10)
    forth, back = two.links
    exact = replace(forth, kind=TopicNaming.EXACT, only=topic, copy=topic)
    async with exact.engine() as engine:
        await engine.prepare()
    async with back.engine() as engine:
        await engine.establish()
        found = await engine.discovery().look()
    assert found.replicas == ()
    assert "does not leave its producer ids" in found.unfit[topic]


async def test_of_two_exact_links_in_opposite_directions_one_is_refused(two: Mesh) -> None:
    topic = two.topic("orders")
    forth, back = (
        replace(link, kind=TopicNaming.EXACT, only=topic, copy=topic, link=name, target=other)
        for link, (name, other) in zip(two.links, itertools.permutations((f"a-{two.tag}", f"b-{two.tag}")), strict=True)
    )
    async with forth.engine() as engine, back.engine() as opposite:
        for each in (engine, opposite):
            await each.establish()
        first = await engine.discovery().look()
        second = await opposite.discovery().look()
    assert [replica.source_topic for replica in first.replicas] == [topic]
    assert second.replicas == ()
    assert "its records would travel in circles" in second.unfit[topic]


async def test_a_promoted_shared_copy_follows_again_and_nothing_is_brought_back(two: Mesh) -> None:
    topic = two.topic("orders")
    forth, _ = two.links
    two.produce("orange", topic, 10)
    async with forth.engine() as engine:
        await engine.copy_all()
    await promoted(forth)
    two.produce("orange", topic, 5)
    two.produce("grape", topic, 5)
    assert await states(forth, topic) == {CopyStates.PROMOTED}
    report = await failed_back(forth)
    assert report.returned == ("",)
    assert await states(forth, topic) == {CopyStates.ACTIVE}
    async with two.engines() as engines:
        for engine in engines:
            await engine.prepare()
        await copy_all(engines)
    two.require_all(topic)
    assert not (await failed_back(forth)).returned


async def test_the_doctor_sees_that_a_cluster_keeps_the_producer_id_of_a_batch(two: Mesh) -> None:
    forth, _ = two.links
    two.topic("orders")
    no_topics: Any = None
    async with forth.engine() as engine:
        await engine.copy_all()
        finding = await Destination(forth.settings(), engine.destination, no_topics).transactions()
    assert finding.verdict is Verdict.PASSED
    assert finding.detail.endswith(".doctor, its producer id is kept")


async def test_case_353_a_topic_of_producers_that_may_lose_names_is_refused(three: Mesh) -> None:
    # Only the positions topic and the registry were looked at.
    forth = next(link for link in three.links if link.grape is three.clusters["lime"])
    three.topic("orders")
    async with forth.engine() as engine:
        await engine.establish()
    configure(three.clusters["lime"], PRODUCERS, **{"cleanup.policy": "delete"})
    try:
        async with forth.engine() as engine:
            with pytest.raises(LinkRefused, match="replicator-producers has cleanup"):
                await engine.establish()
    finally:
        configure(three.clusters["lime"], PRODUCERS, **{"cleanup.policy": "compact"})
