"""The replicator's container with the memory that the documents give it."""

import asyncio
import json
import time
from typing import Any

import pytest

from tests.containers.clusters import SECONDS
from tests.containers.link import Link, Service
from tests.containers.programs.vpc import TOPIC
from tests.containers.sites import ORANGE

RECORDS = 500
LIMIT = "/sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes"
KILLS = "/sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control"
"""Of version 2 and of version 1 of control groups."""


def first_of(service: Service, files: str) -> str:
    """The content of those of these files that the container has."""
    return service.inside("sh", "-c", f"cat {files} 2>/dev/null").stdout


async def partitions_of(service: Service) -> dict[str, dict[str, Any]]:
    """The status of the first partition of each topic."""
    said = await asyncio.to_thread(service.inside, "appliance", "status", "--json")
    topics = json.loads(said.stdout)["topics"]
    return {topic["topic"]: topic["partitions"][0] for topic in topics}


@pytest.mark.asyncio(loop_scope="session")
async def test_case_950_bombs_do_not_exceed_the_memory_of_the_replicators_container(link: Link) -> None:
    # A few KB killed it again at each start: 5 x 200 MB of zeros were decompressed together.
    *_, replicator = link.services
    await replicator.wait_until("healthy")
    before = replicator.inspected()
    assert int(first_of(replicator, LIMIT)) == before["HostConfig"]["Memory"] > 0
    for topic, timestamp_type in (("bombs", "CreateTime"), ("bombs-rebuilt", "LogAppendTime")):
        link.vpcs.bombs(ORANGE, topic, timestamp_type)
    deadline = time.monotonic() + SECONDS
    while True:
        found = await partitions_of(replicator)
        raw, rebuilt = found.get("bombs", {}), found.get("bombs-rebuilt", {})
        if raw.get("next_offset") == 5 and rebuilt.get("stopped"):
            break
        assert time.monotonic() < deadline, (raw, rebuilt, replicator.log()[-2000:])
        await asyncio.sleep(1)
    assert "the batch at offset 0 does not decompress: it takes more than" in rebuilt["stopped"]["reason"]
    producer = await link.vpcs.produce(ORANGE, TOPIC, "beside bombs", RECORDS, seconds=0)
    assert await producer.wait(60) == 0
    await link.wait_until_copied()
    after = replicator.inspected()
    assert (after["State"]["StartedAt"], after["RestartCount"]) == (before["State"]["StartedAt"], 0)
    assert not after["State"]["OOMKilled"]
    assert "oom_kill 0" in first_of(replicator, KILLS).splitlines()
