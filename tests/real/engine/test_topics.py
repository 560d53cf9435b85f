"""Changes of topics while they are copied: new ones, more partitions, other configurations."""

import asyncio

import pytest

from appliance.settings.values import OnGap
from tests.support.administration import configuration, configure, grow, partitions
from tests.support.engine import Pair
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_copy_has_its_sources_partitions_and_configuration(pair: Pair) -> None:
    topic = pair.topic("configured", 3, **{"retention.ms": "7200000", "min.insync.replicas": "1"})
    async with pair.engine() as engine:
        await engine.discovery().search()
    held = configuration(pair.grape, pair.copy_of(topic))
    assert held["retention.ms"] == "7200000"
    assert held["message.timestamp.type"] == "CreateTime"
    assert "min.insync.replicas" not in held


async def test_copies_are_made_and_grown_and_found_in_one_look(pair: Pair) -> None:
    topics = [pair.topic(f"found{number}", 2) for number in range(5)]
    async with pair.engine() as engine:
        await engine.establish()
        found = await engine.discovery().search()
        assert {replica.source_topic for replica in found.replicas} == set(topics)
        await engine.copy_all()
        grow(pair.orange, topics[0], 6)
        found = await engine.discovery().search()
        assert len([replica for replica in found.replicas if replica.source_topic == topics[0]]) == 6


async def test_a_changed_configuration_follows(pair: Pair) -> None:
    topic = pair.topic("changing", **{"retention.ms": "7200000", "segment.ms": "600000"})
    copy = pair.copy_of(topic)
    async with pair.engine() as engine:
        watching = engine.discovery()
        await watching.search()
        configure(pair.orange, topic, **{"retention.ms": "3600000", "segment.ms": None})
        configure(pair.grape, copy, **{"flush.messages": "100"})
        async with asyncio.timeout(PATIENCE):
            while configuration(pair.grape, copy)["retention.ms"] != "3600000":
                await watching.search()
    held = configuration(pair.grape, copy)
    assert "segment.ms" not in held
    assert held["flush.messages"] == "100"


async def test_a_smaller_topic_that_is_not_our_copy_is_left_alone(pair: Pair) -> None:
    topic = pair.topic("foreign", 2)
    pair.make_copy(topic, 1)
    async with pair.engine() as engine:
        found = await engine.discovery().search()
    assert "has 1 partitions" in found.unfit[topic]
    assert found.replicas == ()
    assert partitions(pair.grape, pair.copy_of(topic)) == 1


async def test_a_topic_that_comes_while_records_flow_is_taken_in_by_lanes_that_stay_as_they_are(pair: Pair) -> None:
    old = pair.topic("flowing", 8)
    async with pair.engine() as engine:
        await engine.copy_all()
        checkpoints = {runner.lane.index: runner.lane.checkpoint for runner in engine.runners}
        for turn in range(4):
            flowing = asyncio.create_task(asyncio.to_thread(pair.write, old, 50, 8))
            await engine.copy_until(flowing)
            added = pair.topic(f"added{turn}", 3)
            pair.write(added, 50, 3)
            await engine.assign()
            # A broker that does not know yet that it leads a new copy would make the lane start again.
            await engine.until_led(added)
        await engine.copy_all()
        # A lane that starts again, with another epoch, reads its positions into a new checkpoint.
        assert all(runner.lane.checkpoint is checkpoints[runner.lane.index] for runner in engine.runners)
    assert [len(rows) for rows in pair.compare(old, 8)] == [200] * 8
    for turn in range(4):
        assert [len(rows) for rows in pair.compare(f"added{turn}-{pair.tag}", 3)] == [50] * 3


async def test_a_topic_that_is_made_anew_while_its_lane_is_warm_is_not_spliced_on(pair: Pair) -> None:
    topic, other = pair.filled("anew", 20), pair.topic("other")
    async with pair.engine() as engine:
        await engine.copy_all()
        pair.delete(topic)
        await engine.assign()
        pair.write(other, 10)
        await engine.copy_all()
        pair.topic("anew")
        pair.write(topic, 30)
        await engine.assign()
        fault = await engine.until_stopped(topic)
        assert "was deleted and made anew" in str(fault)
        pair.write(other, 10)
        await engine.copy_until(engine.until_copied(other, 20))
        await engine.until_decided()
    assert pair.copy_counts(topic) == [20]
    assert len(pair.compare(other)[0]) == 20


async def test_a_copy_that_is_made_anew_while_its_lane_is_warm_goes_on_from_the_sources_start(pair: Pair) -> None:
    topic = pair.filled("again", 20)
    async with pair.engine(on_gap=OnGap.RECORD) as engine:
        await engine.copy_all()
        pair.delete_copy(topic)
        await engine.assign()
        pair.write(topic, 10)
        await engine.copy_until(engine.until_copied(topic, 50))
        await engine.until_decided()
        assert [(gap.first, gap.next) for gap in await engine.gaps()] == [(0, 0)]  # no source offset is left out
    assert len(pair.compare(topic)[0]) == 30


async def test_partitions_that_are_added_while_their_lanes_are_warm_are_copied_whole(pair: Pair) -> None:
    topic = pair.filled("larger", 10)
    async with pair.engine() as engine:
        await engine.copy_all()
        grow(pair.orange, topic, 6)
        pair.write(topic, 50, 6)
        await engine.assign()
        await engine.copy_all()
    assert [len(rows) for rows in pair.compare(topic, 6)] == [60] + [50] * 5
