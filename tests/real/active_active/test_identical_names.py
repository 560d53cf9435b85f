"""Topics of one name in several clusters, copied in all directions at once: each record once everywhere."""

import asyncio
import itertools
import random
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from appliance.commands.resumption import Choice, resume
from appliance.doctor.destination_rights import Destination
from appliance.doctor.source_topics import SourceTopics
from appliance.doctor.step import Verdict
from appliance.engine.write.lane import Lane
from appliance.errors import LinkRefused
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.compacted_log import read_records
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.transactions import init_producer_id
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, key_and_value
from appliance.link.handle import Link
from appliance.link.model.copy_states import CopyState as CopyStates
from appliance.link.model.naming import PRODUCERS
from appliance.logs.model.span import CopyState
from appliance.settings.values import TopicNaming
from appliance.status.model.messages import remarks
from appliance.status.model.snapshot import LinkState, Snapshot
from appliance.status.watcher import Watcher
from appliance.verify.verification import Verification
from tests.support.administration import COMPACTED, configure, make_topic
from tests.support.engine import Engine, Pair, delete_topic
from tests.support.failing_back import failed_back
from tests.support.forgetful import until_forgotten
from tests.support.mesh import Mesh, begin, copy_all, value_of
from tests.support.operating import everywhere, failed_over, removed, restored
from tests.support.patience import PATIENCE
from tests.support.verifying import results_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


def require_audited(snapshot: Snapshot) -> None:
    """Require that a link has dropped what the links into its source wrote there."""
    assert snapshot.state is LinkState.COPIED, snapshot
    assert [partition.dropped for partition in snapshot.partitions] == [each.written for each in snapshot.partitions]
    assert not any("links count" in remark for remark in remarks(snapshot))


async def require_equal(engine: Engine) -> None:
    """Require that the link's own records are equal on both sides."""
    run = Verification(Link(engine.source, engine.destination, engine.pair.naming))
    results = await results_of(run, [], PATIENCE)
    assert {result.state for result in results} == {CopyState.EQUAL}, results
    assert sum(result.records for result in results) == sum(
        held.records for held in (await engine.positions()).values()
    )


async def stopped(engine: Engine, topic: str) -> str:
    """Copy until the first partition of a topic has stopped; the reason."""
    await engine.prepare()
    return await engine.until_all_stopped(topic, 1)


async def test_records_of_both_sides_are_on_both_sides_once_and_in_order(two: Mesh) -> None:
    topic = two.topic("orders", 2)
    for partition in range(2):
        two.produce("orange", topic, 100, partition)
        two.produce("grape", topic, 50, partition, abort=False)
        two.produce("grape", topic, 30, partition, abort=True)
    async with two.engines() as engines:
        await begin(engines)
        two.produce("orange", topic, 20, abort=False)
        two.produce("grape", topic, 20, 1)
        await copy_all(engines)
        two.require_all(topic, 2)
        forth, back = [[engine.held(topic, partition) for partition in range(2)] for engine in engines]
        for engine in engines:
            require_audited(await Watcher(engine.link(engine.pair.settings()), engine.pair.settings()).collect())
            await require_equal(engine)
    for there, here in zip(forth, back, strict=True):
        assert there is not None
        assert here is not None
        assert (there.records, here.records) == (here.dropped, there.dropped)
        assert min(there.records, here.records) > 0


async def test_case_683_a_topic_that_changes_the_times_of_records_gets_none_until_it_keeps_them(two: Mesh) -> None:
    # Each record came with the time of its copy: the sides differed for ever, and nobody was told.
    topic = two.topic("timed")
    configure(two.clusters["grape"], topic, **{"message.timestamp.type": "LogAppendTime"})
    two.produce("orange", topic, 10)
    async with two.engines() as (forth, _):
        reason = await stopped(forth, topic)
        assert f"{topic}-0 offset 0 is refused: {topic} has message.timestamp.type=LogAppendTime" in reason
        assert forth.pair.rows(forth.pair.grape, topic, 1) == [[]]
        configure(two.clusters["grape"], topic, **{"message.timestamp.type": "CreateTime"})
        await forth.copy_all()
        forth.pair.compare(topic)


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
        await begin(engines)
        held = {engine.pair.link: engine.held(topic, 0) for engine in engines}
    three.require_all(topic, 2)
    for name in three.clusters:
        incoming = [held[link.link] for link in three.links if link.grape is three.clusters[name]]
        outgoing = [held[link.link] for link in three.links if link.orange is three.clusters[name]]
        copied = sum(position.records for position in incoming if position)
        assert [position.dropped for position in outgoing if position] == [copied, copied], f"seed {seed}"


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
    await three.copied(topic)


