"""Failbacks when something else goes on: other writers, logs that lost their ends or beginnings, runs that wake up."""

import asyncio
import re
import shlex
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from appliance.commands.failback import failback as module
from appliance.commands.failback.failback import _Run
from appliance.commands.failback.reverse_link import InLane, ReverseLink
from appliance.commands.removal import remove_topics
from appliance.commands.run.operation import Choice
from appliance.engine.control.assignment import Assignment
from appliance.engine.task.runner import TaskRunner
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.errors import LinkRefused
from appliance.link.client import writer
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.copy_states import CopyState
from appliance.link.model.replicas import Replica
from appliance.link.model.stops import Stop
from testbed.cluster import Cluster
from tests.support.administration import grow
from tests.support.commands import command as typed
from tests.support.commands import settings_file
from tests.support.engine import Pair, delete_topic
from tests.support.failing_back import (
    Logs,
    copied,
    delete_records,
    failed_back,
    failed_over_copy,
    write_here,
    write_there,
)
from tests.support.operating import Killed, command, everywhere, failed_over, killed, run_command
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOSS = Choice(yes=True, allow_loss=True)


async def test_case_160_a_link_that_takes_every_name_fails_back_and_again(pair: Pair) -> None:
    # The topic of the way back is named like a replicator's own, and stands where no replicator writes.
    named = Pair(pair.orange, pair.grape, pair.tag, everything=True)
    topic = named.topic("any")
    logs = Logs(named, topic)
    async with named.engine() as engine:
        for turn in range(2):
            write_here(named, topic, 5)
            await copied(engine)
            await failed_over(named)
            write_there(named, topic, 4 + turn)
            held = logs.at_copy()
            await failed_back(named)
            logs.check(held, held)


