"""Copies on brokers that die: losses are found, and keep no other partition waiting."""

import asyncio
import re

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochRequest

from appliance.commands.resumption import Choice, resume
from appliance.commands.run.operation import Choice as PromotionChoice
from appliance.errors import LinkRefused, SettingsError
from appliance.kafka.client import offsets
from appliance.kafka.protocol.versions import offers
from appliance.status.model.messages import problems
from appliance.status.model.snapshot import LinkState
from testbed.cluster import Cluster
from tests.real.status.test_watcher import until, watching
from tests.support.administration import make_topic, wait_for_leader
from tests.support.engine import LANES, Engine, Pair
from tests.support.leaders import follower_leads
from tests.support.operating import failed_over, promoted
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOOSE = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
COMPACT = {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(30, id="that is written to"),
        pytest.param(0, id="that is idle", marks=pytest.mark.release),  # held by the simulation, fault losses
    ],
)
async def test_case_15_a_copy_that_lost_what_it_had_acknowledged_stops(
    pair: Pair, three_brokers: Cluster, later: int
) -> None:
    # Before, a new epoch repaired the sequence numbers, and copying continued over the hole. Invariant J
    lossy = Pair(pair.orange, three_brokers, pair.tag)
    topic, other = lossy.topic("lossy"), lossy.topic("whole")
    copy = lossy.naming.destination(topic)
    make_topic(three_brokers, NewTopic(copy, 1, replica_assignment=[[1, 2]], config=LOOSE))
    make_topic(three_brokers, NewTopic(lossy.naming.destination(other), 1, replica_assignment=[[0]]))
    produce(lossy.producer(), topic, 10)
    async with lossy.engine() as engine:
        await engine.copy_all()
        await three_brokers.kill(2)
        produce(lossy.producer(), topic, 10)
        await engine.copy_all()
        ended = end(three_brokers, copy, 0)
        await follower_leads(three_brokers, copy)
        produce(lossy.producer(), topic, later)
        produce(lossy.producer(), other, 30)
        fault = str(await engine.until_stopped(topic))
        assert f"{copy}-0 has lost what it had acknowledged, offsets 11 to {ended - 1} of the copy" in fault
        await three_brokers.restart(1)  # it may hold the registry, which has one replica here
        told: list[str] = []
        assert await resume(lossy.settings(), Choice(topic, 0, "10"), told.append) == 1
        await engine.copy_until(asyncio.create_task(engine.until_copied(topic, 30 + later)))
        await engine.copy_all()
    assert len(lossy.compare(other)[0]) == 30
    assert len(lossy.compare(topic)[0]) == 20 + later


async def test_case_608_a_copy_that_lost_what_it_had_acknowledged_is_not_promoted_and_not_said_to_be_copied(
    pair: Pair, three_brokers: Cluster
) -> None:
    # "copied", "promoted", "0 behind" were said: only a lane's next start looked at the copy.
    lossy = Pair(pair.orange, three_brokers, pair.tag)
    topic = lossy.topic("lossy")
    copy = lossy.naming.destination(topic)
    make_topic(three_brokers, NewTopic(copy, 1, replica_assignment=[[1, 2]], config=LOOSE))
    produce(lossy.producer(), topic, 10)
    async with watching(lossy) as watcher:
        async with lossy.engine() as engine:
            await engine.copy_all()
            await three_brokers.kill(2)
            produce(lossy.producer(), topic, 10)
            await engine.copy_all()
        await until(watcher, lambda snapshot: snapshot.state is LinkState.COPIED)
        last = end(three_brokers, copy, 0) - 1
        await follower_leads(three_brokers, copy)
        await three_brokers.restart(1)  # it may hold the registry, which has one replica here
        lost = f"{copy}-0 has lost what it had acknowledged, offsets 11 to {last} of the copy"
        for filled in (0, 30):
            produce(Producer(three_brokers.client_configuration()), copy, filled)
            snapshot = await until(watcher, lambda snapshot: snapshot.state is LinkState.STOPPED)
            assert lost in str(problems(snapshot))
            with pytest.raises(LinkRefused, match=f"cannot be copied to the end: .*unknown behind .{lost}"):
                await promoted(lossy, PromotionChoice(dry_run=True))
        report = await failed_over(lossy)
    assert [(loss.behind, loss.fault) for loss in report.losses] == [(None, lost)]


