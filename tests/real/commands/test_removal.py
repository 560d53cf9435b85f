"""Topics that are given up, between two real clusters: nothing starts them by surprise, and there is a way back."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from appliance.commands import deletion
from appliance.commands.deletion import delete_link
from appliance.commands.model.position_change import Place
from appliance.commands.removal import CopyDisposal, remove_topics
from appliance.commands.reset import reset
from appliance.commands.resumption import Choice as Where
from appliance.commands.resumption import resume
from appliance.commands.run.operation import Choice, Operation
from appliance.engine.model import map_growth
from appliance.errors import LinkRefused, SettingsError
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.offset_maps import OffsetMaps, segment_records
from appliance.link.client.registry import Registry
from appliance.link.handle import Link
from appliance.link.model.claims import memory_of
from appliance.link.model.copy_states import CopyEvent, CopyState
from appliance.link.model.naming import DEAD_LETTERS
from appliance.verify.verification import Verification
from tests.support.administration import make_topic, topics
from tests.support.engine import LANES, Engine, Pair, copying
from tests.support.operating import (
    Killed,
    change_states,
    command,
    everywhere,
    failed_over,
    killed,
    paused,
    removed,
    restored,
    run_command,
    unheard,
)
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.verifying import results_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def claims(engine: Engine) -> set[str]:
    """The names of the copies that the registry gives to the link."""
    registry = Registry(engine.destination, engine.pair.naming.replicator)
    await registry.refresh()
    return {
        copy[0]
        for copy, claim in registry.ledger.claims.items()
        if claim.link == registry.link and copy != memory_of(copy[0])
    }


async def remembered(engine: Engine) -> set[str]:
    """The topics of which the link has positions or maps."""
    found = {topic for topic, _ in await engine.positions_now()}
    for lane in range(LANES):
        keys = await segment_records(engine.destination, Partition(engine.pair.naming.offsets_topic, lane))
        found |= {topic for (topic, _), _ in keys}
    return found


async def test_a_removed_topic_is_never_copied_again_though_it_matches_and_its_copy_is_anyones(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_growth, "TAIL_BYTES", 0)
    topic, other = pair.topic("given-up", 4), pair.topic("kept", 4)
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        await engine.write_and_copy(other, 10, 4)
        for _ in range(3):
            await engine.write_and_copy(topic, 5, 4)
        assert topic in await remembered(engine)
        async with copying(engine):
            report = await removed(pair, "given-up-.*")
            assert list(report.lines()) == [
                f"{topic}: removed; {copy} stays, a topic of its own with 60 copied records"
            ]
            produce(pair.producer(), topic, 9)
            for partition in range(4):
                produce(pair.producer(), other, 5, partition)
            async with asyncio.timeout(PATIENCE):
                await engine.until_copied(other, 15, 4)
        assert await everywhere(pair, topic) == {CopyState.REMOVED}
        found = await engine.discovery().search()
        assert {replica.source_topic for replica in found.replicas} == {other}
        assert topic not in await remembered(engine)
        assert await claims(engine) == {pair.naming.destination(other)}
        ours = await engine.destination.metadata([copy])
        assert await Registry(engine.destination, "replicator-other").claim({copy: ours.topics[copy].id}) == {}
        await engine.assign()
        await engine.copy_all()
    assert [len(each) for each in await asyncio.to_thread(pair.rows, pair.grape, copy, 4)] == [15] * 4


async def test_what_is_resumed_as_removed_waits_for_the_operators_word_where_its_copy_holds_records(pair: Pair) -> None:
    topic = pair.topic("back")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await removed(pair, topic)
        assert not (await paused(pair, event=CopyEvent.RESUME)).states  # this brings nothing back by surprise
        with pytest.raises(LinkRefused, match=f"topic {topic} is removed: its positions are not changed by hand"):
            await resume(pair.settings(), Where(topic, 0, "latest"), unheard)
    await restored(pair, topic)
    async with pair.engine() as engine:
        await engine.prepare()
        assert "no position says how far" in await engine.until_all_stopped(topic, 1)
        await resume(pair.settings(), Where(topic, 0, "10"), unheard)
        await engine.write_and_copy(topic, 5)
    await asyncio.to_thread(pair.compare, topic)


async def test_a_copy_that_is_deleted_with_its_topic_is_made_anew_only_when_that_is_resumed(pair: Pair) -> None:
    topic = pair.topic("deleted", 2)
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic, 10, 2)
        async with copying(engine):
            assert (await removed(pair, topic, delete_copies=True)).document()["removed"] == [
                {"topic": topic, "copy": copy, "there": True, "deleted": True, "promoted": False, "copied": 20}
                | {"dead_letters": None, "dead_letters_deleted": False}
            ]
            assert copy not in topics(pair.grape)
            assert not (await engine.discovery().search()).replicas
            assert copy not in topics(pair.grape)
    await restored(pair, topic)
    async with pair.engine() as engine:
        await engine.copy_all()
    await asyncio.to_thread(pair.compare, topic, 2)


async def test_what_may_be_nowhere_else_is_not_deleted(pair: Pair) -> None:
    topic = pair.topic("promoted")
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await failed_over(pair, Choice(topic=topic, yes=True))
        with pytest.raises(LinkRefused, match=f"^{copy}: promoted, so what was written there may be nowhere else"):
            await removed(pair, topic, delete_copies=True)
        assert await everywhere(pair, topic) == {CopyState.PROMOTED}
        await removed(pair, topic)
        report = await removed(pair, topic, delete_copies=True)
        assert not any(each.deleted for each in report.removed)
        assert copy in topics(pair.grape)


async def test_case_1005_the_dead_letters_of_a_deleted_copy_are_named_and_deleted_only_on_demand(pair: Pair) -> None:
    # They stayed, with the records as they came, and nothing said so.
    kept, gone, plain = pair.topic("letters-kept"), pair.topic("letters-gone"), pair.topic("letters-plain")
    async with pair.engine() as engine:
        for topic in (kept, gone, plain):
            await engine.write_and_copy(topic)
            make_topic(pair.grape, NewTopic(pair.naming.destination(topic) + DEAD_LETTERS, 1, 1))
        letters = {topic: pair.naming.destination(topic) + DEAD_LETTERS for topic in (kept, gone, plain)}
        async with command(pair, Choice(topic=gone, dry_run=True, deletes_dead_letters=True)) as running:
            (line,) = (await run_command(running, remove_topics, delete_copies=True)).lines()
            assert line.endswith(f"; {letters[gone]} is deleted")
            (line,) = (await run_command(running, remove_topics)).lines()
            assert line.endswith(f"; {letters[gone]} stays, with records as they came")
        (line,) = (await removed(pair, kept, delete_copies=True)).lines()
        assert line.endswith(f" is deleted with 10 copied records; {letters[kept]} stays, with records as they came")
        await removed(pair, gone, delete_copies=True, letters=True)
        await removed(pair, plain, letters=True)
    assert {*letters.values()} & {*topics(pair.grape)} == {letters[kept], letters[plain]}


async def test_a_removal_is_refused_that_names_no_topic_or_one_on_its_way_and_asks_before(pair: Pair) -> None:
    topic = pair.topic("asked")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        with pytest.raises(SettingsError, match="--topic is needed"):
            await removed(pair, "")
        async with command(pair, Choice(topic=topic)) as running:
            with pytest.raises(SettingsError, match=r"stop copying 1 topic for good.*give --yes"):
                await run_command(running, remove_topics)
        async with command(pair, Choice(topic=topic, dry_run=True)) as running:
            report = await run_command(running, remove_topics, delete_copies=True)
        assert [line.split("; ")[0] for line in report.lines()] == [f"{topic}: would be removed"]
        assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        await change_states(pair, CopyEvent.FAIL_OVER, topic=topic)
        with pytest.raises(LinkRefused, match=f"^topic {topic} is failing over: end that first$"):
            await removed(pair, topic)
        assert topic in await remembered(engine)


async def test_a_look_at_topics_that_was_under_way_claims_no_removed_copy_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = pair.topic("late")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        claim = Registry.claim

        async def late(self: Registry, *arguments: object, **options: object) -> object:
            await removed(pair, topic)
            await self.refresh()
            return await claim(self, *arguments, **options)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(Registry, "claim", late)
            await engine.discovery().search()
        assert await claims(engine) == set()


async def test_a_topic_that_is_promoted_while_the_operator_is_asked_keeps_its_copy(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    for others, says in (
        ([CopyEvent.FAIL_OVER], "another command has made .* failing over meanwhile"),
        ([CopyEvent.FAIL_OVER, CopyEvent.PROMOTED], "promoted, so what was written there may be nowhere else"),
    ):
        topic = pair.topic(f"asked-{len(others)}")
        async with pair.engine() as engine:
            await engine.write_and_copy(topic)
            async with command(pair, Choice(topic=topic, yes=True)) as running:
                monkeypatch.setattr(Operation, "consent", meanwhile(pair, topic, others))
                with pytest.raises(LinkRefused, match=says):
                    await run_command(running, remove_topics, delete_copies=True)
        assert pair.naming.destination(topic) in topics(pair.grape)


def meanwhile(pair: Pair, topic: str, events: list[CopyEvent]) -> Callable[..., Awaitable[None]]:
    """A consent that takes so long that another operator changes a topic's state."""

    async def consent(*_: object) -> None:
        await change_states(pair, *events, topic=topic)

    return consent


