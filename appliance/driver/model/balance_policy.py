"""When the running replicator places partitions by their load. Pure: time comes with the samples.

A change stalls the link for a second or two, so it has to be worth that. The busiest lane must have been behind
throughout a window of minutes, and its load must fall by a fourth, over the window and in each part of it: a load that
moves from partition to partition is no reason. Lanes share tasks where there are fewer: if the busiest task would be as
much better off with other lanes, only these change, and the layout stays.

After a change there is a pause. It doubles with each change that did not help for long: if another one is worth it
before twice the pause is over, the load moves, or lanes are not what the link waits for.
"""

from dataclasses import dataclass

from appliance.driver.model.lane_balance import Placement, Rebalance, balanced
from appliance.driver.model.load_window import Groups, Loads, LoadWindow, grouped
from appliance.link.model.layout import Layout
from appliance.link.model.link_load import LoadSample

_REMAINS = 0.75
"""Largest load of the busiest lane after a change that is worth it, as a share of that before."""


@dataclass(frozen=True, slots=True)
class BalanceTimes:
    """The times of the policy, in seconds; every ``look`` the newest sample is taken.

    A lane is ``behind`` if it would take that long for what is due. The pause between two changes is at least
    ``pause``, and doubles up to ``pause_max``.
    """

    look: float = 5.0
    part: float = 60.0
    parts: int = 5
    behind: float = 5.0
    pause: float = 900.0
    pause_max: float = 86_400.0


TIMES = BalanceTimes()


class BalancePolicy:
    """The policy of one run; ``loads`` are the newest known ones, for the next job."""

    def __init__(self, times: BalanceTimes = TIMES) -> None:
        self.loads: Loads = {}
        self._times = times
        self._window = LoadWindow(times.part, times.parts)
        self._pause = times.pause
        self._at = 0.0
        self._changed: float | None = None

    def seen(self, sample: LoadSample | None, now: Placement) -> Rebalance | None:
        """Take in the newest sample; the change that is worth its stall. Without a sample the link is left alone."""
        if sample is None or now.layout.lanes < 2 or now.tasks < 2:
            self._window.clear()
            return None
        self._at = sample.at
        if not self._window.add(sample) or not self._window.is_full:
            return None
        self.loads = self._window.loads()
        lanes = now.lanes(self.loads)
        behind = self._window.behind(lanes, self._times.behind)
        if not behind or (self._changed is not None and sample.at < self._changed + self._pause):
            return None
        return self._by_tasks(now, lanes) or self._by_lanes(now, lanes)

    def begin_anew(self) -> None:
        """Start the window again: the layout has changed."""
        self._window.clear()

    def changed(self) -> None:
        """Note that the last proposal was carried out."""
        soon = self._changed is not None and self._at < self._changed + 2 * self._pause
        self._wait(2 * self._pause if soon else self._times.pause)

    def failed(self) -> None:
        """Note that the last proposal was not carried out: it is tried again later, as after one that did not help."""
        self._wait(2 * self._pause)

    def _wait(self, pause: float) -> None:
        self._pause, self._changed = min(pause, self._times.pause_max), self._at
        self._window.clear()

    def _by_tasks(self, now: Placement, lanes: Groups) -> Rebalance | None:
        """The same layout with the lanes in other tasks, if the busiest task is the bottleneck."""
        then = now.with_tasks_by(self.loads)
        before, after = ({key: task_of[lane] for key, lane in lanes.items()} for task_of in (now.task_of, then.task_of))
        return self._rebalance(now, now.layout, before, after) if self._is_bottleneck(before) else None

    def _by_lanes(self, now: Placement, lanes: Groups) -> Rebalance | None:
        """The layout with some partitions in other lanes, if the busiest lane is the bottleneck."""
        held = grouped(self.loads, lanes)
        least = max(sum(held.values()) / now.layout.lanes, max(self.loads.values()))
        if least > _REMAINS * max(held.values()) or not self._is_bottleneck(lanes):
            return None
        layout = balanced(now.layout, self.loads)
        return self._rebalance(now, layout, lanes, Placement(layout, now.task_of, now.tasks).lanes(self.loads))

    def _is_bottleneck(self, groups: Groups) -> bool:
        """True when the busiest of the groups was behind throughout."""
        held = grouped(self.loads, groups)
        return max(held, key=lambda group: held[group]) in self._window.behind(groups, self._times.behind)

    def _rebalance(self, now: Placement, layout: Layout, before: Groups, after: Groups) -> Rebalance | None:
        """The change, if the busiest group's load falls enough, over the window and in each part of it."""
        most = [tuple(max(grouped(loads, each).values()) for each in (before, after)) for loads in self._window.each()]
        if any(then > _REMAINS * first for first, then in most):
            return None
        whole, (first, then) = sum(self.loads.values()), most[-1]
        return Rebalance(now.layout, layout, self.loads, self._window.seconds, (first / whole, then / whole))
