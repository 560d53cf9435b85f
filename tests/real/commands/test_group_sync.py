"""Rounds of the groups' sync between two real clusters; the copies, and where their records are, are made up."""

import asyncio
import contextlib
import random
import re
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from confluent_kafka import Producer

from appliance.errors import ApplianceError, Unreachable
from appliance.groups.group_sync import Follows, GroupSync
from appliance.groups.model.group_plan import GroupState
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.interface import Connection
from appliance.kafka.protocol.metadata import NOWHERE, Partition
from appliance.link.model.translation import Translation, TranslationState
from appliance.settings.topics import GroupSettings
from appliance.settings.values import Side
from tests.support.engine import Pair, as_it_is, cluster_settings
from tests.support.groups import (
    CLASSIC,
    CONSUMER,
    commit,
    committed,
    consume,
    delete_group,
    member,
    produce_numbered,
)
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

SHIFT = 100


@dataclass(slots=True)
class MadeUp:
    """Copies that lie 100 offsets higher than their sources, as far as they are copied."""

    copied: dict[Partition, int] = field(default_factory=dict)
    asked: int = 0
    fails: ApplianceError | None = None
    unread: dict[str, ApplianceError] = field(default_factory=dict)
    ids: set[UUID] = field(default_factory=set)

    async def refresh(self, _: Collection[Partition] | None = None) -> Mapping[str, ApplianceError]:
        if self.fails:
            raise self.fails
        return self.unread

    def translate(self, partition: Partition, offset: int, source_id: UUID = NOWHERE, _: int = 0) -> Translation:
        self.asked += 1
        self.ids.add(source_id)
        if partition not in self.copied:
            return Translation(None, TranslationState.UNKNOWN)
        if offset > self.copied[partition]:
            return Translation(None, TranslationState.AHEAD, offset - self.copied[partition])
        return Translation(offset + SHIFT, TranslationState.EXACT)


@dataclass(slots=True)
class Site:
    """One topic with its copy, and the sync of the groups whose names end with the test's tag."""

    pair: Pair
    topic: str
    translator: MadeUp
    source: KafkaCluster
    destination: KafkaCluster
    sync: GroupSync = field(init=False)

    def __post_init__(self) -> None:
        self.sync = self.another()

    def another(self) -> GroupSync:
        """The sync of a process that has just started."""
        settings = GroupSettings(f".*{re.escape(self.pair.tag)}", "left-out-.*", 5.0)
        return GroupSync(self.source, self.destination, self.pair.naming, settings, self.translator)

    def group(self, name: str) -> str:
        return f"{name}-{self.pair.tag}"

    @property
    def copy(self) -> str:
        return self.pair.naming.destination(self.topic)

    def at_destination(self, group: str) -> Mapping[int, int]:
        """The committed offset of each partition of the copy."""
        found = committed(self.pair.grape, self.group(group))
        return {number: offset for (topic, number), (offset, _) in found.items() if topic == self.copy}

    async def states(self) -> Mapping[str, tuple[GroupState, int | None]]:
        """A round, or more while a broker has groups to load; the state and the lag of each group."""
        tag = f"-{self.pair.tag}"
        async with asyncio.timeout(PATIENCE):
            plans = await self.sync.round()
            while self.sync.failures.keys() - {"the source"}:
                await asyncio.sleep(0.1)
                plans = await self.sync.round()
        return {name.removesuffix(tag): (made.state, made.lag) for name, made in plans.items()}


@contextlib.asynccontextmanager
async def site(pair: Pair, partitions: int = 1, copied: int = 1000, filled: int = 1000 + SHIFT) -> AsyncIterator[Site]:
    topic = pair.topic("orders", partitions)
    pair.make_copy(topic, partitions)
    filling = Producer(pair.grape.client_configuration())
    for number in range(partitions):  # no offset is committed past the end of a copy
        produce_numbered(filling, pair.naming.destination(topic), filled, number)
    translator = MadeUp({Partition(topic, number): copied for number in range(partitions)})
    async with (
        KafkaCluster(cluster_settings(pair.orange, Side.SOURCE), as_it_is, pair.tag) as source,
        KafkaCluster(cluster_settings(pair.grape, Side.DESTINATION), as_it_is, pair.tag) as destination,
    ):
        yield Site(pair, topic, translator, source, destination)


