"""Failbacks between two real clusters: what a promoted copy took is brought back exactly once."""

import asyncio
import json
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from appliance.commands.failback.failback import failback
from appliance.commands.run.link_lanes import LinkLanes
from appliance.commands.run.operation import Choice, operation
from appliance.engine.write import ownership
from appliance.engine.write.lane import Lane
from appliance.errors import LinkRefused, SettingsError
from appliance.kafka.client.transactions import Producer as TransactionalProducer
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import CopyState
from tests.support.administration import configure
from tests.support.engine import Pair
from tests.support.failing_back import (
    Logs,
    copied,
    failed_back,
    failed_over_copy,
    transact_there,
    write_here,
    write_there,
)
from tests.support.operating import everywhere, failed_over, run_command
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_a_promoted_copy_took_is_brought_back_once_and_the_link_goes_on(pair: Pair) -> None:
    topic = pair.topic("home", 2)
    logs = Logs(pair, topic)
    async with pair.engine() as engine:
        write_here(pair, topic, 50)
        await engine.copy_all()
        common = logs.at_source()
        write_here(pair, topic, 7)
        diverged = logs.at_source()[50:]
        await failed_over(pair)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            write_there(pair, topic, 100, **{"compression.type": codec})
        transact_there(pair, topic, 30, commit=True)
        transact_there(pair, topic, 20, commit=False)
        taken = logs.at_copy()[50:]
        assert len(taken) == 530
        plan = await failed_back(pair, Choice(dry_run=True))
        assert plan.partitions[0].diverged == (50, 57)
        assert await everywhere(pair, topic) == {CopyState.PROMOTED}
        report = await failed_back(pair)
        assert [(each.partition, each.diverged, each.copied_back) for each in report.partitions] == [
            (0, (50, 57), 530),
            (1, (0, 0), 0),
        ]
        assert f"{topic}-0: source offsets 50 to 56: they stay in {topic}" in " ".join(report.lines())
        assert json.loads(json.dumps(report.document()))["returned"] == [None]
        assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        logs.check([*common, *diverged, *taken], [*common, *taken])
        write_here(pair, topic, 11)
        new = logs.at_source()[587:]
        await copied(engine)
        logs.check([*common, *diverged, *taken, *new], [*common, *taken, *new])
        (gap,) = await engine.gaps()
        assert (gap.partition, gap.first, gap.next) == (Partition(topic, 0), 50, 57)
        again = await failed_back(pair)
        assert (again.returned, again.kept, again.partitions) == ((), {"": CopyState.ACTIVE}, ())


async def test_failing_over_and_back_again_brings_back_only_what_is_new(pair: Pair) -> None:
    topic = pair.topic("again")
    logs = Logs(pair, topic)
    async with pair.engine() as engine:
        for turn in range(3):
            write_here(pair, topic, 10 + turn)
            await copied(engine)
            await failed_over(pair)
            if turn != 1:
                write_there(pair, topic, 5 + turn)
            held = logs.at_copy()
            report = await failed_back(pair)
            assert [(each.diverged[1] - each.diverged[0], each.copied_back) for each in report.partitions] == [
                (0, 5 + turn if turn != 1 else 0)
            ]
            logs.check(held, held)
        await copied(engine)
        logs.check(held, held)


async def test_case_684_a_failback_into_a_source_that_gives_new_times_says_so_before_it_writes(pair: Pair) -> None:
    # The records came back with the time of the failback, and nobody was told.
    told = list[str]()
    async with failed_over_copy(pair, "timed", **{"message.timestamp.type": "LogAppendTime"}) as (_, logs):
        topic = logs.topic
        new_times = f"message.timestamp.type=LogAppendTime gives new times to what is copied back to {topic}"
        held = logs.at_source()
        for choice in (Choice(dry_run=True), Choice(yes=True)):
            with pytest.raises(LinkRefused, match=f"{new_times}: set CreateTime there .* or give --allow-loss"):
                await failed_back(pair, choice)
        assert logs.at_source() == held
        assert await everywhere(pair, topic) == {CopyState.PROMOTED}
        async with operation(pair.settings(), Choice(dry_run=True, allow_loss=True), told.append) as running:
            await run_command(running, failback)
        assert told == [new_times]
        report = await failed_back(pair, Choice(yes=True, allow_loss=True))
        assert [each.copied_back for each in report.partitions] == [10]
        assert [row[1:4] for row in logs.at_source()] == [row[1:4] for row in logs.at_copy()]


