"""When partitions are placed by load: histories of a link, on a clock of their own."""

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from appliance.driver.model.balance_policy import TIMES, BalancePolicy
from appliance.driver.model.lane_balance import Placement, Rebalance
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.layout import Layout
from appliance.link.model.link_load import LoadSample

STEP = 5
"""Seconds between two samples."""
SPEED = 10_000_000
"""Bytes a second that a lane copies."""
WINDOW = TIMES.part * TIMES.parts
LAYOUT = Layout(4)
PARTITIONS = [("orders", number) for number in range(16)]

Produced = Callable[[float], Mapping[Partition, float]]
"""The bytes a second that are produced at a time."""


def in_lane(lane: int) -> list[Partition]:
    return [each for each in PARTITIONS if LAYOUT.lane_of(*each) == lane]


@dataclass(slots=True)
class History:
    """A link whose lanes copy at one speed, or its tasks if they are the bottleneck, and whatever the policy makes of
    it.
    """

    produced: Produced
    due: dict[Partition, float] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0.0))
    layout: Layout = LAYOUT
    tasks: int = 4
    is_lane_slow: bool = True
    at: float = 0.0
    copied: dict[Partition, float] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0.0))
    made: list[tuple[float, Rebalance]] = field(default_factory=list)
    policy: BalancePolicy = field(default_factory=BalancePolicy)
    now: Placement = field(init=False)

    def __post_init__(self) -> None:
        self.now = Placement(self.layout, [lane % self.tasks for lane in range(self.layout.lanes)], self.tasks)

    def go_on(self, seconds: float) -> "History":
        """Produce, copy and sample for so long."""
        until = self.at + seconds
        while self.at < until:
            self._step()
            proposed = self.policy.seen(self.sample(), self.now)
            if proposed is not None:
                self.made.append((self.at, proposed))
                self._change(proposed)
        return self

    def sample(self) -> LoadSample:
        copied = {key: int(held) for key, held in self.copied.items()}
        return LoadSample(self.at, copied, {key: due for key, due in self.due.items() if due})

    def _change(self, proposed: Rebalance) -> None:
        self.policy.changed()
        self.now = replace(self.now, layout=proposed.layout).with_tasks_by(proposed.loads)

    def _step(self) -> None:
        self.at += STEP
        for key, speed in self.produced(self.at).items():
            self.due[key] += speed * STEP
        groups = self.now.lanes(self.due)
        if not self.is_lane_slow:
            groups = {key: self.now.task_of[lane] for key, lane in groups.items()}
        for group in set(groups.values()):
            waiting = {key: due for key, due in self.due.items() if groups[key] == group and due}
            share = SPEED * STEP / max(1, sum(waiting.values()))
            for key, due in waiting.items():
                taken = due * min(1.0, share)
                self.due[key] -= taken
                self.copied[key] += taken


def nothing(_: float) -> Mapping[Partition, float]:
    return {}


def behind(*partitions: Partition, each: float = 1e15) -> dict[Partition, float]:
    return {**dict.fromkeys(PARTITIONS, 0.0), **dict.fromkeys(partitions, each)}


def test_four_partitions_that_carry_everything_in_one_lane_get_a_lane_each_after_one_window() -> None:
    hot = in_lane(2)
    history = History(nothing, behind(*hot)).go_on(10 * WINDOW)
    ((at, made),) = history.made
    assert WINDOW <= at <= WINDOW + TIMES.part
    assert sorted(made.layout.lane_of(*each) for each in hot) == [0, 1, 2, 3]
    assert len(made.moved) == 3
    assert made.busiest == (1.0, pytest.approx(0.25, abs=0.01))
    assert sorted(history.now.task_of) == [0, 1, 2, 3]


def test_an_idle_link_and_one_that_keeps_up_stay_as_they_are() -> None:
    assert not History(nothing).go_on(20 * WINDOW).made
    steady = dict.fromkeys(in_lane(1), SPEED / 5)
    assert not History(lambda _: steady).go_on(20 * WINDOW).made


def test_bursts_after_which_the_lane_catches_up_are_no_reason() -> None:
    burst = dict.fromkeys(in_lane(1), SPEED)
    history = History(lambda at: burst if at % WINDOW < WINDOW / 10 else {})
    assert not history.go_on(30 * WINDOW).made


def test_lanes_that_are_all_as_far_behind_stay_as_they_are() -> None:
    assert not History(nothing, behind(*PARTITIONS)).go_on(10 * WINDOW).made


def test_a_partition_that_alone_is_more_than_a_lane_causes_no_change_by_itself() -> None:
    hot, *others = in_lane(3)
    assert not History(nothing, behind(hot)).go_on(20 * WINDOW).made
    history = History(nothing, {**behind(*others), hot: 3e15}).go_on(20 * WINDOW)
    ((_, made),) = history.made  # the others leave its lane, and that is all
    assert {made.layout.lane_of(*each) for each in others}.isdisjoint({made.layout.lane_of(*hot)})


