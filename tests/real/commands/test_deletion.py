"""Links that are given up, between two real clusters: nothing of them stays, and none comes back by itself."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from appliance.commands import deletion
from appliance.commands.deletion import delete_link
from appliance.commands.model.removal_report import DeletionReport
from appliance.commands.positions_adoption import adopt_positions
from appliance.commands.resumption import Choice as Where
from appliance.commands.resumption import resume
from appliance.commands.run.operation import Choice, Operation
from appliance.driver.establish import OwnTopics
from appliance.errors import ApplianceError, LinkRefused, SettingsError
from appliance.groups.mirror_formats import MirrorTopics
from appliance.kafka.client.topics import create_topics
from appliance.link.client.registry import Registry
from appliance.link.model.claim_ledger import ClaimLedger
from appliance.link.model.copy_states import CopyEvent
from appliance.link.model.naming import DEAD_LETTERS, HEARTBEATS
from appliance.link.model.topic_configs import positions_topic
from tests.real.commands.test_removal import claims, meanwhile
from tests.support.administration import make_topic, topics
from tests.support.commands import command as process
from tests.support.commands import settings_file
from tests.support.engine import LANES, Engine, Pair, copying
from tests.support.operating import NOWHERE, YES, change_states, command, failed_over, run_command, unheard
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(autouse=True)
def _nobody_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of these tests have no replicator that could take a lane back."""
    monkeypatch.setattr(deletion, "TAKEN_BACK_SECONDS", 0.0)


async def deleted(pair: Pair, choice: Choice = YES, *, delete_copies: bool = False, **variables: str) -> DeletionReport:
    async with command(pair, choice, **variables) as running:
        return await run_command(running, delete_link, delete_copies=delete_copies)


def own_topics(pair: Pair) -> set[str]:
    """The topics that the link itself has, at both clusters; no copies."""
    return {name for cluster in (pair.orange, pair.grape) for name in topics(cluster) if pair.naming.replicator in name}


async def refusal(engine: Engine) -> str:
    """The error with which a replicator that starts now ends."""
    with pytest.raises(LinkRefused) as refused:
        await engine.establish()
    return str(refused.value)


async def test_nothing_stays_but_the_copies_which_another_link_may_claim(pair: Pair) -> None:
    topic = pair.topic("given-up", 4)
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic, 10, 4)
        report = await deleted(pair)
        assert list(report.lines()) == [
            f"{pair.naming.replicator}: deleted",
            f"{pair.naming.offsets_topic}: deleted",
            f"{pair.naming.positions_topic}: deleted",
            f"{copy} stays, a topic of its own with 40 copied records",
        ]
        assert own_topics(pair) == set()
        assert await claims(engine) == {pair.naming.positions_topic}
        ours = await engine.destination.metadata([copy])
        assert await Registry(engine.destination, "replicator-other").claim({copy: ours.topics[copy].id}) == {}
    assert [len(each) for each in await asyncio.to_thread(pair.rows, pair.grape, copy, 4)] == [10] * 4


async def test_a_replicator_that_starts_later_makes_nothing_and_says_who_has_deleted_the_link(pair: Pair) -> None:
    topic = pair.topic("asleep")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await deleted(pair, Choice(yes=True, why="moved"), delete_copies=True)
    async with pair.engine() as engine:
        said = await refusal(engine)
        assert f"{pair.naming.replicator} was deleted by " in said
        assert "(moved)" in said
        assert "--adopt-positions" in said
        with pytest.raises(LinkRefused, match="was deleted by"):
            await engine.discovery().search()
    assert own_topics(pair) == set()
    assert pair.naming.destination(topic) not in topics(pair.grape)


async def test_a_replicator_that_stood_still_meanwhile_writes_makes_and_claims_nothing(pair: Pair) -> None:
    topic = pair.topic("stood-still", 4)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic, 10, 4)
        discovery = engine.discovery()
        await discovery.search()
        await deleted(pair)
        pair.topic("came-later")
        produce(pair.producer(), topic, 5)
        async with copying(engine):
            with pytest.raises(LinkRefused, match="was deleted by"):
                await discovery.search()
            async with asyncio.timeout(PATIENCE):
                while not engine.faults:
                    await asyncio.sleep(0.05)
        assert await claims(engine) == {pair.naming.positions_topic}
    assert own_topics(pair) == set()
    assert not {name for name in topics(pair.grape) if name.startswith("came-later")}
    copies = await asyncio.to_thread(pair.rows, pair.grape, pair.naming.destination(topic), 4)
    assert [len(each) for each in copies] == [10] * 4