async def lose_the_tail(lossy: Pair, three_brokers: Cluster, topic: str, lost: str) -> None:
    """Copy 20 records of a topic; then the topic ``lost``, on brokers 1 and 2, loses the data of the last 10."""
    produce(lossy.producer(), topic, 10)
    async with lossy.engine() as engine:
        await engine.copy_all()
        await three_brokers.kill(2)
        produce(lossy.producer(), topic, 10)
        await engine.copy_all()
    await follower_leads(three_brokers, lost)
    await three_brokers.restart(1)


async def test_case_16_a_positions_topic_that_lost_its_end_doubles_nothing(pair: Pair, three_brokers: Cluster) -> None:
    # Before, the records after the remaining position were copied once more. Invariant H
    lossy = Pair(pair.orange, three_brokers, pair.tag)
    topic, positions = lossy.topic("tail"), lossy.naming.positions_topic
    make_topic(three_brokers, NewTopic(positions, LANES, replica_assignment=[[1, 2]] * LANES, config=LOOSE | COMPACT))
    make_topic(three_brokers, NewTopic(lossy.naming.destination(topic), 1, replica_assignment=[[0]]))
    await lose_the_tail(lossy, three_brokers, topic, positions)
    async with lossy.engine() as engine:
        await engine.prepare()
        fault = str(await engine.until_stopped(topic))
        assert re.search(r"holds records from offset \d+ on that no position accounts for", fault)
        with pytest.raises(
            SettingsError, match=f"no position accounts for.*resume --topic-name={topic} --partition 0 --from "
        ):
            await resume(lossy.settings(), Choice(topic, 0, "retry"), lambda _: None)
        assert await resume(lossy.settings(), Choice(topic, 0, "20"), lambda _: None) == 1
        produce(lossy.producer(), topic, 5)
        await engine.copy_until(asyncio.create_task(engine.until_copied(topic, 15)))
    assert len(lossy.compare(topic)[0]) == 25


@pytest.mark.parametrize(
    "knows_epochs",
    [
        pytest.param(True, id="epochs known"),
        # held by test_no_map_leads_to_records_that_are_gone in the simulation
        pytest.param(False, id="epochs unknown", marks=pytest.mark.release),
    ],
)
async def test_a_loss_is_noticed_though_something_else_has_filled_the_hole(
    pair: Pair, three_brokers: Cluster, monkeypatch: pytest.MonkeyPatch, knows_epochs: bool
) -> None:  # invariant J
    if not knows_epochs:
        lacks = OffsetForLeaderEpochRequest
        monkeypatch.setattr(offsets, "offers", lambda offered, asked: asked is not lacks and offers(offered, asked))
    lossy = Pair(pair.orange, three_brokers, pair.tag)
    topic = lossy.topic("filled")
    copy = lossy.naming.destination(topic)
    make_topic(three_brokers, NewTopic(copy, 1, replica_assignment=[[1, 2]], config=LOOSE))
    await lose_the_tail(lossy, three_brokers, topic, copy)
    other = Producer({**three_brokers.client_configuration(), "transactional.id": f"other-{topic}"})
    await asyncio.to_thread(begin_to_write, other, copy)
    produce(lossy.producer(), topic, 5)
    async with lossy.engine() as engine:
        await engine.prepare()
        await engine.copy_until(asyncio.create_task(until_told(engine, f"{topic}-0", "open transaction below offset")))
        await asyncio.to_thread(other.abort_transaction, PATIENCE)
        assert "has lost what it had acknowledged" in str(await engine.until_stopped(topic))


def begin_to_write(producer: Producer, topic: str) -> None:
    """Write 30 records in a transaction that stays open."""
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    for _ in range(30):
        producer.produce(topic, b"of another", partition=0)
    assert producer.flush(PATIENCE) == 0


async def until_told(engine: Engine, subject: str, text: str) -> None:
    while text not in str(engine.faults.get(subject)):
        await asyncio.sleep(0.05)


