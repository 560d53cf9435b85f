"""The decisions of a lane's runner, without a broker."""

import asyncio
import re
from typing import cast

import pytest

from appliance.engine.read.source_reader import SourceReader
from appliance.engine.write.lane import Lane
from appliance.engine.write.lane_runner import LaneRunner
from appliance.errors import BrokerBusy
from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.model.checkpoint import Owner
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Suffix
from appliance.link.model.states import LaneState
from tests.support.engine import ENGINE
from tests.support.patience import PATIENCE

NAMING = Naming("replicator-orange", Suffix(after=".copy"), re.compile(".*"), re.compile(""))


class Destination(KafkaCluster):
    """A cluster whose coordinator never finishes loading; a request sets ``asked``."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def forget_coordinator(self, _: str) -> None:
        pass

    async def coordinator(self, key: str) -> None:  # type: ignore[override]
        self.asked.set()
        raise BrokerBusy(f"find the coordinator of {key}: COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS")


class Reader:
    """A reader that reads nothing."""

    def forget(self, _: object) -> None:
        pass


async def test_case_37_a_stop_does_not_wait_for_a_coordinator_that_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    # Before, it waited half a minute for the coordinator, and Docker killed the container first.
    monkeypatch.setattr("appliance.link.client.retry._PATIENCE", 10 * PATIENCE)
    destination = Destination()
    lane = Lane(0, destination, NAMING, Owner("run", "worker", "host", 0), 30.0)
    reader = cast("SourceReader", Reader())
    runner = LaneRunner(lane, destination, reader, ENGINE, lambda *_: None)
    stopping = asyncio.Event()
    running = asyncio.create_task(runner.run(stopping))
    async with asyncio.timeout(PATIENCE):
        await destination.asked.wait()
        stopping.set()
        runner.ready.set()
        await running
    assert lane.state is LaneState.COLD