async def test_of_a_removed_topic_nothing_is_translated_verified_reset_or_counted_as_lost(pair: Pair) -> None:
    topic, other = pair.topic("unknown"), pair.topic("known")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await engine.write_and_copy(other)
        await removed(pair, topic, delete_copies=True)
        maps = OffsetMaps(engine.destination, pair.naming)
        assert not await maps.refresh()
        assert maps.translate(Partition(topic, 0), 3).offset is None
        verification = Verification(Link(engine.source, engine.destination, pair.naming))
        assert {(each.topic, each.state.well) for each in await results_of(verification, (), 0)} == {(other, True)}
        async with command(pair) as running:
            assert [
                each.replica.source_topic
                for each in (await run_command(running, reset, Place.parse("", "0"), None)).changes
            ] == [other]
    report = await failed_over(pair)
    assert {loss.topic for loss in report.losses} == {other}
    assert report.kept == {topic: CopyState.REMOVED}


async def test_case_220_a_topic_that_somebody_else_has_filled_is_not_deleted_as_a_copy(pair: Pair) -> None:
    # A topic was called like a copy and held records of its own. The link claimed it, stopped there, and deleted it.
    other = pair.topic("copied")
    async with pair.engine() as engine:
        await engine.write_and_copy(other)
    topic = pair.topic("collides")
    copy = pair.naming.destination(topic)
    make_topic(pair.grape, NewTopic(copy, 1, 1))
    produce(Producer(pair.grape.client_configuration()), copy, 3)
    async with pair.engine() as engine:
        await engine.prepare()
        assert "no position says how far" in await engine.until_all_stopped(topic, 1)
        assert copy in await claims(engine)
    async with command(pair, Choice(dry_run=True)) as running:
        planned = {
            each.copy: each.deleted for each in (await run_command(running, delete_link, delete_copies=True)).copies
        }
    assert planned == {copy: False, pair.naming.destination(other): True}
    report = await removed(pair, f".*{pair.tag}", delete_copies=True)
    assert {each.copy: each.deleted for each in report.removed} == planned
    assert topics(pair.grape) & planned.keys() == {copy}


