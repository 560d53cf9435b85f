"""Promotions between two real clusters: what they lose is a number, and what was killed goes on."""

import asyncio
import functools
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from appliance.commands.pause import set_paused
from appliance.commands.promotion import failover, promote
from appliance.commands.run import last_sync
from appliance.commands.run.link_lanes import LinkLanes
from appliance.commands.run.operation import Choice
from appliance.errors import ApplianceError, BrokerBusy, BrokerRefused, LinkRefused, SettingsError
from appliance.groups import group_io, source_groups
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.groups import ListedGroups
from appliance.link.model.copy_states import CopyEvent, CopyState
from tests.support.engine import Pair, copying
from tests.support.groups import commit
from tests.support.operating import NOWHERE, YES, command, everywhere, failed_over, paused, promoted, run_command
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_failover_needs_no_source_and_calls_unknown_what_nobody_knows(pair: Pair) -> None:
    topic = pair.topic("dead", 2)
    async with pair.engine() as engine:
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
    report = await failed_over(pair, SOURCE_BROKER_SERVERS=NOWHERE)
    assert [record.state for record in report.states] == [CopyState.PROMOTED]
    assert {(loss.partition, loss.position, loss.source_end, loss.behind) for loss in report.losses} == {
        (0, 10, None, None),
        (1, 0, None, None),
    }
    assert report.document()["behind"] is None
    assert report.groups == {}
    assert "records behind in 2 partitions: unknown" in list(report.lines())
    assert await everywhere(pair, topic) == {CopyState.PROMOTED}


async def test_a_failover_says_by_number_what_the_source_had_more(pair: Pair) -> None:
    topic, other = pair.topic("lost", 2), pair.topic("kept")
    async with pair.engine() as engine:
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
        produce(pair.producer(), topic, 7, 1)
        produce(pair.producer(), other, 3)
        report = await failed_over(pair, Choice(topic=r"lost-.*", yes=True, why="the source is on fire"))
    assert {
        (f"{loss.topic}-{loss.partition}", loss.position, loss.source_end, loss.behind) for loss in report.losses
    } == {
        (f"{topic}-0", 10, 10, 0),
        (f"{topic}-1", 0, 7, 7),
    }
    assert report.document()["behind"] == 7
    assert [(record.topic, record.why) for record in report.states] == [(topic, "the source is on fire")]
    assert await everywhere(pair, other) == {CopyState.ACTIVE}
    again = await failed_over(pair, Choice(topic=r"lost-.*", yes=True))
    assert (again.states, again.kept) == ((), {topic: CopyState.PROMOTED})


async def test_a_promotion_waits_for_the_copies_and_loses_nothing(pair: Pair) -> None:
    topic = pair.topic("planned", 4)
    async with pair.engine() as engine:
        await engine.prepare()
        for partition in range(4):
            produce(pair.producer(), topic, 500, partition)
        async with copying(engine):
            report = await promoted(pair)
    assert report.document()["behind"] == 0
    assert len(report.losses) == 4
    assert await everywhere(pair, topic) == {CopyState.PROMOTED}
    assert [len(rows) for rows in await asyncio.to_thread(pair.compare, topic, 4)] == [500] * 4


async def test_a_promotion_is_refused_while_the_source_takes_writes_and_copying_goes_on(pair: Pair) -> None:
    topic = pair.topic("written", 2)
    async with pair.engine() as engine:
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
        async with copying(engine), command(pair) as running:
            change = running.lanes.change

            async def written_to_meanwhile(subjects: object, event: CopyEvent, *details: object) -> object:
                made = await change(subjects, event, *details)  # type: ignore[arg-type]
                if event is CopyEvent.FAIL_OVER:
                    produce(pair.producer(), topic, 5)
                return made

            object.__setattr__(running, "lanes", _Changed(running.lanes, written_to_meanwhile))
            with pytest.raises(LinkRefused, match=f"still takes writes.*{topic}-0: copied up to offset 10.*5 behind"):
                await run_command(running, promote)
            assert await everywhere(pair, topic) == {CopyState.ACTIVE}
            async with asyncio.timeout(PATIENCE):
                await engine.until_copied(topic, 15)
        await engine.copy_all()
    await asyncio.to_thread(pair.compare, topic, 2)