async def test_names_outlast_the_compaction_of_their_topic(two: Mesh) -> None:
    topic = two.topic("orders")
    forth = next(two.links)
    two.produce("orange", topic, 10)
    configured = {name: value for name, value in COMPACTED.items() if name != "cleanup.policy"}
    async with forth.engine() as engine:
        await engine.copy_all()
        (runner,) = engine.runners
        key, written = b'"producer": %d}' % runner.lane.producer.id, 1
        runner.lane.restart()
        configure(forth.grape, PRODUCERS, **configured)
        try:
            async with asyncio.timeout(PATIENCE):
                while sum(name.endswith(key) for name in await names(engine.destination)) == written:
                    await runner.lane.start()  # in a new epoch: the name is written again, by the same key
                    runner.lane.restart()
                    written += 1
                    await asyncio.sleep(0.3)
        finally:
            configure(forth.grape, PRODUCERS, **dict.fromkeys(configured))
    two.produce("grape", topic, 10, abort=False)
    await two.copied(topic)


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
    await two.copied(topic)


async def names(cluster: KafkaCluster) -> list[bytes]:
    """The keys in the topic of producers, as often as they are there."""
    metadata = await cluster.metadata([PRODUCERS])
    partition, found, at = Partition(PRODUCERS, 0), list[bytes](), 0
    last = await list_offsets(cluster, metadata, [partition], Bound.STABLE_END)
    while at < last[partition]:
        records, at = await read_records(cluster, metadata, partition, at)
        found += [key_and_value(record.body)[0] or b"" for record in records]
    return found


async def test_case_354_a_lane_whose_name_was_lost_stops_its_partition_alone(two: Mesh) -> None:
    # Before, no partition with an unknown producer id in the same Fetch was copied either.
    topic = two.topic("orders", 2)
    two.produce("grape", topic, 10, 1, abort=False)
    lane = f"replicator-lost-{two.tag}.lane-3"
    producer = Producer({**two.clusters["grape"].client_configuration(), "transactional.id": lane})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce(topic, b"a copy", partition=0)
    producer.commit_transaction(PATIENCE)
    _, back = two.links
    async with back.engine() as engine:
        await engine.prepare()
        reason = str(await engine.until_stopped(topic, 0))
        assert "replicator-producers lacks producer id" in reason
        assert f"of {lane}" in reason
        assert engine.position(topic, 1).records == 10
    assert back.copy_counts(topic, 2) == [0, 10]


async def test_of_two_exact_links_in_opposite_directions_one_is_refused(two: Mesh) -> None:
    topic = two.topic("orders")
    forth, back = (
        replace(link, kind=TopicNaming.EXACT, only=topic, copy=topic, link=name, target=other)
        for link, (name, other) in zip(two.links, itertools.permutations((f"a-{two.tag}", f"b-{two.tag}")), strict=True)
    )
    async with forth.engine() as engine, back.engine() as opposite:
        for each in (engine, opposite):
            await each.establish()
        first = await engine.discovery().search()
        second = await opposite.discovery().search()
    assert [replica.source_topic for replica in first.replicas] == [topic]
    assert second.replicas == ()
    assert "its records would travel in circles" in second.unfit[topic]


async def test_a_promoted_shared_copy_follows_again_and_nothing_is_brought_back(two: Mesh) -> None:
    topic = two.topic("orders")
    forth, _ = two.links
    two.produce("orange", topic, 10)
    async with forth.engine() as engine:
        await engine.copy_all()
    await failed_over(forth)
    two.produce("orange", topic, 5)
    two.produce("grape", topic, 5)
    assert await everywhere(forth, topic) == {CopyStates.PROMOTED}
    report = await failed_back(forth)
    assert report.returned == ("",)
    assert await everywhere(forth, topic) == {CopyStates.ACTIVE}
    await two.copied(topic)
    assert not (await failed_back(forth)).returned


