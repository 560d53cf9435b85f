"""The groups of a real cluster, of every kind: listed, read, and committed for from outside."""

import contextlib
from collections.abc import AsyncIterator

import pytest

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.group_offsets import Commit, Commits, commit_offsets, fetch_offsets, has_members
from appliance.kafka.client.groups import Group, find_coordinators, list_groups
from appliance.kafka.client.share_offsets import alter_starts, fetch_starts
from appliance.kafka.protocol.metadata import Partition
from appliance.settings.target import Target
from appliance.settings.values import Side
from tests.support.engine import Pair, as_it_is, cluster_settings
from tests.support.groups import (
    CLASSIC,
    CONSUMER,
    commit,
    committed,
    consume,
    member,
    produce_numbered,
    share,
    wait_for_coordinator,
)
from tests.support.records import produce
from tests.support.rewriting import Seeming, seeming_broker

KAFKA_2_8 = {1: (0, 12), 2: (0, 6), 3: (0, 11), 8: (0, 8), 9: (0, 7), 10: (0, 3), 16: (0, 4)}

pytestmark = pytest.mark.asyncio(loop_scope="session")


@contextlib.asynccontextmanager
async def connected(pair: Pair, at: Target | None = None) -> AsyncIterator[KafkaCluster]:
    """Our client of the source cluster."""
    async with KafkaCluster(cluster_settings(pair.orange, Side.SOURCE, at), as_it_is, pair.tag) as kafka:
        yield kafka


async def groups_of(kafka: KafkaCluster) -> dict[str, Group]:
    listed = await list_groups(kafka)
    assert not listed.failures
    return dict(listed.groups)


async def absent(pair: Pair, kafka: KafkaCluster, name: str, kind: str = CLASSIC) -> Group:
    """A group that does not exist, with its coordinator."""
    wait_for_coordinator(pair.orange, name)
    nodes, failures = await find_coordinators(kafka, [name])
    assert not failures
    return Group(name, nodes[name], kind=kind)


async def offsets_of(kafka: KafkaCluster, group: Group) -> Commits:
    offsets, failures = await (fetch_starts if group.shares else fetch_offsets)(kafka, [group])
    assert not failures
    return offsets[group.name]


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
async def test_a_consumer_group_is_listed_with_its_kind_and_as_empty_or_not(pair: Pair, protocol: str) -> None:
    topic, name = pair.topic("listed"), f"{protocol}-{pair.tag}"
    async with connected(pair) as kafka:
        with member(pair.orange, name, topic, protocol):
            group = (await groups_of(kafka))[name]
            assert (group.kind, group.has_members, group.shares) == (protocol, True, False)
        group = (await groups_of(kafka))[name]
        assert (group.kind, group.has_members) == (protocol, False)


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
async def test_offsets_that_a_consumer_has_committed_are_read_with_metadata_and_leader_epoch(
    pair: Pair, protocol: str
) -> None:
    topic, name = pair.topic("read", 2), f"{protocol}-{pair.tag}"
    for partition in range(2):
        produce(pair.producer(), topic, 20, partition)
    consume(pair.orange, name, topic, 40, protocol, note="as of noon")
    async with connected(pair) as kafka:
        group = (await groups_of(kafka))[name]
        offsets = await offsets_of(kafka, group)
    # librdkafka also sends the zero byte of the C string.
    assert offsets == {Partition(topic, n): Commit(20, "as of noon\0", 0) for n in range(2)}


async def test_the_offsets_of_more_groups_than_fit_into_a_request_are_read_at_once(pair: Pair) -> None:
    topic = pair.topic("many")
    names = [f"group-{number}-{pair.tag}" for number in range(120)]
    for number, name in enumerate(names):
        commit(pair.orange, name, {(topic, 0): number})
    async with connected(pair) as kafka:
        known = await groups_of(kafka)
        offsets, failures = await fetch_offsets(kafka, [known[name] for name in names])
    assert not failures
    assert offsets == {name: {Partition(topic, 0): Commit(number)} for number, name in enumerate(names)}


