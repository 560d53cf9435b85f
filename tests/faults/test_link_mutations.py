"""The checker can fail at what keeps a link whole beside its transactions, too (invariants H to K).

The right engine stands what happens; of one made wrong in one way the checker finds what it has done.
Without Spark and the tunnel: two clusters, and the engine in this process.
"""

import asyncio
import contextlib
import itertools
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from confluent_kafka.admin import NewTopic

from appliance.commands.positions_adoption import adopt_positions
from appliance.commands.resumption import Choice, resume
from appliance.errors import LinkRefused
from appliance.settings.values import SecurityProtocol
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node
from tests.faults.both_sides import compared
from tests.faults.checker import Kind
from tests.faults.injection.mutations import mutated
from tests.faults.loss import MAY_LOSE
from tests.support.administration import grow, make_topic, wait_for_leader
from tests.support.engine import LANES, Engine, OtherLink, Pair
from tests.support.records import produce
from tests.support.rows import end

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]
# tests/simulation catches the same mutations for each submission, and holds invariants H to K against the right engine.

_PARTITIONS = 8
_LEADER, _FOLLOWER = 1, 2
_numbers = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clusters(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Cluster, Cluster]]:
    """One broker each: what is done to a topic is known wherever one looks."""
    directory: Path = tmp_path_factory.mktemp("clusters")
    orange = Cluster(ClusterPlan.plain("plain-orange", address="127.0.34.1", heap_megabytes=384), directory)
    grape = Cluster(ClusterPlan.plain("plain-grape", address="127.0.34.2", heap_megabytes=384), directory)
    async with orange, grape:
        yield orange, grape


@pytest.fixture
def pair(clusters: tuple[Cluster, Cluster]) -> Pair:
    return Pair(*clusters, tag=f"{os.getpid()}-link{next(_numbers)}")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    nodes = tuple(Node(n, f"127.0.35.{n + 1}") for n in range(3))
    plan = ClusterPlan("plain-melon", nodes, SecurityProtocol.PLAINTEXT)
    async with Cluster(plan, tmp_path_factory.mktemp("three")) as cluster:
        yield cluster


@pytest.fixture
def lossy(pair: Pair, three_brokers: Cluster) -> Pair:
    """A link to a destination where a follower may come to lead."""
    return Pair(pair.orange, three_brokers, pair.tag)


async def kinds_found(pair: Pair, topic: str, partitions: int = 1) -> set[Kind]:
    """The checker's findings in a topic's copy."""
    copy = pair.naming.destination(topic)
    copies = {(topic, number): (copy, number) for number in range(partitions)}
    return {violation.kind for violation in await compared(pair.orange, pair.grape, copies)}


def write(pair: Pair, topic: str, partitions: int = 1, count: int = 10) -> None:
    """Write so many records to each partition."""
    for partition in range(partitions):
        produce(pair.producer(), topic, count, partition)


def positions_grown(pair: Pair) -> None:
    grow(pair.grape, pair.naming.positions_topic, LANES + 1)


def positions_deleted(pair: Pair) -> None:
    pair.delete_positions()


Damage = Callable[[Pair], None]
damaged = pytest.mark.parametrize("damage", [positions_grown, positions_deleted])


async def copied_and_damaged(pair: Pair, damage: Damage) -> str:
    """A topic that was copied before something happened to the positions topic."""
    topic = pair.topic("held", _PARTITIONS)
    write(pair, topic, _PARTITIONS)
    async with pair.engine() as engine:
        await engine.copy_all()
    await asyncio.to_thread(damage, pair)
    return topic


@damaged
async def test_nothing_is_doubled_after_a_positions_topic_was_changed_and_adopted(pair: Pair, damage: Damage) -> None:
    topic = await copied_and_damaged(pair, damage)  # invariant H
    async with pair.engine() as engine:
        with pytest.raises(LinkRefused, match="--adopt-positions"):
            await engine.establish()
    assert await adopt_positions(pair.settings(), lambda _: None) > 0
    async with pair.engine() as engine:
        await engine.prepare()
        if damage is positions_deleted:
            await engine.until_all_stopped(topic, _PARTITIONS)
            assert await resume(pair.settings(), Choice(topic, None, "latest"), lambda _: None) == _PARTITIONS
        write(pair, topic, _PARTITIONS)
        await engine.copy_all()
    assert await kinds_found(pair, topic, _PARTITIONS) == set()


