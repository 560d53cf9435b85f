"""Commands at odds with each other, with a kill before, or with what a promotion has left behind."""

import asyncio
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from appliance.commands import promotion
from appliance.commands import resumption as partitions
from appliance.commands.model.report import Report
from appliance.commands.offsets_build import build
from appliance.commands.promotion import failover, promote
from appliance.commands.run.link_lanes import LinkLanes, Subjects
from appliance.commands.run.operation import Choice, Operation
from appliance.errors import LinkRefused
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint_records import encode_position
from appliance.link.model.copy_states import CopyEvent, CopyState
from tests.support.engine import Pair
from tests.support.operating import change_states, command, everywhere, failed_over, paused, promoted, run_command
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def begin_promotion(pair: Pair) -> None:
    """Leave a promotion as a kill leaves it once the lanes are fenced."""
    async with command(pair) as running:
        await running.lanes.read()
        await promotion._fail_over_as_planned(running, None)


@pytest.mark.parametrize("work", [failover, promote])
@pytest.mark.parametrize(
    ("others", "left"),
    [
        ([CopyEvent.GIVEN_UP], CopyState.ACTIVE),
        ([CopyEvent.GIVEN_UP, CopyEvent.FAIL_OVER], CopyState.FAILING_OVER),
    ],
)
async def test_case_120_a_promotion_that_another_command_has_undone_does_not_end_well(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, work: object, others: list[CopyEvent], left: CopyState
) -> None:
    topic = pair.topic("undone")

    async def meanwhile(*_: object) -> tuple[str, ...]:
        await change_states(pair, *others)
        return ()

    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        with monkeypatch.context() as patch:
            patch.setattr(promotion, "last_sync", meanwhile)
            async with command(pair) as running:
                with pytest.raises(LinkRefused, match=f"another command has made the link {left}"):
                    await run_command(running, work)  # type: ignore[arg-type]
        assert await everywhere(pair, topic) == {left}
        assert [record.state for record in (await failed_over(pair)).states] == [CopyState.PROMOTED]


async def test_case_121_a_link_that_is_paused_for_topics_to_come_stays_so_after_a_refused_promotion(pair: Pair) -> None:
    topic = pair.topic("resumed")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
    await paused(pair)
    await paused(pair, topic, CopyEvent.RESUME)
    with pytest.raises(LinkRefused, match="the link: paused"):
        await promoted(pair)
    assert await everywhere(pair, "to-come") == {CopyState.PAUSED}
    assert await everywhere(pair, topic) == {CopyState.ACTIVE}


async def test_case_122_a_promotion_that_is_finished_after_a_kill_refuses_stopped_partitions_too(pair: Pair) -> None:
    topic = pair.topic("stopped")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        for runner in engine.runners:
            held = runner.lane.checkpoint.positions
            for replica in runner.replicas:
                await runner.lane.commit([], {replica: held[replica.source].stop("its copy was shortened", 1)})
    await begin_promotion(pair)
    with pytest.raises(LinkRefused, match=f"cannot be copied to the end: {topic}-0: .*its copy was shortened"):
        await promoted(pair)
    assert await everywhere(pair, topic) == {CopyState.ACTIVE}


async def test_case_123_the_positions_of_a_promoted_topic_are_not_changed_by_hand(pair: Pair) -> None:
    topic = pair.topic("final")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await failed_over(pair, Choice(topic=topic, yes=True))
        before = await engine.positions()
        for start, take_over in (("earliest", False), ("retry", False), ("latest", True)):
            choice = partitions.Choice(topic, 0, start, take_over)
            with pytest.raises(LinkRefused, match=f"{topic} is promoted: its positions are not changed"):
                await partitions.resume(pair.settings(), choice, lambda _: None)
        assert await engine.positions() == before


async def test_case_124_the_end_of_a_promoted_copy_is_not_taken_for_the_end_of_what_was_copied(pair: Pair) -> None:
    topic, told = pair.topic("older"), list[str]()
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        (runner,) = [runner for runner in engine.runners if (topic, 0) in runner.lane.checkpoint.positions]
        older = replace(runner.lane.checkpoint.positions[topic, 0], tail=None)
        await runner.lane.remember([encode_position(Partition(topic, 0), older, 1)])
        await failed_over(pair)
        produce(Producer(pair.grape.client_configuration()), pair.naming.destination(topic), 5)
        await build(pair.settings(), lambda partition: partition[0] == topic, lambda outcome: told.append(str(outcome)))
        assert (await engine.positions())[topic, 0].tail is None
    assert [line for line in told if "its copy is promoted" in line]