async def test_what_is_committed_at_the_source_is_committed_at_the_destination_translated_with_its_metadata(
    pair: Pair,
) -> None:
    async with site(pair, 2) as at:
        for number in range(2):
            produce_numbered(pair.producer(), at.topic, 10, number)
        for protocol in (CLASSIC, CONSUMER):
            consume(pair.orange, at.group(protocol), at.topic, 20, protocol, note="noon")
        commit(pair.orange, at.group("left-out"), {(at.topic, 0): 3})
        assert await at.states() == dict.fromkeys((CLASSIC, CONSUMER), (GroupState.SYNCED, 0))
        for protocol in (CLASSIC, CONSUMER):
            found = committed(pair.grape, at.group(protocol))
            assert found == {Partition(at.copy, number): (110, "noon") for number in range(2)}
        assert not at.sync.failures
        assert at.at_destination("left-out") == {}


async def test_groups_that_consume_nothing_that_is_copied_are_no_groups_of_the_link(pair: Pair) -> None:
    async with site(pair) as at:
        commit(pair.orange, at.group("g"), {("__consumer_offsets", 0): 3})
        assert await at.states() == {}


async def test_each_later_commit_follows_and_what_is_idle_costs_no_commit(pair: Pair) -> None:
    async with site(pair) as at:
        for offset in (3, 8):
            commit(pair.orange, at.group("g"), {(at.topic, 0): offset})
            assert await at.states() == {"g": (GroupState.SYNCED, 0)}
            assert at.at_destination("g") == {0: offset + SHIFT}
        assert [made.commits for made in (await at.sync.preview()).values()] == [{}]


async def test_an_idle_group_ahead_of_the_copy_moves_on_with_the_copy(pair: Pair) -> None:
    async with site(pair, copied=40) as at:
        commit(pair.orange, at.group("g"), {(at.topic, 0): 50})
        assert await at.states() == {"g": (GroupState.BEHIND, 10)}
        assert at.at_destination("g") == {0: 140}
        at.translator.copied[at.topic, 0] = 49
        assert await at.states() == {"g": (GroupState.BEHIND, 1)}
        at.translator.copied[at.topic, 0] = 60
        assert await at.states() == {"g": (GroupState.SYNCED, 0)}
        assert at.at_destination("g") == {0: 150}


async def test_copies_come_to_where_the_groups_were_though_the_source_is_gone(pair: Pair) -> None:
    async with site(pair, copied=40) as at:
        commit(pair.orange, at.group("g"), {(at.topic, 0): 50})
        await at.states()
        await at.source.close()
        nowhere = KafkaCluster(cluster_settings(pair.orange, Side.SOURCE), unresolved, pair.tag)
        at.sync.source = at.sync.source_groups.cluster = nowhere
        at.translator.copied[at.topic, 0] = 60
        assert await at.states() == {"g": (GroupState.SYNCED, 0)}
        assert at.at_destination("g") == {0: 150}
        assert at.sync.failures.keys() == {"the source"}
        fresh = at.another()
        fresh.source = fresh.source_groups.cluster = nowhere
        with pytest.raises(Unreachable):
            await fresh.round()


async def unresolved(host: str) -> tuple[str, ...]:
    raise Unreachable(f"no address of {host}")


async def test_unknown_is_not_committed_and_is_no_lag_of_0(pair: Pair) -> None:
    async with site(pair, 2) as at:
        del at.translator.copied[at.topic, 1]
        commit(pair.orange, at.group("g"), {(at.topic, 0): 5, (at.topic, 1): 5})
        assert await at.states() == {"g": (GroupState.UNKNOWN, None)}
        assert at.at_destination("g") == {0: 105}