@pytest.mark.parametrize("seed", range(4))
def test_a_load_that_moves_every_minute_causes_no_change_after_change(seed: int) -> None:
    chance = random.Random(seed)
    minutes = [chance.choice(PARTITIONS) for _ in range(10_000)]
    assert not History(lambda at: {minutes[int(at // 60)]: 0.9 * SPEED}).go_on(4 * 3600).made
    # More than its lane can take, wherever it falls, so that some lane is always behind.
    assert len(History(lambda at: {minutes[int(at // 60)]: 3 * SPEED}).go_on(12 * 3600).made) <= 8


def test_a_load_that_moves_between_the_partitions_of_one_lane_and_never_waits_long_stays_there() -> None:
    hot = in_lane(0)
    history = History(lambda at: {hot[int(at // TIMES.part) % len(hot)]: SPEED})
    assert not history.go_on(12 * 3600).made


def together(history: History) -> None:
    """Let the load fall on one lane again, whatever was changed."""
    history.now = replace(history.now, layout=LAYOUT)


def until_changed(history: History) -> float:
    """The time of the next change."""
    before = len(history.made)
    while len(history.made) == before:
        history.go_on(STEP)
        assert history.at < 100 * TIMES.pause
    return history.at


def test_after_each_change_that_did_not_help_for_long_the_next_one_comes_later() -> None:
    longest = BalancePolicy(replace(TIMES, pause_max=10 * TIMES.pause))
    history, times = History(nothing, behind(*in_lane(2)), policy=longest), []
    for _ in range(8):
        times.append(until_changed(history))
        together(history)
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert TIMES.pause <= pauses[0] <= TIMES.pause + TIMES.part
    for before, after in itertools.pairwise(pauses[:4]):
        assert after == pytest.approx(2 * before, rel=0.1)
    assert pauses[-1] == pytest.approx(10 * TIMES.pause, rel=0.1)


def test_after_a_change_that_helped_for_long_the_pause_is_the_usual_one_again() -> None:
    history, times = History(nothing, behind(*in_lane(2))), []
    for calm in (0, 0, 0, 20 * TIMES.pause, 0):
        times.append(until_changed(history))
        history.go_on(calm)
        together(history)
    assert times[2] - times[1] > 1.9 * TIMES.pause
    assert until_changed(history) - times[-1] <= TIMES.pause + TIMES.part


def test_a_change_that_was_refused_is_proposed_again_later() -> None:
    history = History(nothing, behind(*in_lane(2)))
    history.policy.failed()
    assert until_changed(history) >= 2 * TIMES.pause


def test_a_link_that_is_not_plainly_active_is_left_alone_and_then_watched_for_a_whole_window() -> None:
    history = History(nothing, behind(*in_lane(2))).go_on(WINDOW - TIMES.part)
    assert history.policy.seen(None, history.now) is None
    assert not history.go_on(WINDOW - TIMES.part).made
    assert history.go_on(3 * TIMES.part).made


def test_a_replicator_that_stood_still_has_to_watch_a_whole_window_first() -> None:
    history = History(nothing, behind(*in_lane(2))).go_on(WINDOW - TIMES.part)
    history.at += 3600
    assert not history.go_on(WINDOW - TIMES.part).made
    assert history.go_on(3 * TIMES.part).made


def test_one_lane_or_one_task_leaves_nothing_to_do() -> None:
    assert not History(nothing, behind(*PARTITIONS), Layout(1), tasks=1).go_on(3 * WINDOW).made
    assert not History(nothing, behind(*in_lane(2)), tasks=1).go_on(3 * WINDOW).made


def test_of_lanes_that_share_a_busy_task_one_goes_to_another_and_the_layout_stays() -> None:
    # Lanes 0 and 2 are in task 0.
    history = History(nothing, behind(in_lane(0)[0], in_lane(2)[0]), tasks=2, is_lane_slow=False)
    ((_, made),) = history.go_on(3 * WINDOW).made
    assert (made.layout, made.moved) == (LAYOUT, [])
    assert made.busiest == (1.0, pytest.approx(0.5, abs=0.01))
    assert history.now.task_of[0] != history.now.task_of[2]


def test_a_partition_that_waits_for_a_broker_is_no_load() -> None:
    hot, *others = in_lane(2)
    history = History(lambda _: {hot: SPEED / 10})
    held_back = dict.fromkeys(others, 1e15)
    for _ in range(int(2 * WINDOW / STEP)):
        history._step()
        sample = history.sample()
        assert history.policy.seen(replace(sample, due={**sample.due, **held_back}), history.now) is None