@damaged
async def test_a_missing_position_that_is_taken_for_the_start_is_caught(pair: Pair, damage: Damage) -> None:
    topic = await copied_and_damaged(pair, damage)  # invariant H
    with mutated("a missing position taken for the start"):
        async with pair.engine() as engine:
            await engine.copy_all()
    assert await kinds_found(pair, topic, _PARTITIONS) == {Kind.DUPLICATED}


@contextlib.asynccontextmanager
async def two_links(pair: Pair) -> AsyncIterator[tuple[str, Engine, Engine]]:
    """A topic that one link copies, and the engine of a second one that would write into the same copy."""
    topic = pair.topic("shared")
    async with pair.engine() as first, OtherLink(pair.orange, pair.grape, pair.tag).engine() as second:
        await first.copy_all()
        await second.establish()
        yield topic, first, second


async def test_a_second_link_that_would_write_into_the_copies_of_the_first_doubles_nothing(pair: Pair) -> None:
    async with two_links(pair) as (topic, first, second):  # invariant I
        found = await second.discovery().search()
        assert found.replicas == ()
        assert f"belongs to link {pair.naming.replicator}" in found.unfit[topic]
        write(pair, topic)
        await first.copy_all()
    assert await kinds_found(pair, topic) == set()


async def test_a_registry_that_is_ignored_is_caught(pair: Pair) -> None:  # invariant I
    with mutated("the registry ignored"):
        async with two_links(pair) as (topic, first, second):
            await second.assign()
            await second.copy_all()
            write(pair, topic)
            await first.copy_all()
            await second.copy_all()
    assert await kinds_found(pair, topic) == {Kind.DUPLICATED}


@contextlib.asynccontextmanager
async def unclean_election(lossy: Pair) -> AsyncIterator[tuple[str, Engine, str]]:
    """A topic whose copy has lost the second half of it, with more to copy by now; and the offsets that are lost."""
    topic = lossy.topic("lossy")
    copy = lossy.naming.destination(topic)
    make_topic(lossy.grape, NewTopic(copy, 1, replica_assignment=[[_LEADER, _FOLLOWER]], config=MAY_LOSE))
    write(lossy, topic)
    async with lossy.engine() as engine:
        await engine.copy_all()
        kept = end(lossy.grape, copy, 0)
        await lossy.grape.kill(_FOLLOWER)
        write(lossy, topic)
        await engine.copy_all()
        ended = end(lossy.grape, copy, 0)
        await lossy.grape.kill(_LEADER)
        await lossy.grape.broker(_FOLLOWER).launch()
        try:
            await asyncio.to_thread(wait_for_leader, lossy.grape, copy, _FOLLOWER)
        finally:
            await lossy.grape.restart(_LEADER)
        write(lossy, topic)
        yield topic, engine, f"offsets {kept} to {ended - 1} of the copy"


async def test_a_copy_that_lost_what_it_had_acknowledged_stops_and_is_made_whole(lossy: Pair) -> None:  # invariant J
    async with unclean_election(lossy) as (topic, engine, lost):
        assert lost in str(await engine.until_stopped(topic))
        assert await resume(lossy.settings(), Choice(topic, 0, "10"), lambda _: None) == 1
        await engine.copy_all()
        assert await kinds_found(lossy, topic) == set()


async def test_a_loss_that_is_overlooked_is_caught(lossy: Pair) -> None:  # invariant J
    with mutated("a loss overlooked"):
        async with unclean_election(lossy) as (topic, engine, _):
            await engine.copy_all()
            assert await kinds_found(lossy, topic) == {Kind.LOST}


async def partitions_added_under_latest(pair: Pair) -> str:
    """A topic that was empty when its link was made, has grown, and is copied."""
    topic = pair.topic("grown")
    async with pair.engine() as engine:
        await engine.establish(REPLICA_TOPICS_START="latest")
        await engine.assign()
        write(pair, topic)
        await engine.copy_all()
        grow(pair.orange, topic, 3)
        write(pair, topic, 3)
        await engine.assign()
        await engine.copy_all()
    return topic


async def test_partitions_added_under_latest_lose_nothing(pair: Pair) -> None:  # invariant K
    assert await kinds_found(pair, await partitions_added_under_latest(pair), 3) == set()


async def test_a_new_partition_that_is_begun_at_its_end_is_caught(pair: Pair) -> None:  # invariant K
    with mutated("a new partition begun at its end"):
        topic = await partitions_added_under_latest(pair)
    assert await kinds_found(pair, topic, 3) == {Kind.LOST}