@pytest.mark.parametrize("give_up", [remove_topics, delete_link])
async def test_case_221_a_copy_that_another_link_takes_over_while_the_operator_is_asked_is_not_deleted(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, give_up: Callable[..., Awaitable[object]]
) -> None:
    # The claims were read before the question only: the other link lost its copy.
    monkeypatch.setattr(deletion, "TAKEN_BACK_SECONDS", 0.0)
    topic = pair.topic("taken-over")
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        ours = await engine.destination.metadata([copy])

        async def consent(*_: object) -> None:
            other = Registry(engine.destination, "replicator-other")
            await other.claim({copy: ours.topics[copy].id}, take_over=True)

        monkeypatch.setattr(Operation, "consent", consent)
        async with command(pair, Choice(topic="" if give_up is delete_link else topic, yes=True)) as running:
            await give_up(running, delete_copies=True)
        assert copy in topics(pair.grape)


async def test_case_222_a_promoted_copy_whose_removal_was_killed_is_not_deleted_with_the_link(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The state `deleted` said that the copy had been `removed`, and no more that it had been promoted before.
    topic, other = pair.topic("promoted"), pair.topic("other")
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await engine.write_and_copy(other)
        await failed_over(pair, Choice(topic=topic, yes=True))
        with monkeypatch.context() as patch:
            patch.setattr(CopyDisposal, "delete", killed)
            with pytest.raises(Killed):
                await removed(pair, topic)
        monkeypatch.setattr(deletion, "TAKEN_BACK_SECONDS", 0.0)
        async with command(pair) as running:
            await run_command(running, delete_link, delete_copies=True)
    assert copy in topics(pair.grape)
    assert pair.naming.destination(other) not in topics(pair.grape)


async def test_case_223_a_promoted_copy_that_was_removed_and_brought_back_is_not_deleted(pair: Pair) -> None:
    # `resume --removed` forgot that it had been promoted, and what was written there then was lost.
    topic = pair.topic("brought-back")
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await failed_over(pair, Choice(topic=topic, yes=True))
        produce(Producer(pair.grape.client_configuration()), copy, 3)
        await removed(pair, topic)
    await restored(pair, topic)
    async with pair.engine() as engine:
        await engine.prepare()
        await engine.until_all_stopped(topic, 1)
        await resume(pair.settings(), Where(topic, 0, "10"), unheard)
        await engine.write_and_copy(topic, 5)
        with pytest.raises(LinkRefused, match=f"^{copy}: promoted, so what was written there may be nowhere else"):
            await removed(pair, topic, delete_copies=True)
    assert copy in topics(pair.grape)