async def test_one_that_was_about_to_make_the_link_ends_as_well(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = pair.topic("halfway")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        make_positions = OwnTopics.make_positions

        async def late(self: OwnTopics) -> None:
            await deleted(pair)
            await make_positions(self)

        with monkeypatch.context() as patch:
            patch.setattr(OwnTopics, "make_positions", late)
            assert "was deleted by" in await refusal(engine)
        await deleted(pair)  # what it has made is deleted by the same command
    assert own_topics(pair) == set()


async def test_a_deletion_is_refused_while_a_replicator_runs(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = pair.topic("running", 4)
    monkeypatch.setattr(deletion, "TAKEN_BACK_SECONDS", PATIENCE)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic, 10, 4)
        async with copying(engine):
            with pytest.raises(LinkRefused, match=r"^a replicator of this link runs, on host: stop it first$"):
                await deleted(pair)
            produce(pair.producer(), topic, 5)
            async with asyncio.timeout(PATIENCE):
                await engine.until_copied(topic, 15)
        assert pair.naming.destination(topic) in await claims(engine)


async def test_copies_are_deleted_on_demand_but_for_promoted_ones(pair: Pair) -> None:
    topic, promoted = pair.topic("copy"), pair.topic("promoted")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await engine.write_and_copy(promoted)
        await failed_over(pair, Choice(topic=promoted, yes=True))
        letters = [pair.naming.destination(each) + DEAD_LETTERS for each in (topic, promoted)]
        for each in letters:
            make_topic(pair.grape, NewTopic(each, 1, 1))
        dry = await deleted(pair, Choice(dry_run=True), delete_copies=True)
        lines = "\n".join(dry.lines())
        assert all(f"; {each} stays, with records as they came" in lines for each in letters)
        assert f"{pair.naming.destination(promoted)} stays, a topic of its own with 10 copied records; " in lines
        asked = "2 topics of its own and 1 copies are deleted, 1 copies stay: there is no terminal"
        with pytest.raises(SettingsError, match=asked):
            await deleted(pair, Choice(), delete_copies=True)
        await deleted(pair, replace(YES, deletes_dead_letters=True), delete_copies=True)
    assert pair.naming.destination(topic) not in topics(pair.grape)
    assert pair.naming.destination(promoted) in topics(pair.grape)
    assert [each in topics(pair.grape) for each in letters] == [False, True]


async def test_what_is_promoted_while_the_operator_is_asked_keeps_its_copy(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = pair.topic("asked")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        async with command(pair) as running:
            consent = meanwhile(pair, topic, [CopyEvent.FAIL_OVER, CopyEvent.PROMOTED])
            monkeypatch.setattr(Operation, "consent", consent)
            (copy,) = (await run_command(running, delete_link, delete_copies=True)).copies
    assert (copy.deleted, copy.promoted) == (False, True)
    assert pair.naming.destination(topic) in topics(pair.grape)


async def test_of_two_deletions_at_once_none_leaves_anything(pair: Pair) -> None:
    topic = pair.topic("twice", LANES)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic, 5, LANES)
        ended = await asyncio.gather(deleted(pair), deleted(pair), return_exceptions=True)
        unexpected = [error for error in ended if isinstance(error, BaseException)]
        assert all(isinstance(error, ApplianceError) for error in unexpected), unexpected
        await deleted(pair)
        assert await claims(engine) == {pair.naming.positions_topic}
    assert own_topics(pair) == set()


async def test_a_deleted_link_is_made_anew_by_an_explicit_word_and_its_copies_wait(pair: Pair) -> None:
    topic = pair.topic("anew")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await deleted(pair)
    assert await adopt_positions(pair.settings(), unheard) > 0
    async with pair.engine() as engine:
        await engine.prepare()
        assert "no position says how far" in await engine.until_all_stopped(topic, 1)
        await resume(pair.settings(), Where(topic, 0, "10"), unheard)
        await engine.write_and_copy(topic, 5)
    await asyncio.to_thread(pair.compare, topic)


async def test_with_a_dead_source_a_link_is_deleted_and_what_a_failback_left_there_later(pair: Pair) -> None:
    topic = pair.topic("dead")
    left = positions_topic(pair.naming.failback, LANES, 1)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await create_topics(engine.source, [left])
        report = await deleted(pair, SOURCE_BROKER_SERVERS=NOWHERE)
        assert "the source does not answer" in list(report.lines())[-1]
        assert own_topics(pair) == {left.name}
        assert (await deleted(pair)).source_topics == (left.name,)
    assert own_topics(pair) == set()


async def test_mirror_makers_topics_of_the_link_are_deleted_and_those_of_every_link_stay(pair: Pair) -> None:
    pair = replace(pair, formats=True)
    topic, naming = pair.topic("formats"), pair.naming
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await MirrorTopics(engine.link(pair.settings()), naming.mirror_topics).append(HEARTBEATS, [])
        assert set(naming.mirror_topics) <= topics(pair.grape)
        await deleted(pair)
    assert set(naming.mirror_topics) & topics(pair.grape) == {HEARTBEATS}


async def test_what_is_on_its_way_or_was_never_made_is_refused(pair: Pair) -> None:
    topic = pair.topic("on-its-way")
    with pytest.raises(LinkRefused, match="no replicator of this link has ever run"):
        await deleted(pair)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await change_states(pair, CopyEvent.FAIL_OVER, topic=topic)
        with pytest.raises(LinkRefused, match=f"^{topic} is failing over: end that first$"):
            await deleted(pair)


async def test_the_commands_have_the_options_and_exit_codes_of_their_neighbours(pair: Pair, tmp_path: Path) -> None:
    topic, other = pair.topic("typed"), pair.topic("left")
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await engine.write_and_copy(other)
    file = settings_file(pair, tmp_path)
    dry = await process("reset", file, "--topic", topic, "--to", "4", "--dry-run", "--json")
    assert (dry.returncode, json.loads(dry.stdout)["copied_again"]) == (0, 6)
    wrong = await process("reset", file, "--topic", topic, "--to", "soon", "--yes")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("appliance reset: --to soon: expected earliest, latest, a source offset")
    asked = await process("rm-topic", file, "--topic", topic)
    assert (asked.returncode, "there is no terminal to ask at: give --yes" in asked.stderr) == (2, True)
    removed = await process("rm-topic", file, "--topic", topic, "--yes", "--json", "--why", "old")
    assert (removed.returncode, json.loads(removed.stdout)["removed"][0]["topic"]) == (0, topic)
    restored = await process("resume", file, "--removed", "--topic", topic)
    assert (restored.returncode, restored.stdout) == (0, f"{topic}: active\n")
    unnamed = await process("resume", file, "--removed")
    assert (unnamed.returncode, "--removed needs --topic" in unnamed.stderr) == (2, True)
    given_up = await process("link", file, "delete", "--yes", "--json")
    assert (given_up.returncode, [each["topic"] for each in json.loads(given_up.stdout)["copies"]]) == (0, [other])
    gone = await process("pause", file, "--yes")
    assert (gone.returncode, "no replicator of this link has ever run" in gone.stderr) == (1, True)


async def test_case_227_copies_of_a_link_that_an_older_release_has_made_anew_are_not_deleted_unasked(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The record that the link was deleted was taken for an earlier run of the command, which had asked.
    topic = pair.topic("anew")
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        await engine.write_and_copy(topic)
        await deleted(pair, delete_copies=True)
    with monkeypatch.context() as patch:
        patch.setattr(ClaimLedger, "deletion", None)
        async with pair.engine() as engine:
            await engine.copy_all()
    with pytest.raises(SettingsError, match="1 copies are deleted, 0 copies stay: there is no terminal to ask at"):
        await deleted(pair, Choice(), delete_copies=True)
    assert copy in topics(pair.grape)
    await deleted(pair, delete_copies=True)
    assert copy not in topics(pair.grape)