async def test_a_group_never_moves_backwards(pair: Pair) -> None:
    async with site(pair) as at:
        commit(pair.orange, at.group("g"), {(at.topic, 0): 50})
        await at.states()
        commit(pair.orange, at.group("g"), {(at.topic, 0): 20})
        assert await at.states() == {"g": (GroupState.FURTHER, 0)}
        assert at.at_destination("g") == {0: 150}


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
async def test_nothing_is_committed_while_the_group_has_a_member_at_the_destination(pair: Pair, protocol: str) -> None:
    async with site(pair) as at:
        commit(pair.orange, at.group("g"), {(at.topic, 0): 5})
        await at.states()
        with member(pair.grape, at.group("g"), at.copy, protocol):
            commit(pair.orange, at.group("g"), {(at.topic, 0): 7})
            assert await at.states() == {"g": (GroupState.THERE, 2)}
            with member(pair.orange, at.group("g"), at.topic, protocol):
                assert await at.states() == {"g": (GroupState.BOTH, 2)}
        assert at.at_destination("g") == {0: 105}
        assert await at.states() == {"g": (GroupState.SYNCED, 0)}


async def test_what_a_consumer_at_the_destination_committed_is_never_overwritten_though_it_has_left(pair: Pair) -> None:
    async with site(pair) as at:
        copies = pair.grape.client_configuration()
        produce_numbered(pair.producer(**copies), at.copy, 10)
        consume(pair.grape, at.group("g"), at.copy, 10)
        commit(pair.orange, at.group("g"), {(at.topic, 0): 5})
        for sync in (at.sync, at.another()):
            at.sync = sync
            assert await at.states() == {"g": (GroupState.BOTH, 95)}
        assert at.at_destination("g") == {0: 10}
        delete_group(pair.grape, at.group("g"))
        at.sync = at.another()
        assert await at.states() == {"g": (GroupState.SYNCED, 0)}


async def test_what_vanishes_at_the_source_is_left_at_the_destination(pair: Pair) -> None:
    async with site(pair) as at:
        commit(pair.orange, at.group("g"), {(at.topic, 0): 5})
        await at.states()
        delete_group(pair.orange, at.group("g"))
        assert await at.states() == {}
        assert at.at_destination("g") == {0: 105}


async def test_commits_that_expired_at_the_destination_are_made_anew(pair: Pair) -> None:
    async with site(pair) as at:
        commit(pair.orange, at.group("g"), {(at.topic, 0): 5})
        await at.states()
        delete_group(pair.grape, at.group("g"))
        for _ in range(12):
            await at.states()
        assert at.at_destination("g") == {0: 105}


async def test_a_sync_that_is_killed_at_any_await_is_finished_by_the_next_one(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.groups.group_sync._AT_ONCE", 2)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with site(pair, 3) as at:
        for offset in range(10, 60, 10):
            for number in range(5):
                commit(pair.orange, at.group(f"g{number}"), {(at.topic, n): offset + number for n in range(3)})
            for _ in range(4):
                working = asyncio.create_task(at.another().round())
                await asyncio.sleep(chance.uniform(0, 0.05))
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)
                for number in range(5):
                    found = at.at_destination(f"g{number}").values()
                    assert all(where <= offset + number + SHIFT for where in found), f"seed {seed}"
            await asyncio.gather(at.another().round(), at.another().round())
            for number in range(5):
                expected = dict.fromkeys(range(3), offset + number + SHIFT)
                assert at.at_destination(f"g{number}") == expected, f"seed {seed}"


async def test_a_process_that_stood_still_between_reading_and_committing_commits_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(pair) as at:
        commit(pair.orange, at.group("g"), {(at.topic, 0): 5})
        monkeypatch.setattr("appliance.groups.group_sync._FRESH", -1.0)
        await at.sync.round()
        assert at.at_destination("g") == {}
        monkeypatch.undo()
        assert await at.states() == {"g": (GroupState.SYNCED, 0)}


