"""Programs written for MirrorMaker 2 at a destination of ours: its own Java client is asked, a new and an old one."""

import asyncio
import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.driver.background import Background
from appliance.engine.problem_log import ProblemLog
from appliance.groups.group_service import GroupService
from appliance.groups.mirror_formats import Heartbeats, MirrorCheckpoints
from appliance.groups.model.group_plan import GroupState
from appliance.groups.model.newest_groups import NewestGroups
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.mirror_records import MirrorCheckpoint
from appliance.settings.values import TopicNaming
from testbed.jars import JarSet, classpath, java
from tests.support.engine import Engine, Pair
from tests.support.groups import commit
from tests.support.java_programs import compiled
from tests.support.patience import PATIENCE
from tests.support.rows import contents

pytestmark = pytest.mark.asyncio(loop_scope="session")

NEWEST, OLD = "4.3.1", "2.8.2"
GROUP = "billing"
PARTITIONS = 2

Said = Mapping[str, list[str]]
"""The parts of each answer, by the call."""


@cache
def client(version: str) -> str:
    """The class path of MirrorMaker 2's client, of a version."""
    return classpath(JarSet((("org.apache.kafka", "connect-mirror-client", version),), version))


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "programs" / "MirrorCalls.java"
    return compiled(source, client(OLD), tmp_path_factory.mktemp("program"))