async def test_case_125_a_promotion_names_a_topic_that_the_source_has_no_more_and_does_not_wait_for_it(
    pair: Pair,
) -> None:
    topic = pair.topic("deleted")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
    await asyncio.to_thread(pair.delete, topic)
    with pytest.raises(LinkRefused, match=f"cannot be copied to the end: .*the source has no topic {topic}"):
        await promoted(pair)
    assert (await failed_over(pair)).document()["behind"] is None


@pytest.mark.parametrize("chosen", ["", ".*"])
async def test_case_174_a_promotion_does_not_undo_a_failover_that_has_not_ended(pair: Pair, chosen: str) -> None:
    topic = pair.topic("begun")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
    await change_states(pair, CopyEvent.FAIL_OVER, topic=topic if chosen else "")
    produce(pair.producer(), topic, 3)
    with pytest.raises(LinkRefused, match="a failover has begun, and has not ended: run `appliance failover` again"):
        await promoted(pair, Choice(topic=chosen, yes=True))
    assert await everywhere(pair, topic) == {CopyState.FAILING_OVER}
    report = await failed_over(pair, Choice(topic=chosen, yes=True))
    assert [record.state for record in report.states] == [CopyState.PROMOTED]


async def test_case_175_a_failover_that_goes_on_with_a_promotion_is_not_undone_by_the_promotion(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = pair.topic("taken-over")

    async def killed(*_: object) -> None:
        raise asyncio.CancelledError

    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
    await begin_promotion(pair)
    with monkeypatch.context() as patch:
        patch.setattr(promotion, "last_sync", killed)
        with pytest.raises(asyncio.CancelledError):
            await failed_over(pair)
    produce(pair.producer(), topic, 3)
    with pytest.raises(LinkRefused, match="a failover has begun"):
        await promoted(pair)
    assert await everywhere(pair, topic) == {CopyState.FAILING_OVER}


async def test_case_176_a_promotion_of_some_topics_takes_those_that_come_while_it_waits(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [pair.topic("some-0")]
    ask, change = promotion.both_logs, LinkLanes.change
    async with pair.engine() as engine:
        await engine.write_and_copy(topics[0])

        async def and_make(*clusters: object) -> object:
            logs = await ask(*clusters)  # type: ignore[arg-type]
            if len(topics) == 1:
                topics.append(await asyncio.to_thread(pair.topic, "some-1"))
            return logs

        async def and_make_another(self: LinkLanes, subjects: object, event: CopyEvent, *details: object) -> object:
            if event is CopyEvent.FAIL_OVER and len(topics) == 2:
                topics.append(await asyncio.to_thread(pair.topic, "some-2"))
            return await change(self, subjects, event, *details)  # type: ignore[arg-type]

        monkeypatch.setattr(promotion, "both_logs", and_make)
        monkeypatch.setattr(LinkLanes, "change", and_make_another)
        await promoted(pair, Choice(topic="some-.*", yes=True))
    assert len(topics) == 3
    for topic in topics:
        assert await everywhere(pair, topic) == {CopyState.PROMOTED}
    assert await everywhere(pair, "to-come") == {CopyState.ACTIVE}


async def test_case_606_a_promotion_that_gives_up_undoes_no_failover_that_has_taken_over(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It gave up what it had read itself as a promotion's, and the failover ended without having promoted anything.
    topic, taken_over, undone = pair.topic("both"), asyncio.Event(), asyncio.Event()
    failing: list[asyncio.Task[Report]] = []

    async def at_the_end(*_: object) -> tuple[str, ...] | None:
        if failing:  # this is the failover
            taken_over.set()
            await undone.wait()
            return ()
        failing.append(asyncio.create_task(failed_over(pair)))
        await taken_over.wait()
        raise LinkRefused("the promotion gives up")

    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        monkeypatch.setattr(promotion, "last_sync", at_the_end)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(LinkRefused, match="the promotion gives up"):
                await promoted(pair)
            assert await everywhere(pair, topic) == {CopyState.FAILING_OVER}
            undone.set()
            report = await failing[0]
    assert [record.state for record in report.states] == [CopyState.PROMOTED]
    assert await everywhere(pair, topic) == {CopyState.PROMOTED}


async def test_case_606_a_failover_whose_states_a_promotion_has_just_given_up_sets_them_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, take_over = pair.topic("again"), promotion._take_over

    async def after_it_was_given_up(operation: Operation, subjects: Subjects) -> None:
        monkeypatch.setattr(promotion, "_take_over", take_over)
        async with command(pair) as other:
            await other.lanes.read()
            await other.lanes.change(promotion._given_up(other), CopyEvent.GIVEN_UP)
        assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        await take_over(operation, subjects)

    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
    await begin_promotion(pair)
    monkeypatch.setattr(promotion, "_take_over", after_it_was_given_up)
    report = await failed_over(pair)
    assert [record.state for record in report.states] == [CopyState.PROMOTED]
    assert await everywhere(pair, topic) == {CopyState.PROMOTED}
