"""Placing partitions by their load while the replicator runs: the policy proposes, the layout or the job changes."""

import logging

from appliance.driver.jobs import Jobs
from appliance.driver.model.balance_policy import BalancePolicy, BalanceTimes
from appliance.driver.model.lane_balance import Placement, Rebalance
from appliance.driver.model.load_window import Loads
from appliance.driver.running_layout import RunningLayout
from appliance.driver.task_reports import TaskReports
from appliance.errors import ApplianceError, LinkRefused
from appliance.link.model.checkpoint import Owner
from appliance.link.model.link_load import NewestLoad
from appliance.listing import some

log = logging.getLogger("appliance.replicator")


class LaneBalancing:
    """Follows the ``load`` of one run, which the status measures anyhow, at these ``times``."""

    def __init__(
        self, layout: RunningLayout, jobs: Jobs, reports: TaskReports, load: NewestLoad, times: BalanceTimes
    ) -> None:
        self.times = times
        self._layout = layout
        self._jobs = jobs
        self._reports = reports
        self._load = load
        self._policy = BalancePolicy(times)

    @property
    def loads(self) -> Loads:
        """The newest known loads; none before the first window."""
        return self._policy.loads

    def begin_anew(self) -> None:
        """Forget the window: the layout has changed."""
        self._policy.begin_anew()

    async def look(self, now: Placement, own: Owner) -> None:
        """Take in the newest load, and make the change that is worth its stall.

        A change that is refused, or fails, is logged in one line and tried again later.
        """
        if self._reports.fenced.is_set() or self._reports.layout_changed.is_set():
            return
        proposed = self._policy.seen(self._load.sample, now)
        if proposed is None:
            return
        if not proposed.moved:
            log.info("lanes in other tasks by load", extra={"fields": {"busiest": _busiest(proposed)}})
            self._policy.changed()
            self._jobs.renew()
            return
        try:
            stall = await self._layout.change(proposed, own)
        except ApplianceError as error:
            log.warning(f"partitions stay in their lanes, and are placed by load later: {error}")
            self._policy.failed()
            if not isinstance(error, LinkRefused):
                self._reports.layout_changed.set()  # it may be half made, which the driver ends before it goes on
        else:
            self._made(proposed, stall)

    def _made(self, proposed: Rebalance, stall: float | None) -> None:
        if stall is None:  # another change came first, or another replicator
            self._policy.begin_anew()
            return
        moved = some([f"{topic}-{number}" for topic, number in proposed.moved])
        fields = {"moved": moved, "busiest": _busiest(proposed), "stall_seconds": round(stall, 1)}
        log.info("lanes placed by load", extra={"fields": fields})
        self._policy.changed()
        self._reports.layout_changed.set()


def _busiest(made: Rebalance) -> str:
    """The load of the busiest lane, or task, before and after the change."""
    before, after = (f"{100 * share:.0f}%" for share in made.busiest)
    return f"{before} to {after} of what was due within {made.seconds:.0f} s"
