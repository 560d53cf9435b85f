"""The ACLs of copies between two real clusters with authorizers, as an independent client sees them."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from confluent_kafka.admin import AclBinding as ClientAcl
from confluent_kafka.admin import ResourcePatternType

from appliance.driver import acl_follower
from appliance.driver.discovery import TopicDiscovery
from appliance.errors import BrokerBusy
from appliance.kafka.client.acls import AclBinding, AclPermission
from appliance.link.client.registry import Registry
from appliance.link.handle import Link
from appliance.link.model.copy_states import CopyEvent
from appliance.link.model.naming import REGISTRY
from appliance.settings.secret import Secret
from testbed.cluster import Cluster
from testbed.plan import ApiKey
from tests.conftest import plain
from tests.support.acls import acl, acls_of, add_acls, remove_acls, until_acls
from tests.support.commands import command, settings_file
from tests.support.engine import Engine, Pair
from tests.support.operating import removed, restored
from tests.support.states import change_states

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOBODY = ApiKey("NOBODY", Secret("nobodys-secret"))
"""A key with which nobody logs in: with it the clusters have an authorizer. Here everybody is a super user."""

STAYS_BEHIND = "stays behind with the ALLOWs that it beats: it would bind this link too"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def authorizing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Cluster, Cluster]]:
    directory = tmp_path_factory.mktemp("acls")
    plans = (plain("orange", "127.0.3.11"), plain("grape", "127.0.3.12"))
    orange, grape = (Cluster(replace(plan, limited_keys=(NOBODY,)), directory) for plan in plans)
    async with orange, grape:
        yield orange, grape


@pytest.fixture
def secured(authorizing: tuple[Cluster, Cluster], request: pytest.FixtureRequest) -> Pair:
    """The clusters, with a name that no other test's link and topics have."""
    number = request.session.items.index(request.node)
    return Pair(*authorizing, tag=f"{os.getpid()}-{number}")


def following(engine: Engine, *, acls: bool = True) -> TopicDiscovery:
    """The looks of a replicator that has just started."""
    topics = replace(engine.discovery().topics, follows_acls=acls)
    return TopicDiscovery(Link(engine.source, engine.destination, engine.pair.naming), topics)


@contextlib.asynccontextmanager
async def linked(pair: Pair, *names: str) -> AsyncIterator[tuple[Engine, list[str], list[str]]]:
    """A link that has been made, new topics, and their copies."""
    topics = [pair.topic(name) for name in names]
    async with pair.engine() as engine:
        await engine.prepare()
        yield engine, topics, [pair.copy_of(topic) for topic in topics]


def allow(topic: str, who: str, operation: str = "READ") -> ClientAcl:
    return acl(topic, "ALLOW", f"User:{who}", operation)


def deny(topic: str, who: str, operation: str = "READ") -> ClientAcl:
    return acl(topic, "DENY", f"User:{who}", operation)


