"""Groups that move between topics of one name in several clusters: no record of any cluster is skipped."""

import asyncio
import random
import re
import uuid
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from appliance.commands.removal import remove_topics
from appliance.commands.run.operation import Choice
from appliance.driver.discovery import TopicDiscovery
from appliance.groups.shared_offsets import SharedOffsets
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.registry import Registry
from appliance.link.handle import Link
from appliance.link.model.claims import Claim
from appliance.link.model.link_topics import LinkTopics
from appliance.link.model.naming import Naming
from appliance.link.model.translation import Translation
from testbed.cluster import Cluster
from tests.support.engine import Engine
from tests.support.mesh import Mesh, begin, copy_all, until_decided
from tests.support.operating import command, run_command
from tests.support.patience import PATIENCE
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")


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
                translator = SharedOffsets(engine.link(engine.pair.settings()))
                assert await translator.refresh([Partition(topic, 0)]) == {}
                for offset in range(end(engine.pair.orange, topic, 0) + 1):
                    read = {value for value, at in here.items() if at < offset}
                    unread = [at for value, at in there.items() if value not in read]
                    found = translator.translate(Partition(topic, 0), offset, ids[engine.pair.orange.plan.name])
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
        translator = SharedOffsets(forth.link(forth.pair.settings()))
        assert await translator.refresh([Partition(topic, 0), Partition(first, 0)]) == {}
        ids = (await forth.source.metadata([first, topic])).topics
        unknown = translator.translate(Partition(topic, 0), 0, ids[topic].id)
        known = translator.translate(Partition(first, 0), 0, ids[first].id)
        other = translator.translate(Partition(first, 0), 0, uuid.uuid4())
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
            await begin(engines)
            await until_decided(engines)
    async with two.engines() as (forth, _):
        found = await translated(forth, topic, 3)
    assert (found.offset, found.reason) == (3, "")


@pytest.mark.parametrize("case", ["excluded", pytest.param("no longer matched", marks=pytest.mark.release)])
async def test_case_363_topics_that_a_link_no_longer_takes_keep_no_group_from_moving(two: Mesh, case: str) -> None:
    # Claims kept the regex that they were made with, and no exclude regex.
    other = Mesh(two.clusters, f"other-{uuid.uuid4().hex}")
    other.produce("orange", other.topic("orders"), 5)
    both = [replace(link.naming, included=re.compile(f".*({two.tag}|{other.tag})")) for link in other.links]
    async with other.engines() as engines:
        await begin(engines)
        for engine, naming in zip(engines, both, strict=True):
            await discovery(engine, naming).search()
        topic = two.topic("orders")
        two.produce("orange", topic, 5)
        async with two.engines() as ours:
            await begin(ours)
            await until_decided([*engines, *ours])
            before = await translated(ours[0], topic, 3)
            for engine, naming in zip(engines, both, strict=True):
                excluding = replace(naming, excluded=re.compile(f".*{two.tag}"))
                await discovery(engine, excluding if case == "excluded" else engine.pair.naming).search()
            after = await translated(ours[0], topic, 3)
    assert before.offset is None
    assert f"has no position of {topic}-0 yet" in before.reason
    assert (after.offset, after.reason) == (3, "")


@pytest.mark.parametrize("case", ["excluded", pytest.param("no longer matched", marks=pytest.mark.release)])
async def test_case_369_a_group_is_not_moved_past_records_of_a_link_that_has_given_the_topic_up(
    two: Mesh, case: str
) -> None:
    # The claim of a removed topic was gone, and then the regex: nobody accounted for what the link had copied.
    topic, other = two.topic("orders"), two.topic("payments")
    for cluster, name in (("grape", topic), ("grape", other), ("orange", other)):
        two.produce(cluster, name, 5)
    async with two.engines() as engines:
        await begin(engines)
        two.produce("orange", topic, 5)
        await copy_all(engines)
        await until_decided(engines)
        forth, back = engines
        before = await translated(forth, topic, 0)
        async with command(back.pair, Choice(yes=True, topic=topic)) as running:
            await run_command(running, remove_topics)
        narrowed = replace(back.pair.naming, included=re.compile(f"payments-{two.tag}"))
        excluding = replace(back.pair.naming, excluded=re.compile(topic))
        await discovery(back, excluding if case == "excluded" else narrowed).search()
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
        await begin(engines)
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


@pytest.mark.release  # held by tests/unit/link/test_claim_changes.py
async def test_a_copy_that_was_given_up_keeps_a_group_from_moving_until_it_is_made_anew_or_the_link_is_deleted(
    two: Mesh,
) -> None:
    topic = two.topic("orders")
    two.produce("orange", topic, 5)
    async with two.engines() as engines:
        await begin(engines)
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
    return TopicDiscovery(Link(engine.source, engine.destination, naming), engine.pair.settings().topics)


async def translated(engine: Engine, topic: str, offset: int) -> Translation:
    """The place of a group that moves with a link, by what the registries say now."""
    translator = SharedOffsets(engine.link(engine.pair.settings()))
    assert await translator.refresh([Partition(topic, 0)]) == {}
    source_id = (await engine.source.metadata([topic])).topics[topic].id
    return translator.translate(Partition(topic, 0), offset, source_id)


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
