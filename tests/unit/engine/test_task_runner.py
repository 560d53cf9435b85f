"""The lanes of one task, which its assignments start, change and stop; here they copy nothing."""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from appliance.engine.control.assignment import Assignment, CopySums, Notice, Report
from appliance.engine.model.chunk import Chunk
from appliance.engine.task import runner as task_runner
from appliance.engine.task.runner import TaskRunner
from appliance.errors import BrokerBusy, Superseded, Unreachable
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.records.outgoing import Outgoing
from appliance.link.model.checkpoint import Owner
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Suffix
from appliance.link.model.replicas import Replica
from tests.support.engine import ENGINE

NAMING = Naming("replicator-orange", Suffix(after=".copy"), re.compile(".*"), re.compile(""))
OWNER = Owner("run", "task", "host", 0, 1)
ONE, OTHER = (Replica("orders", n, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2)) for n in range(2))
CHUNK = Chunk(ONE, (Outgoing(b"x" * 900, 10, 100, 110, 1_700_000_000_000, True),), 110, 1)


@dataclass
class Lane:
    """The number of a lane, and a list of its events."""

    number: int
    said: list[str]
    in_transaction: bool = True


@dataclass
class Runner:
    """A substitute for a lane's runner; it ends when it is stopped and ``may_end``."""

    lane: Lane
    notice: Any
    ledger: Any
    replicas: tuple[Replica, ...] = ()
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    fault: Exception | None = None

    def assign(self, replicas: tuple[Replica, ...], _: object) -> None:
        self.replicas = replicas
        self.lane.said.append(f"{self.lane.number} has {len(replicas)}")

    async def run(self, stopping: asyncio.Event) -> None:
        self.lane.said.append(f"{self.lane.number} runs")
        if self.fault:
            raise self.fault
        await stopping.wait()
        await self.may_end.wait()
        self.lane.said.append(f"{self.lane.number} ends")


class Task:
    """The tested task; the test puts in its assignments, None for a stop."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.reports: list[Report] = []
        self.runners: list[Runner] = []
        self.coming: asyncio.Queue[Assignment | Exception | None] = asyncio.Queue()
        self.slow = False
        self.stop_seconds = 10.0
        self.fault: Exception | None = None

    def lane(self, number: int, *_: object) -> Lane:
        return Lane(number, self.said)

    def runner(self, lane: Lane, *given: Any, ledger: Any, **_: Any) -> Runner:
        made = Runner(lane, given[-1], ledger, fault=self.fault)
        if not self.slow:
            made.may_end.set()
        self.runners.append(made)
        return made

    async def assignments(self) -> AsyncIterator[Assignment]:
        while (assignment := await self.coming.get()) is not None:
            if isinstance(assignment, Exception):
                raise assignment
            yield assignment

    async def started(self, assignment: Assignment) -> asyncio.Task[None]:
        """The task's run, once it has its first assignment."""
        cluster: Any = KafkaCluster.__new__(KafkaCluster)  # it gets no new assignment
        runner = TaskRunner(
            cluster, cluster, NAMING, ENGINE, OWNER, self.reports.append, stop_seconds=self.stop_seconds
        )
        running = asyncio.create_task(runner.run(self.assignments()))
        await self.takes(assignment)
        return running

    async def takes(self, assignment: Assignment | Exception | None) -> None:
        self.coming.put_nowait(assignment)
        for _ in range(20):
            await asyncio.sleep(0)

    async def stopped(self, running: asyncio.Task[None]) -> None:
        await self.takes(None)
        await running


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Task:
    made = Task()
    monkeypatch.setattr(task_runner, "Lane", made.lane)
    monkeypatch.setattr(task_runner, "LaneRunner", made.runner)
    return made


def lanes(**replicas: tuple[Replica, ...]) -> Assignment:
    return Assignment({int(name.removeprefix("lane")): held for name, held in replicas.items()})


async def test_lanes_that_stay_are_not_disturbed_while_others_come_and_go(task: Task) -> None:
    running = await task.started(lanes(lane0=(ONE,), lane2=(ONE,)))
    await task.takes(lanes(lane0=(ONE,), lane2=(ONE, OTHER), lane4=(ONE,)))
    await task.takes(lanes(lane0=(ONE,), lane4=(ONE,)))
    assert [word for word in task.said if word.startswith("0")] == ["0 has 1", "0 runs"]
    assert [word for word in task.said if word.startswith("2")] == ["2 has 1", "2 runs", "2 has 2", "2 ends"]
    assert [word for word in task.said if word.startswith("4")] == ["4 has 1", "4 runs"]
    await task.stopped(running)
    assert task.said[-2:] == ["0 ends", "4 ends"]