async def test_acls_that_cover_a_source_topic_come_to_its_copy_for_reading_only(secured: Pair) -> None:
    async with linked(secured, "covered", "payments") as (engine, (topic, _), (covered, payments)):
        prefix = topic[:-1]
        add_acls(
            secured.orange,
            allow(topic, "literal"),
            acl(topic, "ALLOW", "User:host", "DESCRIBE_CONFIGS", host="10.0.0.1"),
            allow(topic, "writer", "WRITE"),
            allow(topic, "admin", "ALL"),
            deny(topic, "mallory", "WRITE"),
            acl(prefix, "ALLOW", "User:prefixed", "READ", prefixed=True),
            acl(prefix, "DENY", "User:mallory", "ALL", prefixed=True),
            acl("*", "ALLOW", "User:star", "DESCRIBE"),
        )
        try:
            await following(engine).search()
            await until_acls(
                secured.grape,
                covered,
                allow(covered, "literal"),
                acl(covered, "ALLOW", "User:host", "DESCRIBE_CONFIGS", host="10.0.0.1"),
                *(acl(covered, "ALLOW", "User:admin", name) for name in ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")),
                deny(covered, "mallory", "WRITE"),
                allow(covered, "prefixed"),
                deny(covered, "mallory", "ALL"),
                allow(covered, "star", "DESCRIBE"),
            )
            await until_acls(secured.grape, payments, allow(payments, "star", "DESCRIBE"))
            others = {each.name for each in acls_of(secured.grape) if secured.tag not in each.name}
            assert "*" not in others
        finally:
            remove_acls(secured.orange, "*")


async def test_an_acl_that_vanished_at_the_source_is_removed_and_an_operators_own_stays(secured: Pair) -> None:
    async with linked(secured, "orders") as (engine, (topic,), (orders,)):
        own = [
            allow(orders, "own", "WRITE"),
            allow(orders, "both"),
            acl(orders[:-1], "ALLOW", "User:alice", "READ", prefixed=True),
        ]
        add_acls(secured.grape, *own)
        add_acls(secured.orange, *(allow(topic, name) for name in ("alice", "both", "bob")))
        await following(engine).search()
        made = [allow(orders, name) for name in ("alice", "bob")]
        await until_acls(secured.grape, orders, *own[:2], *made)
        remove_acls(secured.orange, topic)
        add_acls(secured.orange, allow(topic, "bob"))
        await following(engine).search()
        await until_acls(secured.grape, orders, *own[:2], made[1])
        assert acls_of(secured.grape, orders[:-1], ResourcePatternType.PREFIXED) == {own[2]}


async def test_acls_are_followed_in_the_fifth_look_and_with_a_new_copy_at_once(secured: Pair) -> None:
    async with linked(secured, "first") as (engine, (topic,), (first,)):
        discovery = following(engine)
        await discovery.search()
        second = topic.replace("first", "second")
        add_acls(secured.orange, allow(topic, "alice"), allow(second, "alice"))
        await discovery.search()
        assert acls_of(secured.grape, first) == set()
        secured.topic("second")
        await discovery.search()
        copy = secured.copy_of(second)
        await until_acls(secured.grape, copy, allow(copy, "alice"))
        remove_acls(secured.orange, second)
        for _ in range(5):
            await discovery.search()
        await until_acls(secured.grape, copy)


async def test_nothing_follows_unless_it_is_asked_for(secured: Pair) -> None:
    async with linked(secured, "orders") as (engine, (topic,), (orders,)):
        add_acls(secured.orange, allow(topic, "alice"))
        assert not secured.settings().topics.follows_acls
        discovery = following(engine, acls=False)
        for _ in range(6):
            await discovery.search()
        assert acls_of(secured.grape, orders) == set()


@pytest.mark.release  # held by tests/unit/commands/test_acls_command.py
async def test_the_command_shows_what_would_be_changed_and_changes_nothing(secured: Pair, tmp_path: Path) -> None:
    async with linked(secured, "orders", "gone") as (engine, (topic, former), (orders, gone)):
        kept = allow(former, "alice")
        add_acls(secured.orange, kept)
        await following(engine).search()
        held = allow(gone, "alice")
        await until_acls(secured.grape, gone, held)
        remove_acls(secured.orange, kept.name)
        add_acls(secured.orange, allow(topic, "bob"), deny(topic, "*", "WRITE"))
        env_file = settings_file(secured, tmp_path, SOURCE_CLUSTER_ID=secured.naming.source)
        told = await command("acls", env_file)
        assert told.stdout.splitlines() == [
            "ACLS_SYNC=no: none of this is changed",
            f"{orders}: make ALLOW User:bob from * READ",
            f"{gone}: remove ALLOW User:alice from * READ",
            f"DENY User:* from * WRITE on {topic} {STAYS_BEHIND}",
        ], told.stderr
        assert told.returncode == 0
        assert (acls_of(secured.grape, orders), acls_of(secured.grape, gone)) == (set(), {held})
        chosen = await command("acls", env_file, "--topic", former, "--json")
        assert '"make": {}' in chosen.stdout
        refused = await command("acls", env_file, "--topic", "(")
        assert (refused.returncode, "--topic (: no regular expression" in refused.stderr) == (2, True)


class Killed(BaseException):
    """The end of a process."""


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int, *, done: bool) -> None:
    """Let the follower be killed at its step'th change of a cluster, before it or when it is done."""
    steps = 0

    def killing(change: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def changed(*arguments: Any) -> Any:
            nonlocal steps
            if not any(arguments[1:]):
                return await change(*arguments)
            steps += 1
            if steps == step and not done:
                raise Killed
            answer = await change(*arguments)
            if steps == step:
                raise Killed
            return answer

        return changed

    for name in ("create_acls", "delete_acls"):
        monkeypatch.setattr(acl_follower, name, killing(getattr(acl_follower, name)))
    monkeypatch.setattr(Registry, "note_acls", killing(Registry.note_acls))


CHANGES = 6
"""What a look with everything to do changes: the intent, both kinds of ACL made and removed, and what is done."""


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(1, CHANGES + 1))
async def test_case_150_killed_at_any_change_the_next_look_ends_the_same(
    secured: Pair, monkeypatch: pytest.MonkeyPatch, step: int, done: bool
) -> None:
    # An ACL does not say who made it: a kill left some that nothing removed.
    async with linked(secured, "orders") as (engine, (topic,), (orders,)):
        add_acls(secured.orange, allow(topic, "old"), deny(topic, "old", "WRITE"))
        own = allow(orders, "own")
        add_acls(secured.grape, own)
        await following(engine).search()
        remove_acls(secured.orange, topic)
        add_acls(secured.orange, allow(topic, "new"), deny(topic, "new", "WRITE"))
        with monkeypatch.context() as patched:
            kill_at(patched, step, done=done)
            with pytest.raises(Killed):
                await following(engine).search()
        # What the next look wants may be less: what was made, or was about to be, must not be left behind.
        remove_acls(secured.orange, topic)
        add_acls(secured.orange, allow(topic, "new"))
        await following(engine).search()
        await until_acls(secured.grape, orders, own, allow(orders, "new"))
        assert (await remembered(engine))[orders] == {"User:new"}