async def test_case_161_a_transaction_that_is_open_among_what_was_copied_back_is_not_passed_over(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whatever it commits afterwards lay below the position, and nobody was told.
    topic, end_transaction = f"open-{pair.tag}", writer.end_transaction
    holding = Producer({**pair.orange.client_configuration(), "transactional.id": f"holding-{pair.tag}"})
    holding.init_transactions(PATIENCE)
    begun = False

    async def and_write(coordinator: object, producer: object, timeout: float) -> None:
        nonlocal begun
        ours = "failback" in getattr(producer, "transactional_id", "")
        if ours and not begun and await asyncio.to_thread(_log_end, pair.orange, topic) == 15:
            begun = True
            await asyncio.to_thread(_begin_to_write, holding, topic)
        await end_transaction(coordinator, producer, timeout)  # type: ignore[arg-type]

    async with failed_over_copy(pair, "open"):
        monkeypatch.setattr(writer, "end_transaction", and_write)
        running = asyncio.create_task(failed_back(pair))
        async with asyncio.timeout(PATIENCE):
            while not begun:
                await asyncio.sleep(0.05)
        monkeypatch.setattr(writer, "end_transaction", end_transaction)
        done, _ = await asyncio.wait([running], timeout=2)
        assert not done, running.exception() or running.result()
        await asyncio.to_thread(holding.commit_transaction, PATIENCE)
        with pytest.raises(LinkRefused, match=f"{topic}-0 offsets 15 to 15: these records would not be copied"):
            await running
        assert await everywhere(pair, topic) == {CopyState.FAILING_BACK}


def _begin_to_write(producer: Producer, topic: str) -> None:
    producer.begin_transaction()
    produce(producer, topic, 1)


def _log_end(cluster: Cluster, topic: str) -> int:
    """The end of a topic's first partition, what is not decided yet included."""
    admin = AdminClient(cluster.client_configuration())
    key = TopicPartition(topic, 0)
    (found,) = admin.list_offsets({key: OffsetSpec.latest()}).values()
    return int(found.result(PATIENCE).offset)


async def test_case_162_what_retention_took_from_the_copy_is_named_and_left_out_if_allowed(pair: Pair) -> None:
    async with failed_over_copy(pair, "retention") as (engine, logs):
        topic = logs.topic
        delete_records(pair.grape, logs.copy, 9)
        here, there = logs.at_source(), logs.at_copy()
        gone = f"{topic}-0: offsets 6 to 8 of its copy are deleted, and can never be brought back"
        with pytest.raises(LinkRefused, match=re.escape(gone)):
            await failed_back(pair)
        assert await everywhere(pair, topic) == {CopyState.PROMOTED}
        report = await failed_back(pair, LOSS)
        assert gone in " ".join(report.lines())
        logs.check([*here, *there], there)
        write_here(pair, topic, 3)
        await copied(engine)
        logs.check(now := logs.at_source(), now[5:])


async def test_case_163_partitions_that_the_copy_got_since_go_back_too(pair: Pair) -> None:
    async with failed_over_copy(pair, "grown", there=0) as (engine, logs):
        topic, copy = logs.topic, logs.copy
        grow(pair.grape, copy, 2)
        produce(Producer(pair.grape.client_configuration()), copy, 4, 1)
        with pytest.raises(LinkRefused, match=f"{copy} has 2 partitions, and {topic} has 1: give {topic} as many"):
            await failed_back(pair)
        grow(pair.orange, topic, 2)
        report = await failed_back(pair)
        assert [each.copied_back for each in report.partitions] == [0, 4]
        produce(pair.producer(), topic, 3, 1)
        await copied(engine)
        assert [len(rows) for rows in pair.compare(topic, 2)] == [5, 7]


async def test_case_164_a_copy_that_is_smaller_by_now_is_not_said_to_be_deleted(pair: Pair) -> None:
    # The remedy of a link that copies, which would have thrown away what the copy took.
    async with failed_over_copy(pair, "small", there=0) as (_, logs):
        topic = logs.topic
        grow(pair.orange, topic, 2)
        with pytest.raises(LinkRefused) as refused:
            await failed_back(pair)
        assert f"give {pair.naming.destination(topic)} 2 partitions" in str(refused.value)
        assert "delete" not in str(refused.value)


async def test_case_166_a_failback_that_wakes_up_after_another_has_ended_copies_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its lanes, which had not started yet, took what the link had copied since for what the copy had taken.
    run, wait, is_active = TaskRunner.run, _Run._until_still, LanePartitions._is_active
    asleep, awake, refused = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def sleeping(self: TaskRunner, assignments: AsyncIterator[Assignment]) -> None:
        monkeypatch.setattr(TaskRunner, "run", run)
        await awake.wait()
        await run(self, assignments)

    async def waiting(self: _Run, *arguments: Any) -> None:
        monkeypatch.setattr(_Run, "_until_still", wait)
        asleep.set()
        await awake.wait()
        await asyncio.wait_for(refused.wait(), PATIENCE)
        await wait(self, *arguments)

    def noted(self: LanePartitions, replica: Replica) -> bool:
        active = is_active(self, replica)
        if not active and replica.source_topic == pair.copy_of(f"asleep-{pair.tag}"):
            refused.set()
        return active

    async with failed_over_copy(pair, "asleep") as (engine, logs):
        monkeypatch.setattr(TaskRunner, "run", sleeping)
        monkeypatch.setattr(_Run, "_until_still", waiting)
        first = asyncio.create_task(failed_back(pair))
        await asyncio.wait_for(asleep.wait(), PATIENCE)
        await failed_back(pair)
        write_here(pair, logs.topic, 7)
        await copied(engine)
        held = logs.at_source()
        monkeypatch.setattr(LanePartitions, "_is_active", noted)
        awake.set()
        with pytest.raises(LinkRefused, match=r"taken over|finished"):
            await first
        logs.check(held, held)


async def test_case_240_a_failback_of_the_link_that_wakes_up_after_one_of_a_topic_has_ended_copies_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It saw that the link was still its own to fail back, and began the returned topic's way back once more.
    in_lanes = ReverseLink.in_lanes
    asleep, awake = asyncio.Event(), asyncio.Event()

    async def sleeping(self: ReverseLink, replicas: Iterable[Replica], write: InLane) -> None:
        monkeypatch.setattr(ReverseLink, "in_lanes", in_lanes)
        asleep.set()
        await awake.wait()
        await in_lanes(self, replicas, write)

    async with failed_over_copy(pair, "overtaken") as (engine, logs):
        topic = logs.topic
        monkeypatch.setattr(ReverseLink, "in_lanes", sleeping)
        first = asyncio.create_task(failed_back(pair))
        await asyncio.wait_for(asleep.wait(), PATIENCE)
        await failed_back(pair, Choice(topic=re.escape(topic), yes=True))
        assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        write_here(pair, topic, 7)
        await copied(engine)
        held = logs.at_source()
        awake.set()
        with pytest.raises(LinkRefused, match="another failback of this link has taken over"):
            await first
        logs.check(held, held)
        await failed_back(pair)
        logs.check(held, held)


async def test_case_246_a_failback_whose_lanes_another_one_has_ended_does_not_wait_for_ever(pair: Pair) -> None:
    # Two with topics of their own share lanes: one took them back from the other, which had let nobody copy there.
    async with failed_over_copy(pair, "shared", there=0) as (_, logs):
        holding = Producer({**pair.grape.client_configuration(), "transactional.id": f"holding-{pair.tag}"})
        await asyncio.to_thread(holding.init_transactions, PATIENCE)
        await asyncio.to_thread(_begin_to_write, holding, logs.copy)
        running = asyncio.create_task(failed_back(pair))
        async with command(pair) as other, asyncio.timeout(PATIENCE):
            reverse = ReverseLink(other, 0)
            while not any(checkpoint.states for checkpoint in reverse.checkpoints):
                await asyncio.sleep(0.1)
                await retry_while_busy(reverse.read)
            await other.lanes.read()
            await reverse.fence(await _Run(other).replicas())
        await asyncio.to_thread(holding.commit_transaction, PATIENCE)
        with pytest.raises(LinkRefused, match="another failback of this link"):
            await running
        await failed_back(pair)
        held = logs.at_copy()
        assert len(held) == 6
        logs.check(held, held)


async def test_case_167_a_way_back_whose_positions_are_lost_is_not_begun_anew(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All that had been copied back was copied back once more, and counted as what the source had had.
    async with failed_over_copy(pair, "forgotten") as (_, logs):
        topic = logs.topic

        with monkeypatch.context() as patch:
            patch.setattr(module, "returns", killed)
            with pytest.raises(Killed):
                await failed_back(pair)
        positions = pair.naming.failback.positions_topic
        delete_topic(pair.orange, positions)
        held = logs.at_source()
        with pytest.raises(LinkRefused, match=f"{topic}-0: {positions} does not say how much was copied back"):
            await failed_back(pair)
        logs.check(held, held)


async def test_case_688_a_failback_without_its_map_and_its_producers_says_that_nobody_knows_what_it_wrote(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Records that are known to nobody are neither called its own nor a stranger's.
    async with failed_over_copy(pair, "unknown") as (engine, logs):
        topic = logs.topic
        taken = logs.at_copy()
        with monkeypatch.context() as patch:
            patch.setattr(OffsetMaps, "segments", lambda *_: ())
            patch.setattr(OffsetMaps, "producer_ids", frozenset())
            with pytest.raises(LinkRefused, match=f"{topic}-0 offsets 5 to 14, of which nobody knows who wrote them"):
                await failed_back(pair)
        assert [each.written_there for each in (await failed_back(pair)).partitions] == [None]
        logs.check(taken, taken)
        assert await engine.gaps() == []


async def test_case_243_a_topic_that_can_never_be_brought_back_is_given_up_and_the_others_return(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Neither the link nor the topic could leave its state any more, by no command.
    topic, other = pair.topic("never"), pair.topic("other")
    logs, given_up = Logs(pair, other), Choice(topic=re.escape(topic), yes=True)

    async with pair.engine() as engine:
        for each in (topic, other):
            write_here(pair, each, 5)
        await engine.copy_all()
        await failed_over(pair)
        for each in (topic, other):
            write_there(pair, each, 10)
        with monkeypatch.context() as patch:
            patch.setattr(module, "returns", killed)
            with pytest.raises(Killed):
                await failed_back(pair)
        pair.delete(topic)
        pair.topic("never")
        with pytest.raises(LinkRefused, match=f"{topic}-0: .* since it was copied back: `appliance rm-topic`"):
            await failed_back(pair)
        held, taken = logs.at_copy(), Logs(pair, topic).at_copy()
        async with command(pair, given_up) as running:
            with pytest.raises(LinkRefused, match="promoted, so what was written there may be nowhere else"):
                await run_command(running, remove_topics, delete_copies=True)
            await run_command(running, remove_topics)
        assert [each.topic for each in (await failed_back(pair)).partitions] == [other]
        assert (await everywhere(pair, other), await everywhere(pair, topic)) == (
            {CopyState.ACTIVE},
            {CopyState.REMOVED},
        )
        await copied(engine)
        logs.check(held, held)
        assert Logs(pair, topic).at_copy() == taken


async def test_case_168_of_two_links_from_one_source_each_has_a_way_back_of_its_own(pair: Pair) -> None:
    one, other = pair.naming, replace(pair.naming, target="melon")
    assert one.failback.positions_topic != other.failback.positions_topic
    assert one.failback.transactional_id(0) != other.failback.transactional_id(0)


async def test_case_169_what_a_slow_producer_writes_to_the_copy_after_a_failback_stops_the_copy_and_goes_back(
    pair: Pair, tmp_path: Path
) -> None:
    topic, live = pair.topic("slow"), pair.topic("live")
    async with pair.engine() as engine:
        for each in (topic, live):
            write_here(pair, each, 5)
        await engine.copy_all()
        await failed_over(pair)
        await failed_back(pair)
        write_there(pair, topic, 2, **{"enable.idempotence": "true"})
        engine.runners.clear()
        await engine.prepare()
        fault = str(await engine.until_stopped(topic))
        assert "holds records from offset 6 on that no position accounts for: a producer wrote there after" in fault
        write_there(pair, live, 3, **{"enable.idempotence": "true"})
        write_here(pair, live, 1)
        fault = str(await engine.until_stopped(live))
        assert "a producer wrote there after the failback" in fault
        for each in (topic, live):
            _, *both = Stop(fault, each, 0).remedies
            for words in (shlex.split(remedy.arguments) for remedy in both):
                done = await typed(words[0], settings_file(pair, tmp_path), *words[1:], "--yes")
                assert done.returncode == 0, done.stderr
        write_here(pair, topic, 4)
        await copied(engine)
        assert len(pair.compare(topic)[0]) == 11
        logs = Logs(pair, live)
        assert (len(logs.at_source()), len(logs.at_copy())) == (9, 8)  # the one of the source parted from the copy


async def test_others_that_write_to_a_copy_later_are_told(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    topic = pair.topic("told")
    async with pair.engine() as engine:
        write_here(pair, topic, 5)
        await engine.copy_all()
        write_there(pair, topic, 2)
        write_here(pair, topic, 1)
        await engine.copy_all()
    told = [record for record in caplog.records if "somebody else writes to a copy" in record.message]
    assert [vars(record)["fields"]["partition"] for record in told] == [f"{pair.naming.destination(topic)}-0"]