async def test_case_85_so_many_groups_follow_that_reading_all_takes_longer_than_it_is_good_for(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(pair) as at:
        for number in range(12):
            commit(pair.orange, at.group(f"g{number}"), {(at.topic, 0): 5})
        monkeypatch.setattr("appliance.groups.group_sync._AT_ONCE", 4)
        monkeypatch.setattr(
            "appliance.groups.group_sync.loop_seconds", lambda: float(at.translator.asked)
        )  # a second for each
        assert set((await at.states()).values()) == {(GroupState.SYNCED, 0)}
        assert at.at_destination("g11") == {0: 105}


async def test_case_104_a_commit_that_waited_long_for_its_connection_is_not_sent(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the group had committed at the destination meanwhile was set back.
    async with site(pair) as at:
        commit(pair.orange, at.group("g"), {(at.topic, 0): 3})
        await at.states()
        commit(pair.orange, at.group("g"), {(at.topic, 0): 5})
        now, broker, purposes = [0.0], at.destination.broker, []

        async def waited_for(node: int, purpose: str = "control") -> Connection:
            purposes.append(purpose)
            # The first reads what the group has committed, the second commits.
            if purpose != "control" and purposes.count(purpose) == 2:
                await asyncio.to_thread(commit, pair.grape, at.group("g"), {Partition(at.copy, 0): 150})
                now[0] += 6
            return await broker(node, purpose)

        monkeypatch.setattr("appliance.groups.group_sync.loop_seconds", lambda: now[0])
        monkeypatch.setattr(at.destination, "broker", waited_for)
        await at.sync.round()
        assert list(at.sync.failures) == [f"group {at.group('g')}"]
        assert at.at_destination("g") == {0: 150}
        assert await at.states() == {"g": (GroupState.FURTHER, 0)}
        assert at.at_destination("g") == {0: 150}


async def test_case_105_offsets_are_translated_as_those_of_the_topic_that_there_was_when_they_were_read(
    pair: Pair,
) -> None:
    # Offsets of a topic that was made anew under its name were translated by the map of the one before.
    async with site(pair) as at:
        former = (await at.source.metadata([at.topic])).topics[at.topic].id
        commit(pair.orange, at.group("g"), {(at.topic, 0): 5})
        await at.states()
        pair.delete(at.topic)
        pair.topic("orders")
        commit(pair.orange, at.group("g"), {(at.topic, 0): 7})
        await at.states()
        anew = (await at.source.metadata([at.topic])).topics[at.topic].id
        assert at.translator.ids == {former, anew}


async def test_case_126_a_round_that_began_before_a_promotion_commits_nothing_after_it(pair: Pair) -> None:
    async with site(pair) as at:
        commit(pair.orange, at.group("g"), {(at.topic, 0): 5})
        looks = iter([True, False])

        async def promoted_meanwhile() -> Follows:
            follows = next(looks)
            return lambda _: follows

        at.sync.follows = promoted_meanwhile
        await at.sync.round()
        assert next(looks, None) is None
        assert at.at_destination("g") == {}


async def test_case_106_maps_that_cannot_be_read_are_named_and_keep_no_group_waiting_that_needs_others(
    pair: Pair,
) -> None:
    # One lane's partition without a leader stopped the sync of all groups.
    async with site(pair, 2) as at:
        del at.translator.copied[at.topic, 1]
        at.translator.unread["lane 1 of the offset maps"] = Unreachable("not now")
        commit(pair.orange, at.group("g"), {(at.topic, 0): 5})
        commit(pair.orange, at.group("waits"), {(at.topic, 1): 5})
        plans = await at.sync.round()
        assert {name.split("-")[0]: made.lag for name, made in plans.items()} == {"g": 0, "waits": None}
        assert list(at.sync.failures) == ["lane 1 of the offset maps"]
        assert at.at_destination("g") == {0: 105}
        assert at.at_destination("waits") == {}


async def test_a_destination_that_does_not_tell_the_offsets_commits_nothing(pair: Pair) -> None:
    async with site(pair) as at:
        commit(pair.orange, at.group("g"), {(at.topic, 0): 5})
        at.translator.fails = Unreachable("not now")
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(Unreachable):
                await at.sync.round()
        assert at.at_destination("g") == {}
