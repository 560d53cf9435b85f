"""Copies on real brokers: whose they are, what they held when nobody remembers, and what they have lost."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochRequest

from appliance.errors import SettingsError
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.offsets import Bound
from appliance.kafka.protocol.metadata import NOWHERE, Partition
from appliance.link.client import checkpoint_log
from appliance.link.model.checkpoint import Owner
from appliance.link.model.checkpoint_records import encode_position
from appliance.link.model.replicas import lane_of
from appliance.replicator.resume import Choice, resume
from appliance.replicator.write.lane import Lane
from appliance.settings.values import OnGap, SecurityProtocol
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node
from tests.support.administration import configure, make_topic, wait_for_leader
from tests.support.engine import LANES, Engine, OtherLink, Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOOSE = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
COMPACT = {"cleanup.policy": "compact"}


async def test_case_14_a_copy_that_belongs_to_another_link_is_refused_and_the_other_named(pair: Pair) -> None:
    # Both wrote into it, each record was there twice, and nobody said a word.  Invariant I
    topic = pair.topic("owned")
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
    other = OtherLink(pair.grape, pair.grape, pair.tag)
    other.topic("owned")
    produce(Producer(pair.grape.client_configuration()), topic, 10)
    async with other.engine() as engine:
        await engine.establish()
        found = await engine.discovery().look()
        assert found.replicas == ()
        assert f"{pair.naming.destination(topic)} belongs to link {pair.naming.replicator}" in found.unfit[topic]
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
        found = await asyncio.gather(ours.discovery().look(), theirs.discovery().look())
    copied = [{replica.source_topic for replica in each.replicas} for each in found]
    assert not copied[0] & copied[1]
    assert copied[0] | copied[1] == set(topics)


async def test_a_copy_is_taken_over_by_the_operators_word_and_the_other_link_stops(pair: Pair) -> None:  # invariant I
    topic = pair.topic("taken")
    produce(pair.producer(), topic, 10)
    other = OtherLink(pair.grape, pair.grape, pair.tag)
    other.topic("taken")
    async with pair.engine() as engine, other.engine() as theirs:
        await engine.copy_all()
        await theirs.establish()
        told: list[str] = []
        assert await resume(other.settings(), Choice(topic, None, "earliest", take_over=True), told.append) == 2
        assert f"is taken over from {pair.naming.replicator}" in told[0]
        assert [replica.source_topic for replica in (await theirs.discovery().look()).replicas] == [topic]
        assert (await engine.discovery().look()).replicas == ()


@pytest.mark.parametrize(("start", "count"), [("earliest", 10), ("latest", 5), ("7", 3)])
async def test_a_copy_that_holds_records_no_position_accounts_for_waits_for_the_operator(
    pair: Pair, start: str, count: int
) -> None:  # invariant H
    # Something is there, and "begin at the start" would double it.
    topic = pair.topic("found")
    pair.make_copy(topic, 1)
    produce(Producer(pair.grape.client_configuration()), pair.naming.destination(topic), 5)
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.prepare()
        fault = await engine.until_all_stopped(topic, 1)
        assert f"{pair.naming.destination(topic)}-0 ends at offset 5, and no position says how far" in fault
        told: list[str] = []
        choice = Choice(topic, 0, start)
        assert await resume(pair.settings(), choice, told.append, only_plan=True) == 1
        assert (await engine.positions())[topic, 0].stopped
        assert await resume(pair.settings(), choice, told.append) == 1
        assert told[0] == told[1]
        assert f"{topic}-0 goes on from offset" in told[0]
        produce(pair.producer(), topic, 5 if start == "latest" else 0)
        await engine.copy_all()
    (rows,) = await asyncio.to_thread(pair.rows, pair.grape, pair.naming.destination(topic), 1)
    assert len(rows) == 5 + count


async def test_a_lane_reads_on_to_its_own_mark_whatever_end_its_leader_tells(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A leader that was deposed, and does not know it, tells an end of the past: positions after it would be missed.
    topic = pair.topic("deposed")
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
    real = checkpoint_log.list_offsets

    async def of_the_past(*arguments: Any) -> dict[Partition, int]:
        offsets = await real(*arguments)
        return offsets if arguments[3] is Bound.START else dict.fromkeys(offsets, 0)

    monkeypatch.setattr(checkpoint_log, "list_offsets", of_the_past)
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.prepare()
        await engine.copy_until(asyncio.create_task(until_copied(engine, topic, 20)))
    assert len(pair.compare(topic)[0]) == 20


async def test_ids_that_topics_get_at_an_upgrade_do_not_make_them_others(pair: Pair) -> None:  # invariant G
    topic = pair.topic("upgraded")
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
        (runner,) = engine.runners
        (replica,) = runner.replicas
        held = runner.lane.checkpoint.positions[topic, 0]
        without = held.begin_again(NOWHERE, NOWHERE, held.next_offset)
        await runner.lane.commit([], {replica: without})
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
        position = (await engine.positions())[topic, 0]
        assert (position.source_id, position.destination_id) == (replica.source_id, replica.destination_id)
    assert len(pair.compare(topic)[0]) == 20


async def test_a_refusal_heals_when_the_copy_takes_larger_batches(pair: Pair) -> None:
    topic = pair.topic("heals")
    pair.make_copy(topic, 1, **{"max.message.bytes": "20000"})
    large = pair.producer()
    large.produce(topic, bytes(range(256)) * 200)
    large.flush(PATIENCE)
    async with pair.engine() as engine:
        await engine.prepare()
        assert "MESSAGE_TOO_LARGE" in str(await engine.until_stopped(topic))
        configure(pair.grape, pair.naming.destination(topic), **{"max.message.bytes": "200000"})
        await engine.copy_all()
        assert (await engine.positions())[topic, 0].stopped == ""
    pair.compare(topic)


@pytest_asyncio.fixture(loop_scope="session")
async def three_brokers(tmp_path: Path) -> AsyncIterator[Cluster]:
    nodes = tuple(Node(n, f"127.0.3.{n + 21}") for n in range(3))
    async with Cluster(ClusterPlan("lossy", nodes, SecurityProtocol.PLAINTEXT), tmp_path) as cluster:
        yield cluster


@pytest.mark.parametrize("later", [30, 0], ids=["that is written to", "that is idle"])
async def test_case_15_a_copy_that_lost_what_it_had_acknowledged_stops(
    pair: Pair, three_brokers: Cluster, later: int
) -> None:
    # A new epoch mended the sequence numbers, and copying went on over the hole.  Invariant J
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
        await three_brokers.kill(1)
        await three_brokers.broker(2).launch()
        await asyncio.to_thread(wait_for_leader, three_brokers, copy, 2)
        produce(lossy.producer(), topic, later)
        produce(lossy.producer(), other, 30)
        fault = str(await engine.until_stopped(topic))
        assert f"{copy}-0 has lost what it had acknowledged, offsets 11 to {ended - 1} of the copy" in fault
        await three_brokers.restart(1)  # it may be the one that holds the registry, of which there is one here
        told: list[str] = []
        assert await resume(lossy.settings(), Choice(topic, 0, "10"), told.append) == 1
        await engine.copy_until(asyncio.create_task(until_copied(engine, topic, 30 + later)))
        await engine.copy_all()
    assert len(lossy.compare(other)[0]) == 30
    assert len(lossy.compare(topic)[0]) == 20 + later


async def lose_the_tail(lossy: Pair, three_brokers: Cluster, topic: str, lost: str) -> None:
    """Copy 20 records of a topic, and have ``lost``, on brokers 1 and 2, forget what came with the last 10."""
    produce(lossy.producer(), topic, 10)
    async with lossy.engine() as engine:
        await engine.copy_all()
        await three_brokers.kill(2)
        produce(lossy.producer(), topic, 10)
        await engine.copy_all()
    await three_brokers.kill(1)
    await three_brokers.broker(2).launch()
    await asyncio.to_thread(wait_for_leader, three_brokers, lost, 2)
    await three_brokers.restart(1)


async def test_case_16_a_positions_topic_that_lost_its_end_doubles_nothing(pair: Pair, three_brokers: Cluster) -> None:
    # What was written after the position that is left was copied once more.  Invariant H
    lossy = Pair(pair.orange, three_brokers, pair.tag)
    topic, positions = lossy.topic("tail"), lossy.naming.positions_topic
    make_topic(three_brokers, NewTopic(positions, LANES, replica_assignment=[[1, 2]] * LANES, config=LOOSE | COMPACT))
    make_topic(three_brokers, NewTopic(lossy.naming.destination(topic), 1, replica_assignment=[[0]]))
    await lose_the_tail(lossy, three_brokers, topic, positions)
    async with lossy.engine() as engine:
        await engine.prepare()
        fault = str(await engine.until_stopped(topic))
        assert re.search(r"holds records from offset \d+ on that no position accounts for", fault)
        with pytest.raises(SettingsError, match="--from is needed"):
            await resume(lossy.settings(), Choice(topic, 0, "retry"), lambda _: None)
        assert await resume(lossy.settings(), Choice(topic, 0, "20"), lambda _: None) == 1
        produce(lossy.producer(), topic, 5)
        await engine.copy_until(asyncio.create_task(until_copied(engine, topic, 15)))
    assert len(lossy.compare(topic)[0]) == 25


async def test_case_31_a_positions_topic_that_lost_all_but_a_copys_first_position_doubles_nothing(pair: Pair) -> None:
    # That position did not say that the copy was empty, so what was there by now was copied again.  Invariant H
    topic = pair.topic("first")
    async with pair.engine() as engine:
        await engine.prepare()
        await engine.copy_until(asyncio.create_task(until_copied(engine, topic, 0)))
        first = engine.held(topic)
        assert first is not None
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
    async with pair.engine() as engine:
        await engine.establish()
        lane = Lane(lane_of(topic, 0, LANES), engine.destination, pair.naming, Owner("r", "w", "h", 0, 1), 30.0)
        await lane.start()
        await lane.remember([encode_position((topic, 0), first, 1)])
        await engine.assign()
        fault = str(await engine.until_stopped(topic))
    assert "holds records from offset 0 on that no position accounts for" in fault
    assert len(pair.compare(topic)[0]) == 10


@pytest.mark.parametrize("is_known", [True, False], ids=["found by discovery", "found by the lane"])
async def test_case_32_a_copy_made_anew_with_records_in_it_is_not_written_behind_them(
    pair: Pair, is_known: bool
) -> None:
    # With ON_GAP=record the source was copied once more behind them; and a warm lane took them for another's, and went
    # on behind them as if the records before were there.  Invariants G and H
    topic = pair.topic("filled")
    copy = pair.naming.destination(topic)
    produce(pair.producer(), topic, 10)
    async with pair.engine(on_gap=OnGap.RECORD) as engine:
        await engine.copy_all()
        pair.delete_copy(topic)
        pair.make_copy(topic, 1)
        produce(Producer(pair.grape.client_configuration()), copy, 30)
        produce(pair.producer(), topic, 5)
        if not is_known:
            told = asyncio.create_task(until_told(engine, f"{topic}-0", f"{copy} was deleted and made anew"))
            await engine.copy_until(told)
        await engine.assign()
        fault = str(await engine.until_stopped(topic))
        assert f"destination topic {copy} was deleted and made anew since it was copied" in fault
        assert "holds records from offset 0 on that no position accounts for" in fault
        assert await engine.gaps() == []
    (rows,) = await asyncio.to_thread(pair.rows, pair.grape, copy, 1)
    assert len(rows) == 30


async def test_case_39_a_copy_in_which_a_transaction_is_open_is_not_written_to(pair: Pair) -> None:
    # It may be a late batch of an earlier epoch of this lane, in a copy made anew: the next commit made that visible.
    topic = pair.topic("late")
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.copy_all()
    other = Producer({**pair.grape.client_configuration(), "transactional.id": f"other-{topic}"})
    await asyncio.to_thread(begin_to_write, other, pair.naming.destination(topic))
    produce(pair.producer(), topic, 5)
    async with pair.engine() as engine:
        await engine.prepare()
        await engine.copy_until(asyncio.create_task(until_told(engine, f"{topic}-0", "open transaction below offset")))
        assert engine.held(topic).records == 10
        await asyncio.to_thread(other.abort_transaction, PATIENCE)
        await engine.copy_all()
        assert not engine.faults
    assert len(pair.compare(topic)[0]) == 15


@pytest.mark.parametrize("knows_epochs", [True, False], ids=["epochs known", "epochs unknown"])
async def test_a_loss_is_noticed_though_something_else_has_filled_the_hole(
    pair: Pair, three_brokers: Cluster, monkeypatch: pytest.MonkeyPatch, knows_epochs: bool
) -> None:  # invariant J
    if not knows_epochs:
        offers = BrokerConnection.offers
        lacks = OffsetForLeaderEpochRequest.__api_key__
        monkeypatch.setattr(BrokerConnection, "offers", lambda self, key, n: key != lacks and offers(self, key, n))
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
            await all_copied(engine, others, 8, 10)
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
    # A transaction that touches it could not end, not even by being aborted, and the lane would wait for it.
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
            await all_copied(engine, others, 8, 10)

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
        await engine.copy_until(asyncio.create_task(all_copied(engine, others, 8, 10)))
        assert f"{gone}-0" in engine.faults
        assert not any(subject.startswith("lane") for subject in engine.faults)
        await three_brokers.restart(2)
        await engine.copy_all()
        assert not engine.faults
    frail.compare(gone)
    frail.compare(others, 8)


async def until_copied(engine: Engine, topic: str, records: int) -> None:
    while (held := engine.held(topic)) is None or held.records < records:
        await asyncio.sleep(0.05)


async def all_copied(engine: Engine, topic: str, partitions: int, records: int) -> None:
    for partition in range(partitions):
        while (held := engine.held(topic, partition)) is None or held.records < records:
            await asyncio.sleep(0.05)