async def test_a_lane_that_comes_back_runs_when_its_predecessor_has_ended(task: Task) -> None:
    task.slow = True
    running = await task.started(lanes(lane0=(ONE,)))
    await task.takes(lanes())
    await task.takes(lanes(lane0=(OTHER,)))
    assert task.said == ["0 has 1", "0 runs", "0 has 1"]
    task.runners[0].may_end.set()
    await task.takes(lanes(lane0=(OTHER,)))
    assert task.said == ["0 has 1", "0 runs", "0 has 1", "0 ends", "0 runs"]
    task.runners[1].may_end.set()
    await task.stopped(running)


async def test_a_stop_is_over_when_every_lane_has_finished_its_transaction(task: Task) -> None:
    task.slow = True
    running = await task.started(lanes(lane0=(ONE,), lane2=(ONE,)))
    await task.takes(None)
    assert not running.done()
    for runner in task.runners:
        runner.may_end.set()
    await running
    assert sorted(task.said[-2:]) == ["0 ends", "2 ends"]


async def test_case_62_a_lane_that_is_in_no_transaction_is_cut_off_at_once(task: Task) -> None:
    # Before, it waited for the dial of a broker, and the stop waited for it.
    task.slow = True
    running = await task.started(lanes(lane0=(ONE,)))
    task.runners[0].lane.in_transaction = False
    await task.takes(lanes())
    await task.takes(lanes(lane0=(OTHER,)))
    assert task.said == ["0 has 1", "0 runs", "0 has 1", "0 runs"]
    task.runners[1].lane.in_transaction = False
    await task.stopped(running)


async def test_case_64_a_transaction_that_does_not_end_is_cut_off_and_said(task: Task) -> None:
    # EndTxn may take a minute, and Docker gives half a minute.
    task.stop_seconds, task.slow = 0.01, True
    running = await task.started(lanes(lane0=(ONE,), lane2=(ONE,)))
    task.runners[0].may_end.set()
    await task.stopped(running)
    assert [n.subject for n in task.reports if isinstance(n, Notice)] == ["lane 2"]


async def test_a_task_whose_driver_is_lost_finishes_its_transactions_and_has_failed(task: Task) -> None:
    running = await task.started(lanes(lane0=(ONE,)))
    await task.takes(Unreachable("the replicator has ended the connection"))
    with pytest.raises(Unreachable):
        await running
    assert task.said[-1] == "0 ends"


async def test_a_task_whose_lane_another_try_has_taken_ends_and_so_do_its_other_lanes(task: Task) -> None:
    running = await task.started(lanes(lane0=(ONE,), lane2=(ONE,)))
    task.runners[0].notice("lane 0", Superseded("lane 0 was taken by another task of this replicator"))
    with pytest.raises(Superseded):
        await running
    assert sorted(task.said[-2:]) == ["0 ends", "2 ends"]


async def test_a_defect_in_a_lane_fails_the_task_rather_than_leave_the_lane_to_nobody(task: Task) -> None:
    task.fault = ZeroDivisionError()
    running = await task.started(lanes(lane0=(ONE,)))
    with pytest.raises(ZeroDivisionError):
        await running


async def test_the_problems_of_the_lanes_are_reported_and_that_they_are_over(task: Task) -> None:
    running = await task.started(lanes(lane0=(ONE,)))
    task.runners[0].notice("lane 0", BrokerBusy("no", "NOT_LEADER"))
    task.runners[0].notice("lane 0", None)
    await task.stopped(running)
    assert [(n.subject, n.kind) for n in task.reports if isinstance(n, Notice)] == [
        ("lane 0", "BrokerBusy"),
        ("lane 0", ""),
    ]


async def test_the_last_copied_records_are_reported_when_the_task_ends(task: Task) -> None:
    running = await task.started(lanes(lane0=(ONE,)))
    task.runners[0].ledger.add([CHUNK])
    await task.stopped(running)
    assert task.reports == [CopySums(10, 900, 1, 1, 0)]