class _Changed:
    """States whose changes pass through a function of the test's."""

    def __init__(self, lanes: LinkLanes, change: object) -> None:
        self._lanes, self.change = lanes, change

    def __getattr__(self, name: str) -> object:
        return getattr(self._lanes, name)


async def test_a_promotion_names_what_it_cannot_wait_for(pair: Pair) -> None:
    topic = pair.topic("never", 1)
    pair.make_copy(topic, 1)
    produce(Producer(pair.grape.client_configuration()), pair.naming.destination(topic), 5)
    produce(pair.producer(), topic, 10)
    async with pair.engine() as engine:
        await engine.prepare()
        await engine.until_all_stopped(topic, 1)
        with pytest.raises(LinkRefused, match=f"cannot be copied to the end: {topic}-0.*no position says how far"):
            await promoted(pair)
        assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        report = await promoted(pair, Choice(yes=True, allow_loss=True))
    assert report.document()["behind"] is None
    assert await everywhere(pair, topic) == {CopyState.PROMOTED}


async def test_a_promotion_of_what_is_not_copied_in_time_is_refused(pair: Pair) -> None:
    topic = pair.topic("late")
    async with pair.engine() as engine:
        await engine.copy_all()
        produce(pair.producer(), topic, 10)
        with pytest.raises(LinkRefused, match=f"not copied within 1 s: {topic}-0: .*: 10 behind"):
            await promoted(pair, Choice(yes=True, wait=1))
    assert await everywhere(pair, topic) == {CopyState.ACTIVE}


async def test_without_a_terminal_nothing_is_changed_unasked(pair: Pair) -> None:
    topic = pair.topic("asked")
    async with pair.engine() as engine:
        await engine.copy_all()
    for work in (failover, promote, functools.partial(set_paused, event=CopyEvent.PAUSE)):
        async with command(pair, Choice()) as running:
            with pytest.raises(SettingsError, match="give --yes"):
                await run_command(running, work)
        async with command(pair, Choice(dry_run=True)) as running:
            report = await run_command(running, work)
        assert report.dry_run
        assert report.states
    assert await everywhere(pair, topic) == {CopyState.ACTIVE}
    with pytest.raises(SettingsError, match="no topic of this link is called so"):
        await failed_over(pair, Choice(topic="nothing", yes=True))


async def test_a_promotion_of_what_is_paused_is_refused(pair: Pair) -> None:
    topic = pair.topic("resting")
    async with pair.engine() as engine:
        await engine.copy_all()
    await paused(pair)
    with pytest.raises(LinkRefused, match=f"{topic}: paused"):
        await promoted(pair)
    assert [record.state for record in (await failed_over(pair)).states] == [CopyState.PROMOTED]