async def test_two_replicators_at_once_end_as_one(secured: Pair) -> None:
    async with linked(secured, "orders", "other") as (engine, topics, copies), secured.engine() as second:
        for who in ("alice", "bob"):
            for topic in topics:
                remove_acls(secured.orange, topic)
                add_acls(secured.orange, allow(topic, who))
            await asyncio.gather(following(engine).search(), following(second).search())
            for copy in copies:
                await until_acls(secured.grape, copy, allow(copy, who))
        held = await remembered(engine)
        assert [held[copy] for copy in copies] == [{"User:bob"}] * 2


async def test_a_copy_that_was_made_anew_is_followed_with_what_its_predecessor_got(secured: Pair) -> None:
    async with linked(secured, "orders") as (engine, (topic,), (orders,)):
        add_acls(secured.orange, allow(topic, "alice"))
        await following(engine).search()
        await until_acls(secured.grape, orders, allow(orders, "alice"))
        secured.delete_copy(topic)
        remove_acls(secured.orange, topic)
        await following(engine).search()
        await until_acls(secured.grape, orders)


async def test_a_promoted_copy_keeps_its_acls_even_from_a_replicator_that_was_about_to_change_them(
    secured: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with linked(secured, "orders") as (engine, (topic,), (orders,)):
        add_acls(secured.orange, allow(topic, "alice"))
        await following(engine).search()
        held = allow(orders, "alice")
        await until_acls(secured.grape, orders, held)
        remove_acls(secured.orange, topic)
        add_acls(secured.orange, allow(topic, "late"))
        note = Registry.note_acls

        async def promoted_meanwhile(registry: Registry, *arguments: Any) -> None:
            await note(registry, *arguments)
            for event in (CopyEvent.FAIL_OVER, CopyEvent.PROMOTED):
                await change_states(engine, event, [topic])

        with monkeypatch.context() as patched:
            patched.setattr(Registry, "note_acls", promoted_meanwhile)
            await following(engine).search()
        await following(engine).search()
        assert acls_of(secured.grape, orders) == {held}


async def test_a_denial_that_would_bind_the_link_is_named_once_and_copying_goes_on(
    secured: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    async with linked(secured, "orders") as (engine, (topic,), (orders,)):
        add_acls(secured.orange, allow(topic, "alice"), allow(topic, "alice", "DESCRIBE_CONFIGS"), deny(topic, "*"))
        discovery = following(engine)
        for _ in range(11):
            assert (await discovery.search()).replicas
        await until_acls(secured.grape, orders, allow(orders, "alice", "DESCRIBE_CONFIGS"))
    assert said(caplog) == [f"DENY User:* from * READ on {topic} {STAYS_BEHIND}"]


async def test_an_acl_that_the_destination_refuses_keeps_no_other_from_following(
    secured: Pair, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with linked(secured, "orders") as (engine, (topic,), (orders,)):
        add_acls(secured.orange, allow(topic, "alice"))
        copied = acl_follower.copied_acls

        def with_an_odd_one(*arguments: Any) -> Any:
            """A principal without a type, which no authorizer of ours has."""
            found = copied(*arguments)
            odd = {topic: {replace(entry, principal="odd") for entry in each.entries} for topic, each in found.items()}
            return {topic: replace(each, entries=each.entries | odd[topic]) for topic, each in found.items()}

        monkeypatch.setattr(acl_follower, "copied_acls", with_an_odd_one)
        discovery = following(engine)
        for _ in range(11):
            await discovery.search()
        await until_acls(secured.grape, orders, allow(orders, "alice"))
        assert (await remembered(engine))[orders] == {"User:alice"}
    (line,) = said(caplog)
    assert "ALLOW odd from * READ" in line


async def test_clusters_without_an_authorizer_are_told_of_once_and_copied_all_the_same(
    pair: Pair, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async with linked(pair, "orders") as (engine, *_):
        discovery = following(engine)
        for _ in range(11):
            assert (await discovery.search()).replicas
    assert said(caplog) == ["describe ACLs: the source cluster has no authorizer, so no ACLs"]
    env_file = settings_file(pair, tmp_path)
    told = await command("acls", env_file)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == "appliance acls: describe ACLs: the source cluster has no authorizer, so no ACLs\n"


async def remembered(engine: Engine) -> dict[str, set[str]]:
    """The principals of the ACLs that the link remembers, by copy."""
    registry = Registry(engine.destination, engine.pair.naming.replicator)
    await registry.refresh()
    assert registry.ledger.claims, REGISTRY
    return {copy: {entry.principal for entry in entries} for copy, entries in registry.ledger.acls.items()}


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record for record in caplog.records if vars(record).get("fields", {}).get("about") == "ACLs"]
    assert all(line.levelno == logging.WARNING for line in lines)
    return [record.getMessage() for record in lines]


@pytest.mark.parametrize("refused", ["create_acls", "delete_acls"])
async def test_case_224_nobody_gains_while_a_right_cannot_be_taken(
    secured: Pair, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    # A controller that moved refused the DENYs, or the removal of ALLOWs: the ALLOWs were made, and DENYs removed.
    async with linked(secured, "orders", "other") as (engine, (topic, another), (orders, other)):
        before = [allow(topic, "old"), deny(topic, "old")]
        after = [allow(topic, "new"), deny(topic, "new")]
        add_acls(secured.orange, *before)
        await following(engine).search()
        remove_acls(secured.orange, topic)
        add_acls(secured.orange, *after, allow(another, "new"))
        change = getattr(acl_follower, refused)
        first = AclPermission.DENY if refused == "create_acls" else AclPermission.ALLOW

        async def refuse(cluster: Any, bindings: Sequence[AclBinding]) -> Any:
            held = [each for each in bindings if each.entry.permission is first]
            moved = BrokerBusy("the controller has moved", "NOT_CONTROLLER")
            return dict.fromkeys(held, moved) | await change(cluster, [each for each in bindings if each not in held])

        with monkeypatch.context() as patched:
            patched.setattr(acl_follower, refused, refuse)
            await following(engine).search()
        await until_acls(secured.grape, other, allow(other, "new"))
        rights = {(each.principal, each.permission_type.name) for each in acls_of(secured.grape, orders)}
        for who in ("User:old", "User:new"):
            assert (who, "ALLOW") not in rights or (who, "DENY") in rights
        await following(engine).search()
        await until_acls(secured.grape, orders, allow(orders, "new"), deny(orders, "new"))


@pytest.mark.parametrize("delete", [False, True], ids=["kept", "deleted"])
async def test_case_226_who_lost_a_right_while_a_topic_was_removed_does_not_have_it_on_the_copy_that_comes_back(
    secured: Pair, delete: bool
) -> None:
    # With the claim the link forgot which ACLs it had made. They stayed on the copy's name, for the next copy as well.
    async with linked(secured, "orders") as (engine, (topic,), (orders,)):
        add_acls(secured.orange, allow(topic, "alice"))
        await engine.assign()
        await engine.copy_all()
        await following(engine).search()
        await until_acls(secured.grape, orders, allow(orders, "alice"))
        for _ in range(2):
            await removed(secured, topic, delete_copies=delete)
        await until_acls(secured.grape, orders, allow(orders, "alice"))
        remove_acls(secured.orange, topic)
        await restored(secured, topic)
        await following(engine).search()
        await until_acls(secured.grape, orders)
        assert not (await remembered(engine))[orders]