async def test_copies_that_cannot_be_written_keep_no_other_of_their_lane_waiting(
    pair: Pair, three_brokers: Cluster
) -> None:
    frail = Pair(pair.orange, three_brokers, pair.tag)
    few, gone, others = frail.topic("few"), frail.topic("gone"), frail.topic("others", 8)
    copies = {topic: frail.naming.destination(topic) for topic in (few, gone, others)}
    in_sync = {"min.insync.replicas": "2"}
    make_topic(three_brokers, NewTopic(copies[few], 1, replica_assignment=[[1, 2]], config=in_sync))
    make_topic(three_brokers, NewTopic(copies[gone], 1, replica_assignment=[[2]]))
    make_topic(three_brokers, NewTopic(copies[others], 8, replica_assignment=[[0]] * 8))
    async with frail.engine() as engine:
        await engine.prepare()
        await three_brokers.kill(2)
        await asyncio.to_thread(wait_for_leader, three_brokers, copies[gone], -1)
        for topic, partitions in ((few, 1), (gone, 1), (others, 8)):
            for partition in range(partitions):
                produce(frail.producer(), topic, 10, partition)

        async def others_copied_and_these_named() -> None:
            await engine.until_copied(others, 10, partitions=8)
            while not {f"{few}-0", f"{gone}-0"} <= engine.faults.keys():
                await asyncio.sleep(0.05)

        await engine.copy_until(asyncio.create_task(others_copied_and_these_named()))
        assert "NOT_ENOUGH_REPLICAS" in str(engine.faults[f"{few}-0"])
        assert "has no leader now" in str(engine.faults[f"{gone}-0"])
        await three_brokers.restart(2)
        await engine.copy_all()
        assert not engine.faults
    for topic, partitions in ((few, 1), (gone, 1), (others, 8)):
        assert [len(rows) for rows in frail.compare(topic, partitions)] == [10] * partitions


async def test_a_copy_whose_replicas_fall_behind_while_it_is_idle_keeps_no_other_of_its_lane_waiting(
    pair: Pair, three_brokers: Cluster
) -> None:
    # A transaction that touches it could not end, not even by an abort, and the lane would wait for it.
    frail = Pair(pair.orange, three_brokers, pair.tag)
    few, others = frail.topic("few"), frail.topic("others", 8)
    copies = {topic: frail.naming.destination(topic) for topic in (few, others)}
    in_sync = {"min.insync.replicas": "2"}
    make_topic(three_brokers, NewTopic(copies[few], 1, replica_assignment=[[1, 2]], config=in_sync))
    make_topic(three_brokers, NewTopic(copies[others], 8, replica_assignment=[[0]] * 8))
    produce(frail.producer(), few, 10)
    async with frail.engine() as engine:
        await engine.copy_all()
        await three_brokers.kill(2)

        async def noticed_and_others_copied() -> None:
            while f"{few}-0" not in engine.faults:
                await asyncio.sleep(0.05)
            await asyncio.to_thread(produce, frail.producer(), few, 10)
            for partition in range(8):
                await asyncio.to_thread(produce, frail.producer(), others, 10, partition)
            await engine.until_copied(others, 10, partitions=8)

        await engine.copy_until(asyncio.create_task(noticed_and_others_copied()))
        assert "has 1 of 2 replicas in sync" in str(engine.faults[f"{few}-0"])
        await three_brokers.restart(2)
        await engine.copy_all()
    assert len(frail.compare(few)[0]) == 20
    frail.compare(others, 8)


async def test_a_source_partition_without_a_leader_keeps_no_other_of_its_lane_waiting(
    pair: Pair, three_brokers: Cluster
) -> None:
    frail = Pair(three_brokers, pair.grape, pair.tag)
    gone, others = f"gone-{pair.tag}", f"others-{pair.tag}"
    make_topic(three_brokers, NewTopic(gone, 1, replica_assignment=[[2]]))
    make_topic(three_brokers, NewTopic(others, 8, replica_assignment=[[0]] * 8))
    for topic, partitions in ((gone, 1), (others, 8)):
        for partition in range(partitions):
            produce(frail.producer(), topic, 10, partition)
    async with frail.engine() as engine:
        await three_brokers.kill(2)
        await engine.prepare()
        await engine.copy_until(asyncio.create_task(engine.until_copied(others, 10, partitions=8)))
        assert f"{gone}-0" in engine.faults
        assert not any(subject.startswith("lane") for subject in engine.faults)
        await three_brokers.restart(2)
        await engine.copy_all()
        assert not engine.faults
    frail.compare(gone)
    frail.compare(others, 8)
