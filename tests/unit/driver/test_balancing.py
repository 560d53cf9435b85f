"""The driver's part in placing partitions by their load, with a substitute for the change of the layout."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from appliance.driver.balancing import LaneBalancing
from appliance.driver.model.balance_policy import BalanceTimes
from appliance.driver.model.lane_balance import Placement, Rebalance
from appliance.driver.task_reports import TaskReports
from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError, LinkRefused, Unreachable
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import Owner
from appliance.link.model.layout import Layout
from appliance.link.model.link_load import LoadSample, NewestLoad

TIMES = BalanceTimes(part=1.0, parts=1)
LAYOUT = Layout(4)
OWN = Owner("run", "driver", "", 0)
HOT = [("orders", number) for number in range(16) if LAYOUT.lane_of("orders", number) == 0]


@dataclass(slots=True)
class Changing:
    """A substitute for ``RunningLayout``, whose changes end by this; it counts the jobs that are renewed, too."""

    outcome: float | ApplianceError | None
    asked: list[Rebalance] = field(default_factory=list)
    renewed: int = 0

    async def change(self, proposed: Rebalance, _: Owner) -> float | None:
        self.asked.append(proposed)
        if isinstance(self.outcome, ApplianceError):
            raise self.outcome
        return self.outcome

    def renew(self) -> None:
        self.renewed += 1


@dataclass(slots=True)
class Run:
    """A run whose lanes copy these partitions, far behind."""

    changing: Changing
    partitions: list[Partition] = field(default_factory=lambda: HOT)
    now: Placement = field(default_factory=lambda: Placement(LAYOUT, [0, 1, 0, 1], 2))
    at: float = 0.0
    reports: TaskReports = field(default_factory=lambda: TaskReports(ProblemLog()))
    load: NewestLoad = field(default_factory=NewestLoad)
    balancing: LaneBalancing = field(init=False)

    def __post_init__(self) -> None:
        layout: Any = self.changing
        jobs: Any = self.changing
        self.balancing = LaneBalancing(layout, jobs, self.reports, self.load, TIMES)

    async def go_on(self, seconds: int) -> None:
        for _ in range(seconds):
            self.at += 1
            copied = dict.fromkeys(self.partitions, int(self.at) * 1000)
            self.load.sample = LoadSample(self.at, copied, dict.fromkeys(self.partitions, 1e9))
            await self.balancing.look(self.now, OWN)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def test_what_moved_and_why_is_one_line_and_the_driver_reads_the_link_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    run = Run(Changing(1.234))
    await run.go_on(2)
    (record,) = caplog.records
    assert record.getMessage() == "lanes placed by load"
    fields = record.__dict__["fields"]
    assert fields["busiest"] == "100% to 25% of what was due within 1 s"
    assert fields["stall_seconds"] == 1.2
    assert len(fields["moved"].split(", ")) == 3
    assert run.reports.layout_changed.is_set()
    await run.go_on(5)  # until then, nothing else is done
    assert len(run.changing.asked) == 1
    assert run.balancing.loads.keys() == set(HOT)


@pytest.mark.parametrize(("error", "half_made"), [(LinkRefused("a command works"), False), (Unreachable("gone"), True)])
async def test_a_change_that_is_refused_or_fails_is_one_line_and_is_tried_again_later(
    error: ApplianceError, half_made: bool, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(Changing(error))
    await run.go_on(2)
    assert lines(caplog) == [f"partitions stay in their lanes, and are placed by load later: {error}"]
    assert run.reports.layout_changed.is_set() == half_made
    run.reports.layout_changed.clear()
    run.changing.outcome = 1.0
    await run.go_on(int(2 * TIMES.pause) - 1)
    assert len(run.changing.asked) == 1
    await run.go_on(5)
    assert len(run.changing.asked) == 2


async def test_where_another_change_or_another_replicator_came_first_nothing_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    run = Run(Changing(None))
    await run.go_on(2)
    assert len(run.changing.asked) == 1
    assert not caplog.records
    assert not run.reports.layout_changed.is_set()


async def test_a_run_that_is_fenced_proposes_nothing() -> None:
    run = Run(Changing(1.0))
    run.reports.fenced.set()
    await run.go_on(10)
    assert not run.changing.asked


async def test_lanes_that_only_need_other_tasks_get_them_by_another_job(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    other = next(("orders", number) for number in range(16) if LAYOUT.lane_of("orders", number) == 2)
    run = Run(Changing(1.0), [HOT[0], other])
    await run.go_on(5)
    assert (run.changing.renewed, run.changing.asked) == (1, [])
    assert lines(caplog) == ["lanes in other tasks by load"]
    assert not run.reports.layout_changed.is_set()
