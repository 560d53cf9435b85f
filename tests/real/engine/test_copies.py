"""Copies on real brokers: their owner, records without a position, and losses."""

import asyncio
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from appliance.commands.resumption import Choice, resume
from appliance.kafka.client.offsets import Bound
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client import checkpoint_log
from tests.support.administration import make_topic
from tests.support.engine import OtherLink, Pair
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_case_14_a_copy_that_belongs_to_another_link_is_refused_and_the_other_named(pair: Pair) -> None:
    # Before, both wrote into it, and each record was there twice, without a message. Invariant I
    topic = pair.filled("owned", 10)
    await pair.copy_all()
    other = OtherLink(pair.grape, pair.grape, pair.tag)
    other.topic("owned")
    produce(Producer(pair.grape.client_configuration()), topic, 10)
    async with other.engine() as engine:
        await engine.establish()
        found = await engine.discovery().search()
        assert found.replicas == ()
        assert f"{pair.copy_of(topic)} belongs to link {pair.naming.replicator}" in found.unfit[topic]
        assert "REPLICA_TOPICS_DEST_SUFFIX" in found.unfit[topic]
    assert len(pair.compare(topic)[0]) == 10


async def test_of_two_links_that_come_at_once_one_has_the_copy(pair: Pair) -> None:  # invariant I
    topics = [pair.topic(f"race{number}") for number in range(5)]
    other = OtherLink(pair.grape, pair.grape, pair.tag)
    for topic in topics:
        make_topic(pair.grape, NewTopic(topic, 1, 1))
        pair.make_copy(topic, 1)
    async with pair.engine() as ours, other.engine() as theirs:
        for engine in (ours, theirs):
            await engine.establish()
        found = await asyncio.gather(ours.discovery().search(), theirs.discovery().search())
    copied = [{replica.source_topic for replica in each.replicas} for each in found]
    assert not copied[0] & copied[1]
    assert copied[0] | copied[1] == set(topics)


async def test_a_copy_is_taken_over_by_the_operators_word_and_the_other_link_stops(pair: Pair) -> None:  # invariant I
    topic = pair.filled("taken", 10)
    other = OtherLink(pair.orange, pair.grape, pair.tag)
    async with pair.engine() as engine, other.engine() as theirs:
        await engine.copy_all()
        await theirs.establish()
        told: list[str] = []
        assert await resume(other.settings(), Choice(topic, None, "earliest", take_over=True), told.append) == 2
        assert f"is taken over from {pair.naming.replicator}" in told[0]
        assert [replica.source_topic for replica in (await theirs.discovery().search()).replicas] == [topic]
        assert (await engine.discovery().search()).replicas == ()


@pytest.mark.parametrize(("start", "count"), [("earliest", 10), ("latest", 5), ("7", 3)])
async def test_a_copy_that_holds_records_no_position_accounts_for_waits_for_the_operator(
    pair: Pair, start: str, count: int
) -> None:  # invariant H
    # The copy holds records, and starting at the beginning would double them.
    topic = pair.topic("found")
    pair.make_copy(topic, 1)
    produce(Producer(pair.grape.client_configuration()), pair.copy_of(topic), 5)
    pair.write(topic, 10)
    async with pair.engine() as engine:
        fault = await engine.until_all_stopped(topic, 1)
        assert f"{pair.copy_of(topic)}-0 ends at offset 5, and no position says how far" in fault
        told: list[str] = []
        choice = Choice(topic, 0, start)
        assert await resume(pair.settings(), choice, told.append, only_plan=True) == 1
        assert (await engine.positions())[topic, 0].stopped
        assert await resume(pair.settings(), choice, told.append) == 1
        assert told[0] == told[1]
        assert f"{topic}-0 goes on from offset" in told[0]
        produce(pair.producer(), topic, 5 if start == "latest" else 0)
        await engine.copy_all()
    assert pair.copy_counts(topic) == [5 + count]


async def test_a_lane_reads_on_to_its_own_mark_whatever_end_its_leader_tells(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A deposed leader that does not know it answers with an old end, so later positions would be missed.
    topic = pair.filled("deposed", 10)
    await pair.copy_all()
    real = checkpoint_log.list_offsets

    async def of_the_past(*arguments: Any) -> dict[Partition, int]:
        offsets = await real(*arguments)
        return offsets if arguments[3] is Bound.START else dict.fromkeys(offsets, 0)

    monkeypatch.setattr(checkpoint_log, "list_offsets", of_the_past)
    pair.write(topic, 10)
    async with pair.engine() as engine:
        await engine.prepare()
        await engine.copy_until(engine.until_copied(topic, 20))
    assert len(pair.compare(topic)[0]) == 20