async def test_case_128_a_promotion_is_given_up_where_the_groups_are_not_told(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It ended well, and consumers read again what they had read since the last sync.
    async def refused(*_: object) -> None:
        raise BrokerRefused("list groups", "CLUSTER_AUTHORIZATION_FAILED")

    topic = pair.topic("groups")
    async with pair.engine() as engine:
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
        monkeypatch.setattr(source_groups, "read_groups", refused)
        with pytest.raises(LinkRefused, match="the groups' offsets are not told"):
            await promoted(pair, REPLICA_GROUPS_REGEX=".*")
        assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        report = await promoted(pair, replace(YES, allow_loss=True), REPLICA_GROUPS_REGEX=".*")
    assert report.groups is None
    assert await everywhere(pair, topic) == {CopyState.PROMOTED}


async def test_case_248_a_promotion_is_given_up_where_one_broker_does_not_tell_its_groups(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It ended well after half a minute, and named none of the groups that it had not been told.
    listed = group_io.list_groups

    async def partly(cluster: KafkaCluster) -> ListedGroups:
        found = await listed(cluster)
        return ListedGroups(found.groups, {0: BrokerBusy("a broker does not answer", "COORDINATOR_NOT_AVAILABLE")})

    topic = pair.topic("groups")
    async with pair.engine() as engine:
        produce(pair.producer(), topic, 10)
        await engine.copy_all()
        commit(pair.orange, f"g-{pair.tag}", {(topic, 0): 5})
        monkeypatch.setattr(group_io, "list_groups", partly)
        monkeypatch.setattr(last_sync, "_SECONDS", 2)
        for choice in (replace(YES, dry_run=True), YES):  # case 921: the dry run foretold a promotion
            with pytest.raises(LinkRefused, match="the groups' offsets are not told"):
                await promoted(pair, choice, REPLICA_GROUPS_REGEX=f"g-{pair.tag}")
        assert await everywhere(pair, topic) == {CopyState.ACTIVE}


async def test_a_promotion_needs_the_source(pair: Pair) -> None:
    topic = pair.topic("gone")
    async with pair.engine() as engine:
        await engine.copy_all()
    with pytest.raises(ApplianceError):
        await promoted(pair, SOURCE_BROKER_SERVERS=NOWHERE)
    assert await everywhere(pair, topic) == {CopyState.ACTIVE}


@pytest.mark.parametrize(
    ("recreated", "fault"),
    [(False, "is not there any more"), (True, "was deleted and made anew")],
    ids=["deleted", "made anew and empty"],
)
async def test_case_604_a_copy_that_is_gone_is_refused_by_a_promotion_and_named_by_a_failover(
    pair: Pair, recreated: bool, fault: str
) -> None:
    # "promoted; behind 0", with exit code 0: nobody looked at the copies.
    topic, other = pair.topic("gone"), pair.topic("whole")
    async with pair.engine() as engine:
        produce(pair.producer(), topic, 10)
        produce(pair.producer(), other, 10)
        await engine.copy_all()
    await asyncio.to_thread(pair.delete_copy, topic)
    if recreated:
        await asyncio.to_thread(pair.make_copy, topic, 1)
    what = f"destination topic {pair.naming.destination(topic)} {fault}"
    for choice in (YES, Choice(dry_run=True)):
        with pytest.raises(LinkRefused, match=f"cannot be copied to the end: {topic}-0: .*unknown behind .{what}"):
            await promoted(pair, choice)
    assert await everywhere(pair, topic) == {CopyState.ACTIVE}
    foretold = await failed_over(pair, Choice(dry_run=True))
    report = await failed_over(pair)
    dead = await failed_over(pair, SOURCE_BROKER_SERVERS=NOWHERE)
    for each in (foretold, report, dead):
        assert each.document()["behind"] is None
        (loss,) = [loss for loss in each.losses if loss.topic == topic]
        assert (loss.position, loss.behind) == (10, None)
        assert what in loss.fault
        assert str(loss) in list(each.lines())
    assert {loss.behind for loss in report.losses if loss.topic == other} == {0}
    assert await everywhere(pair, topic) == {CopyState.PROMOTED}


async def test_case_605_a_copy_that_goes_while_a_promotion_waits_gives_it_up(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = pair.topic("going")
    change = LinkLanes.change
    async with pair.engine() as engine:
        produce(pair.producer(), topic, 10)
        await engine.copy_all()

    async def and_delete(self: LinkLanes, subjects: object, event: CopyEvent, *details: object) -> object:
        made = await change(self, subjects, event, *details)  # type: ignore[arg-type]
        if event is CopyEvent.FAIL_OVER:
            await asyncio.to_thread(pair.delete_copy, topic)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(LinkLanes, "change", and_delete)
        with pytest.raises(LinkRefused, match=f"{topic}-0: .*is not there any more"):
            await promoted(pair)
    assert await everywhere(pair, topic) == {CopyState.ACTIVE}
    report = await promoted(pair, replace(YES, allow_loss=True))
    assert report.document()["behind"] is None
    assert "is not there any more" in "".join(report.lines())


async def test_a_promotion_waits_for_an_open_transaction_of_the_source(pair: Pair) -> None:
    topic = pair.topic("open")
    producer = pair.producer(**{"transactional.id": f"open-{pair.tag}"})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    produce(producer, topic, 5)
    async with pair.engine() as engine:
        await engine.prepare()
        async with copying(engine):
            with pytest.raises(LinkRefused, match=f"not copied within 1 s: {topic}-0: .*: 5 behind"):
                await promoted(pair, Choice(yes=True, wait=1))
            waiting = asyncio.create_task(promoted(pair))
            await asyncio.to_thread(producer.commit_transaction, PATIENCE)
            assert (await waiting).document()["behind"] == 0
    assert [len(rows) for rows in await asyncio.to_thread(pair.compare, topic)] == [5]