async def test_the_doctor_sees_that_a_cluster_keeps_the_producer_id_of_a_batch(two: Mesh) -> None:
    forth, _ = two.links
    two.topic("orders")
    async with forth.engine() as engine:
        await engine.copy_all()
        no_topics = SourceTopics(engine.source, forth.naming)
        finding = await Destination(forth.settings(), engine.destination, no_topics).transactions()
    assert finding.verdict is Verdict.PASSED
    assert finding.detail.endswith(".doctor, acknowledged, and read back")


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


@pytest.fixture(params=["of this release", "of the release before"])
def plain_lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes that keep to themselves, of releases that leave their names, and of those that do not."""
    leaves = Lane.producer_name

    async def named(self: Lane, *arguments: Any) -> Record | None:
        return await leaves(self, *arguments) if self.naming.sharing.others_write else None

    if request.param != "of this release":
        monkeypatch.setattr(Lane, "producer_name", named)


@pytest.mark.usefixtures("plain_lanes")
async def test_case_643_what_a_failback_brings_is_copied_on_at_once(two: Mesh) -> None:
    # Its lanes had neither names nor claims: the partition stopped, until the cluster forgot their transactional ids.
    topic = two.topic("orders")
    forth, _ = two.links
    plain = Pair(forth.orange, forth.grape, two.tag, link=f"plain-{two.tag}")
    two.produce("orange", topic, 10)
    async with two.engines() as engines:
        await begin(engines)
    async with plain.engine() as engine:
        await engine.copy_all()
    await failed_over(plain)
    two.produce("grape", topic, 5, to=plain.naming.destination(topic))
    assert (await failed_back(plain)).returned
    await two.copied(topic)


@pytest.mark.usefixtures("plain_lanes")
async def test_case_644_what_a_link_has_left_that_gave_its_copies_up_is_copied_on_at_once(
    two: Mesh, request: pytest.FixtureRequest
) -> None:
    # Without a claim its lanes, which had left no names, were taken for lanes whose names were lost.
    topic = two.topic("orders")
    plain = brings_elsewhere(two, topic)
    async with two.engines() as engines:
        for engine in engines:
            await engine.establish()
    two.produce("grape", topic, 10, to=plain.only)
    async with plain.engine() as engine:
        await engine.copy_all()
    await removed(plain, plain.only)
    if "this release" in request.node.callspec.id:  # its names are all that is left
        delete_topic(plain.grape, plain.naming.positions_topic)
    await two.copied(topic)


def brings_elsewhere(mesh: Mesh, topic: str) -> Pair:
    """A link that keeps to itself, from a topic of the second cluster to one of the first that is also the mesh's."""
    there, here = mesh.clusters["grape"], mesh.clusters["orange"]
    name = f"{mesh.tag}-elsewhere"
    make_topic(there, NewTopic(name, 1, 1))
    return Pair(there, here, mesh.tag, TopicNaming.EXACT, only=name, copy=topic, link=f"plain-{mesh.tag}")


async def test_case_645_a_link_that_begins_to_share_is_left_out_from_then_on_without_a_restart(two: Mesh) -> None:
    # Its producer ids were known as others': what it wrote travelled on, and once its name was read, nothing did.
    topic = two.topic("orders")
    forth, _ = two.links
    plain = brings_elsewhere(two, topic)
    async with forth.engine() as reader:
        await reader.establish()
        two.produce("grape", topic, 10, to=plain.only)
        async with plain.engine() as engine:
            await engine.copy_all()
        await removed(plain, plain.only)
        await reader.assign()
        await reader.copy_all()
        sharing = replace(plain, fan_in=True)
        await restored(sharing, plain.only)
        two.produce("grape", f"{topic}-not-passed-on", 5, to=plain.only)
        async with sharing.engine() as engine:
            await engine.prepare()
            await engine.until_all_stopped(plain.only, 1)
        await resume(sharing.settings(), Choice(plain.only, 0, "10"), lambda _: None)
        async with sharing.engine() as engine:
            await engine.copy_all()
        two.produce("orange", topic, 5)
        await reader.copy_all()
        held = reader.held(topic)
    assert held is not None
    assert (held.records, held.dropped, held.stopped) == (15, 5, "")
    rows = forth.rows(forth.grape, topic, 1)[0]
    assert [value_of(row) for row in rows] == list(two._written[f"{topic}-0"])