async def test_case_685_a_source_that_begins_to_change_times_during_a_failback_gets_no_record(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:

    async def and_change(*_: object) -> None:
        await asyncio.to_thread(configure, pair.orange, topic, **{"message.timestamp.type": "LogAppendTime"})

    async with failed_over_copy(pair, "retimed") as (_, logs):
        topic = logs.topic
        held, taken = logs.at_source(), logs.at_copy()
        with monkeypatch.context() as patch:
            patch.setattr("appliance.commands.failback.failback.require_times", and_change)
            refused = f"{topic} has message.timestamp.type=LogAppendTime, which changes the times of records"
            with pytest.raises(LinkRefused, match=f"is not copied back any further: .*{refused}"):
                await failed_back(pair)
        assert logs.at_source() == held
        configure(pair.orange, topic, **{"message.timestamp.type": "CreateTime"})
        await failed_back(pair)
        logs.check(taken, taken)


async def test_case_686_a_source_that_refuses_old_records_stops_a_failback_with_the_setting_to_change(
    pair: Pair,
) -> None:
    there, limit = Producer(pair.grape.client_configuration()), {"message.timestamp.before.max.ms": "3600000"}
    async with failed_over_copy(pair, "older", there=0, **limit) as (_, logs):
        there.produce(logs.copy, b"old", timestamp=1_000_000_000_000)
        assert there.flush(PATIENCE) == 0
        with pytest.raises(LinkRefused, match=r"INVALID_TIMESTAMP.*; raise message\.timestamp\.before\.max\.ms"):
            await failed_back(pair)
        configure(pair.orange, logs.topic, **{"message.timestamp.before.max.ms": None})
        await failed_back(pair)
        logs.check(logs.at_copy(), logs.at_copy())


async def test_case_96_of_two_failbacks_at_once_one_goes_on_and_one_says_so(pair: Pair) -> None:
    async with failed_over_copy(pair, "twice", there=3000) as (engine, logs):
        topic = logs.topic
        there = logs.at_copy()
        found = await asyncio.gather(failed_back(pair), failed_back(pair), return_exceptions=True)
        refused = [each for each in found if isinstance(each, BaseException)]
        assert all(isinstance(each, LinkRefused) for each in refused), found
        assert len(refused) <= 1, found
        assert all("another" in str(each) for each in refused)
        assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        logs.check(there, there)
        await copied(engine)
        logs.check(there, there)


async def test_case_540_a_failback_whose_lane_is_fenced_before_it_left_its_name_does_not_take_itself_for_another(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The name that the same run had left when it fenced the lane was another one: it ended with Superseded (case 96).
    monkeypatch.setattr(ownership, "_NAME_PATIENCE", 0.5)
    starts, take_id = 0, Lane.fence

    async def and_fence(self: Lane) -> TransactionalProducer:
        nonlocal starts
        producer = await take_id(self)
        starts += self.owner.worker == "failback"
        if starts == 2 and self.owner.worker == "failback":
            await take_id(self)  # as the later of two failbacks does, which leaves its name some moments later
        return producer

    async with failed_over_copy(pair, "fenced") as (_, logs):
        there = logs.at_copy()
        monkeypatch.setattr(Lane, "fence", and_fence)
        report = await failed_back(pair)
        assert [each.copied_back for each in report.partitions] == [10]
        assert starts > 2
        logs.check(there, there)


async def test_case_97_a_record_that_the_copy_takes_at_the_last_moment_is_brought_back_too(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    move, late = LinkLanes.move, [6, 4]
    async with failed_over_copy(pair, "late") as (engine, logs):
        topic = logs.topic

        async def and_write(self: LinkLanes, index: int, moves: Callable[..., object]) -> None:
            await move(self, index, moves)  # type: ignore[arg-type]
            if late:
                write_there(pair, topic, late.pop())

        monkeypatch.setattr(LinkLanes, "move", and_write)
        report = await failed_back(pair)
        assert [each.copied_back for each in report.partitions] == [20]
        there = logs.at_copy()
        assert len(there) == 25
        write_here(pair, topic, 3)
        await copied(engine)
        logs.check(here := logs.at_source(), here)


async def test_case_98_what_is_written_to_the_source_among_what_is_copied_back_is_refused(pair: Pair) -> None:
    async with failed_over_copy(pair, "between") as (engine, logs):
        topic = logs.topic
        holding = Producer({**pair.grape.client_configuration(), "transactional.id": f"holding-{pair.tag}"})
        holding.init_transactions(PATIENCE)
        holding.begin_transaction()
        produce(holding, logs.copy, 1)
        running = asyncio.create_task(failed_back(pair))
        async with asyncio.timeout(PATIENCE):
            while await asyncio.to_thread(end, pair.orange, topic, 0) < 16:
                await asyncio.sleep(0.05)
        write_here(pair, topic, 2)
        holding.commit_transaction(PATIENCE)
        with pytest.raises(LinkRefused, match=f"{topic}-0 offsets 16 to 17: these records would not be copied"):
            await running
        assert await everywhere(pair, topic) == {CopyState.FAILING_BACK}
        report = await failed_back(pair, Choice(yes=True, allow_loss=True))
        assert [each.written_there for each in report.partitions] == [(16, 18)]
        write_here(pair, topic, 3)
        await copied(engine)
        here = logs.at_source()
        assert len(here) == 21
        logs.check(here, [*here[:15], *here[17:]])
        assert {(gap.first, gap.next) for gap in await engine.gaps()} == {(16, 18)}


async def test_what_is_written_to_the_source_after_that_is_copied(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    move = LinkLanes.move
    async with failed_over_copy(pair, "after") as (engine, logs):
        topic = logs.topic

        async def and_write(self: LinkLanes, index: int, moves: Callable[..., object]) -> None:
            write_here(pair, topic, 6)
            await move(self, index, moves)  # type: ignore[arg-type]

        monkeypatch.setattr(LinkLanes, "move", and_write)
        await failed_back(pair)
        await copied(engine)
        here = logs.at_source()
        assert len(here) == 21
        logs.check(here, here)


async def test_case_99_a_source_that_was_made_anew_is_refused_by_name_and_nothing_changes(pair: Pair) -> None:
    topic = pair.topic("anew")
    async with pair.engine() as engine:
        write_here(pair, topic, 5)
        await engine.copy_all()
    await failed_over(pair)
    pair.delete(topic)
    with pytest.raises(LinkRefused, match=f"{topic} is not at the source any more"):
        await failed_back(pair)
    pair.topic("anew")
    with pytest.raises(LinkRefused, match=f"{topic}-0: topic {topic} was deleted and made anew"):
        await failed_back(pair)
    with pytest.raises(SettingsError, match="no topic of this link is called so"):
        await failed_back(pair, Choice(topic="nothing", yes=True))
    assert await everywhere(pair, topic) == {CopyState.PROMOTED}


async def test_without_a_terminal_no_failback_begins_unasked(pair: Pair) -> None:
    topic = pair.topic("asked")
    async with pair.engine() as engine:
        await engine.copy_all()
    await failed_over(pair)
    with pytest.raises(SettingsError, match="give --yes"):
        await failed_back(pair, Choice())
    assert await everywhere(pair, topic) == {CopyState.PROMOTED}
