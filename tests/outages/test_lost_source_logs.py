"""A source that dies: a log that lost records is not spliced on, and a log that kept them is read on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from confluent_kafka.admin import NewTopic

from appliance.commands import resumption as resume
from appliance.commands.run.operation import Choice
from appliance.errors import LinkRefused
from appliance.status.model.messages import problems
from appliance.status.model.snapshot import LinkState
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan
from tests.real.status.test_watcher import only, until, watching
from tests.support.administration import make_topic
from tests.support.engine import Pair, copying
from tests.support.leaders import follower_leads
from tests.support.operating import failed_over, promoted
from tests.support.records import produce
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    "moved",
    [
        pytest.param(False, id="read"),
        pytest.param(True, id="moved by a command", marks=pytest.mark.release),  # held by the simulation, case 620
    ],
)
async def test_a_source_log_that_lost_what_was_copied_is_not_spliced_on(
    pair: Pair, three_brokers: Cluster, moved: bool
) -> None:
    # The leader that had the records is gone, and the operator has elected one that never got them (KIP-320).
    unclean = Pair(three_brokers, pair.grape, pair.tag)
    topic = unclean.topic_on("unclean", leader=1, follower=2)
    produce(unclean.producer(), topic, 10)
    async with unclean.engine() as engine:
        await engine.copy_all()
        await three_brokers.kill(2)
        produce(unclean.producer(), topic, 10)
        await engine.copy_all()
        if moved:  # case 629: that position had no leader epoch
            assert await resume.resume(unclean.settings(), resume.Choice(topic, 0, "latest"), lambda _: None) == 1
        await follower_leads(three_brokers, topic)
        produce(unclean.producer(), topic, 30)
        fault = str(await engine.until_stopped(topic))
    assert "the source's log was truncated: from offset 10 on it does not hold what was copied up to 20" in fault
    assert len(unclean.rows(unclean.grape, unclean.naming.destination(topic), 1)[0]) == 20


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(14, id="that is written on"),
        pytest.param(0, id="that is not", marks=pytest.mark.release),  # held by tests/unit/status/test_compose.py
    ],
)
async def test_case_602_of_a_source_that_came_back_without_what_was_copied_it_is_said_how_much_has_no_copy(
    pair: Pair, three_brokers: Cluster, later: int
) -> None:
    # Only the ends were compared: 4 behind was said where 14 had no copy, and nothing of the 10 that were lost.
    unclean = Pair(three_brokers, pair.grape, pair.tag)
    topic = unclean.topic_on("unclean", leader=1, follower=2)
    produce(unclean.producer(), topic, 10)
    async with watching(unclean) as watcher, unclean.engine() as engine:
        await engine.copy_all()
        await three_brokers.kill(2)
        produce(unclean.producer(), topic, 10)
        await engine.copy_all()
        await until(watcher, lambda snapshot: snapshot.state is LinkState.COPIED)
    await follower_leads(three_brokers, topic)
    produce(unclean.producer(), topic, later)
    lost = "the source has lost records that were copied: offsets 10 to 19"
    async with watching(unclean) as watcher:
        snapshot = await until(watcher, lambda snapshot: only(snapshot).lag_records is not None)
    assert (only(snapshot).lag_records, only(snapshot).lost_at_source) == (later, 10)
    assert snapshot.state is LinkState.STOPPED
    assert lost in str(problems(snapshot))
    with pytest.raises(LinkRefused, match=f"cannot be copied to the end: .*{later} behind .{lost}"):
        await promoted(unclean, Choice(dry_run=True))
    report = await failed_over(unclean)
    assert [(loss.behind, loss.lost_at_source, loss.fault) for loss in report.losses] == [(later, 10, lost)]


async def test_case_607_records_above_the_high_watermark_are_not_lost_by_a_promotion(
    pair: Pair, three_brokers: Cluster
) -> None:
    # With too few replicas in sync, a leader takes what producers with acks=1 send, and shows it to no consumer.
    frail = Pair(three_brokers, pair.grape, pair.tag)
    topic = f"above-{pair.tag}"
    configs = {"min.insync.replicas": "2"}
    make_topic(three_brokers, NewTopic(topic, 1, replica_assignment=[[1, 2]], config=configs))
    produce(frail.producer(), topic, 10)
    async with frail.engine() as engine:
        await engine.copy_all()
        await three_brokers.kill(2)
        await asyncio.to_thread(produce, frail.producer(acks=1), topic, 7)
        assert end(three_brokers, topic, 0) == 10
        with pytest.raises(LinkRefused, match=f"not copied within 1 s: {topic}-0: .*the source ends at 17: 7 behind"):
            await promoted(frail, Choice(yes=True, wait=1))
        report = await failed_over(frail, Choice(dry_run=True))
        assert [(loss.source_end, loss.behind) for loss in report.losses] == [(17, 7)]
        await three_brokers.restart(2)
        async with copying(engine):
            assert (await promoted(frail)).document()["behind"] == 0
    assert len(frail.compare(topic)[0]) == 17


@pytest_asyncio.fixture(loop_scope="session")
async def alone(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with Cluster(ClusterPlan.plain("sessions", address="127.0.3.31", heap_megabytes=384), tmp_path) as cluster:
        yield cluster


async def test_a_broker_that_restarts_or_has_no_room_for_a_session_is_read_on(pair: Pair, alone: Cluster) -> None:
    restarted = Pair(alone, pair.grape, pair.tag)
    topic = restarted.topic("restarted", 3)
    produce(restarted.producer(), topic, 10)
    async with restarted.engine() as engine:
        await engine.copy_all()
        before = await engine.fetch_session()
        await alone.restart(0)
        produce(restarted.producer(), topic, 10, 1)
        await engine.copy_all()
        assert (await engine.fetch_session()).id != before.id
        with (alone.broker(0).directory / "server.properties").open("a") as properties:
            properties.write("\nmax.incremental.fetch.session.cache.slots=0\n")
        await alone.restart(0)
        produce(restarted.producer(), topic, 10, 2)
        await engine.copy_all()
        assert engine.fetcher.session._id == 0
        produce(restarted.producer(), topic, 10, 0)
        await engine.copy_all()
    restarted.compare(topic, 3)