async def test_brokers_before_3_0_are_asked_for_one_group_at_a_time(pair: Pair) -> None:
    topic, names = pair.topic("old"), [f"old-{number}-{pair.tag}" for number in range(3)]
    for number, name in enumerate(names):
        commit(pair.orange, name, {(topic, 0): number})
    seeming = Seeming(offered=KAFKA_2_8)
    async with seeming_broker(pair.orange.home_targets[0], seeming) as at, connected(pair, at) as kafka:
        known = await groups_of(kafka)
        assert {known[name].kind for name in names} == {CLASSIC}
        offsets, failures = await fetch_offsets(kafka, [known[name] for name in names])
        assert not failures
        assert not await commit_offsets(kafka, {known[name]: {Partition(topic, 0): Commit(7)} for name in names})
    assert offsets == {name: {Partition(topic, 0): Commit(number)} for number, name in enumerate(names)}
    assert {number for name in names for number, _ in committed(pair.orange, name).values()} == {7}
    assert seeming.beyond == set()


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
async def test_a_consumer_begins_where_was_committed_for_a_group_that_was_not_there(pair: Pair, protocol: str) -> None:
    topic, name = pair.topic("begun"), f"{protocol}-{pair.tag}"
    values = produce_numbered(pair.producer(), topic, 30)
    async with connected(pair) as kafka:
        group = await absent(pair, kafka, name)
        assert await offsets_of(kafka, group) == {}
        assert not await commit_offsets(kafka, {group: {Partition(topic, 0): Commit(12, "translated")}})
        assert await offsets_of(kafka, group) == {Partition(topic, 0): Commit(12, "translated")}
    assert committed(pair.orange, name) == {(topic, 0): (12, "translated")}
    assert consume(pair.orange, name, topic, 18, protocol) == values[12:]


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
async def test_nothing_is_committed_for_a_group_that_has_a_member_even_if_it_was_not_seen(
    pair: Pair, protocol: str
) -> None:
    topic, name = pair.topic("taken", 2), f"{protocol}-{pair.tag}"
    async with connected(pair) as kafka:
        group = await absent(pair, kafka, name)
        with member(pair.orange, name, topic, protocol):
            failures = await commit_offsets(
                kafka, {group: {Partition(topic, 0): Commit(12), Partition(topic, 1): Commit(3)}}
            )
        assert has_members(failures[name])
        assert await offsets_of(kafka, group) == {}


async def test_a_commit_that_a_broker_refuses_names_the_group_and_the_partition_and_hinders_no_other(
    pair: Pair,
) -> None:
    topic = pair.topic("refused")
    async with connected(pair) as kafka:
        good, bad = await absent(pair, kafka, f"good-{pair.tag}"), await absent(pair, kafka, f"bad-{pair.tag}")
        commits = {bad: {Partition(topic, 0): Commit(1, "m" * 5000)}, good: {Partition(topic, 0): Commit(1)}}
        failures = await commit_offsets(kafka, commits)
    assert failures.keys() == {bad.name}
    assert f"{topic}-0 for group {bad.name}: OFFSET_METADATA_TOO_LARGE" in str(failures[bad.name])
    assert not has_members(failures[bad.name])


async def test_a_group_with_more_partitions_than_one_batch_holds_is_committed(pair: Pair) -> None:
    topic = pair.topic("wide", 2000)
    offsets = {Partition(topic, number): Commit(number, "m" * 600) for number in range(2000)}
    async with connected(pair) as kafka:
        group = await absent(pair, kafka, f"wide-{pair.tag}")
        assert not await commit_offsets(kafka, {group: offsets})
        assert await offsets_of(kafka, group) == offsets


@pytest.mark.release  # held by tests/real/commands/test_groups_follow.py
async def test_a_share_group_starts_where_its_offsets_were_altered_to(pair: Pair) -> None:
    topic, name = pair.topic("shared"), f"share-{pair.tag}"
    values = produce_numbered(pair.producer(), topic, 30)
    async with connected(pair) as kafka:
        group = await absent(pair, kafka, name, "share")
        assert not await alter_starts(kafka, {group: {Partition(topic, 0): Commit(12)}})
        listed = (await groups_of(kafka))[name]
        assert (listed.kind, listed.shares, listed.has_members) == ("share", True, False)
        assert await offsets_of(kafka, listed) == {Partition(topic, 0): Commit(12)}
        assert sorted(share(pair.orange, name, topic, 18)) == sorted(values[12:])
        produce_numbered(pair.producer(), topic, 5)
        assert len(share(pair.orange, name, topic, 5)) == 5
        # A broker reports an acknowledgement only after the next one.
        assert (await offsets_of(kafka, listed))[topic, 0].offset >= 30


async def test_the_offsets_of_a_share_group_that_is_not_there_are_none(pair: Pair) -> None:
    async with connected(pair) as kafka:
        assert await offsets_of(kafka, await absent(pair, kafka, f"share-{pair.tag}", "share")) == {}


async def test_a_broker_without_share_groups_is_told_so(pair: Pair) -> None:
    seeming = Seeming(offered=KAFKA_2_8)
    async with seeming_broker(pair.orange.home_targets[0], seeming) as at, connected(pair, at) as kafka:
        group = await absent(pair, kafka, f"share-{pair.tag}", "share")
        _, failures = await fetch_starts(kafka, [group])
        altered = await alter_starts(kafka, {group: {Partition("orders", 0): Commit(1)}})
    assert "Kafka 4.2" in str(failures[group.name])
    assert "Kafka 4.2" in str(altered[group.name])
    assert seeming.beyond == set()
