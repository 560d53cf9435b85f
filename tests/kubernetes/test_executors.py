"""Spark's executors as pods, each with a gateway of its own beside it."""

import asyncio

import pytest

from tests.containers.programs.vpc import TOPIC
from tests.containers.sites import GRAPE, ORANGE
from tests.kubernetes.brokers import Brokers
from tests.kubernetes.release import Link, releases

RECORDS = 1000
EXECUTORS = {"enabled": True, "instances": 2, "cores": 1, "cpuRequest": "100m"}


@pytest.mark.release
@pytest.mark.asyncio(loop_scope="session")
async def test_a_topic_is_copied_by_executors_that_are_pods_and_they_end_with_their_release(beside: Brokers) -> None:
    link = Link("executed", 31061, ORANGE, GRAPE, {"executors": EXECUTORS})
    source, destination = releases(beside, link)
    try:
        for end in (source, destination):
            await asyncio.to_thread(end.install)
        for number in range(2):
            producer = await beside.produce(ORANGE, TOPIC, f"executed-{number}", RECORDS)
            assert await producer.wait(60) == 0
            await beside.wait_until_copied(ORANGE, TOPIC, GRAPE, link.copy)
        selector = "--selector=app.kubernetes.io/component=executor"
        pods = destination.kubectl("get", "pods", selector, "--output=name").split()
        assert len(pods) == EXECUTORS["instances"]
    finally:
        for end in (source, destination):
            await asyncio.to_thread(end.uninstall)
    assert not destination.kubectl("get", "pods", "--output=name")