async def asked(program: Path, version: str, pair: Pair, *further: str, group: str = GROUP) -> Said:
    """The answers of this version's client about the destination."""
    jars = os.pathsep.join([client(version), str(program)])
    arguments = [pair.grape.home_bootstrap, ".", pair.tag, group, *further]
    command = [java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", jars, "MirrorCalls", *arguments]
    run = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    lines = [line.split("\t") for line in run.stdout.splitlines()]
    return {name: parts for name, *parts in lines}


def of_link(said: list[str], tag: str) -> list[str]:
    """Those of the names that are this link's: others have their topics in the cluster too."""
    return [name for name in said if tag in name]


def produce_with_holes(pair: Pair, topic: str) -> None:
    """Write transactions, committed and aborted: markers and what was aborted have offsets at the source alone."""
    producer = pair.producer(**{"transactional.id": f"till-{pair.tag}"})
    producer.init_transactions(PATIENCE)
    for number in range(8):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            for record in range(5):
                producer.produce(topic, b"%d.%d" % (number, record), partition=partition)
        if number % 3 == 1:
            producer.flush(PATIENCE)
            producer.abort_transaction(PATIENCE)
        else:
            producer.commit_transaction(PATIENCE)


def translated(pair: Pair, topic: str, partition: int, offset: int) -> int:
    """The offset of the first copied record at or after an offset of the source, found by reading both sides."""
    copy = pair.naming.destination(topic)
    next_record = sum(at < offset for at, _ in contents(pair.orange, topic, partition))
    found = contents(pair.grape, copy, partition)
    assert next_record < len(found)
    return found[next_record][0]


def unread(pair: Pair, offsets: Mapping[Partition, int]) -> list[str]:
    """The records from these offsets of the source on, as the program shows those of the copies."""
    return sorted(
        f"{pair.naming.destination(topic)}-{partition} {value}"
        for (topic, partition), offset in offsets.items()
        for at, value in contents(pair.orange, topic, partition)
        if at >= offset
    )


async def mirrored(pair: Pair, engine: Engine, offsets: Mapping[Partition, int]) -> list[str]:
    """Write heartbeats, and a checkpoint for each offset of the source; what the client is to say of them."""
    naming, link = pair.naming, engine.link(pair.settings())
    await Heartbeats(link).beat()
    expected, written = [], []
    for (topic, partition), offset in offsets.items():
        copy, downstream = (
            naming.destination(topic),
            await asyncio.to_thread(translated, pair, topic, partition, offset),
        )
        assert downstream != offset
        written.append(MirrorCheckpoint(GROUP, (copy, partition), offset, downstream, f"at {offset}"))
        expected.append(f"{copy}-{partition} {downstream} at {offset}")
    writing = MirrorCheckpoints(link)
    earlier = [replace(each, upstream=0, downstream=0) for each in written]
    others = [replace(each, group="another", downstream=1) for each in written]
    assert await writing.write(earlier) == len(earlier)
    assert await writing.write([*others, *written]) == 2 * len(written)
    assert await writing.write(written) == 0
    return sorted(expected)


@pytest.mark.parametrize("version", [NEWEST, OLD])
async def test_by_prefix_every_call_of_mirror_makers_client_works_and_a_consumer_goes_on_where_its_group_was(
    pair: Pair, program: Path, version: str
) -> None:
    pair = replace(pair, kind=TopicNaming.PREFIX, formats=True)
    naming = pair.naming
    topic, further = pair.topic("orders", PARTITIONS), f"lime{pair.tag}"
    await asyncio.to_thread(produce_with_holes, pair, topic)
    relayed, users = f"{further}.heartbeats", f"device{pair.tag}.heartbeats"
    admin = AdminClient(pair.orange.client_configuration())
    for made in admin.create_topics(
        [NewTopic(name, 1, 1) for name in (relayed, f"{further}.checkpoints.internal", users)]
    ).values():
        made.result(PATIENCE)
    offsets = {(topic, 0): 13, (topic, 1): 26}
    async with pair.engine() as engine:
        await engine.copy_all()
        expected = await mirrored(pair, engine, offsets)
    said = await asked(program, version, pair, further, "plum")
    copy = naming.destination(topic)
    assert {f"{pair.tag}.heartbeats", f"{pair.tag}.{relayed}"} <= set(said["heartbeatTopics"])
    assert users not in "".join(said["heartbeatTopics"])
    assert of_link(said["checkpointTopics"], pair.tag) == [f"{pair.tag}.checkpoints.internal"]
    assert {pair.tag, further} <= set(said["upstreamClusters"])
    assert said[f"replicationHops {pair.tag}"] == ["1"]
    assert said[f"replicationHops {further}"] == ["2"]
    assert said["replicationHops plum"] == ["-1"]
    assert copy in said["remoteTopics"]
    assert copy in said[f"remoteTopics {pair.tag}"]
    assert said["translateOffsets"] == expected
    if version == NEWEST:
        assert said["groups by pattern"] == [GROUP]
        assert said["translateOffsets by pattern"] == expected
    assert said["read"] == await asyncio.to_thread(unread, pair, offsets)


async def test_by_suffix_its_client_knows_the_source_and_translates_offsets_but_takes_copies_for_others(
    pair: Pair, program: Path
) -> None:
    pair = replace(pair, formats=True)
    topic = pair.topic("orders", PARTITIONS)
    await asyncio.to_thread(produce_with_holes, pair, topic)
    offsets = {(topic, 0): 13, (topic, 1): 26}
    async with pair.engine() as engine:
        await engine.copy_all()
        expected = await mirrored(pair, engine, offsets)
    said = await asked(program, NEWEST, pair)
    assert of_link(said["heartbeatTopics"], pair.tag) == [f"{pair.tag}.heartbeats"]
    assert of_link(said["checkpointTopics"], pair.tag) == [f"{pair.tag}.checkpoints.internal"]
    assert of_link(said["upstreamClusters"], pair.tag) == [pair.tag]
    assert said[f"replicationHops {pair.tag}"] == ["1"]
    assert said["translateOffsets"] == said["translateOffsets by pattern"] == expected
    assert said["read"] == await asyncio.to_thread(unread, pair, offsets)
    copy = pair.naming.destination(topic)
    assert copy in said["remoteTopics"]  # as a topic called copy, of a cluster called like the topic
    assert copy not in said[f"remoteTopics {pair.tag}"]


async def test_a_consumer_goes_on_by_the_checkpoint_of_a_group_that_follows(pair: Pair, program: Path) -> None:
    pair = replace(pair, kind=TopicNaming.PREFIX, formats=True)
    topic, group = pair.topic("orders", PARTITIONS), f"billing-{pair.tag}"
    await asyncio.to_thread(produce_with_holes, pair, topic)
    offsets = {(topic, 0): 13, (topic, 1): 26}
    await asyncio.to_thread(commit, pair.orange, group, offsets)
    settings = pair.settings(REPLICA_GROUPS_REGEX=group, GROUPS_SYNC_SECONDS="0.2")
    newest, problems = NewestGroups(), ProblemLog()
    async with pair.engine() as engine:
        await engine.copy_all()
        background = Background(problems)
        background.start([GroupService(engine.link(settings), settings, newest, problems)])
        async with asyncio.timeout(PATIENCE):
            while [seen.state for seen in newest.plans] != [GroupState.SYNCED]:
                await asyncio.sleep(0.05)
        await background.stop()
    assert problems.open == {}
    said = await asked(program, NEWEST, pair, group=group)
    copy = pair.naming.destination(topic)
    expected = [
        f"{copy}-{partition} {await asyncio.to_thread(translated, pair, topic, partition, offset)} "
        for (_, partition), offset in offsets.items()
    ]
    assert said["translateOffsets"] == said["translateOffsets by pattern"] == expected
    assert said["read"] == await asyncio.to_thread(unread, pair, offsets)
