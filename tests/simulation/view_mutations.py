"""The views made wrong, each in one way: a state that is not told, a metric that is not written, an alert that cannot
fire or that fires without need (invariant N)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from appliance.link.model.problems import Problems
from appliance.status.model import compose_partition, snapshot
from appliance.status.model.compose import Composer
from appliance.status.model.compose_partition import PartitionComposer
from appliance.status.model.metrics import SnapshotCollector
from appliance.status.model.snapshot import Snapshot
from appliance.status.model.topic_status import PartitionStatus
from appliance.status.watcher import Watcher
from tests.simulation.needs import Need

View = Callable[[pytest.MonkeyPatch], None]


def _partitions(change: Callable[[PartitionStatus], PartitionStatus]) -> View:
    """Each partition is shown otherwise."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        shown: Callable[..., PartitionStatus] = PartitionComposer.status

        def changed(self: PartitionComposer, *arguments: Any) -> PartitionStatus:
            return change(shown(self, *arguments))

        patch.setattr(PartitionComposer, "status", changed)

    return mutate


def stuck_untold(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks since when nothing is copied."""
    patch.setattr(PartitionStatus, "stuck_since", lambda *_: None)


def commits_taken_for_looks(patch: pytest.MonkeyPatch) -> None:
    """A slow link is taken for one that does not copy at all."""
    stuck_since = PartitionStatus.stuck_since
    patch.setattr(PartitionStatus, "stuck_since", lambda self, at: stuck_since(replace(self, committed_at=None), at))


def look_for_topics_untold(patch: pytest.MonkeyPatch) -> None:
    """The driver keeps to itself what it alone knows."""

    def persistent(_: Problems, __: int) -> Problems:
        return {}

    patch.setattr(snapshot, "persistent", persistent)


def unreachable_taken_for_known(patch: pytest.MonkeyPatch) -> None:
    """A cluster that does not answer is shown as it was."""
    shown = Composer._cluster
    patch.setattr(Composer, "_cluster", lambda self, cluster, _, before: shown(self, cluster, "", before))


def topics_problems_untold(patch: pytest.MonkeyPatch) -> None:
    """That a topic's copy cannot be made is told by the log alone."""
    collect = Watcher.collect

    async def without(self: Watcher) -> Snapshot:
        self._running = None
        return await collect(self)

    patch.setattr(Watcher, "collect", without)


def old_page_taken_for_new(patch: pytest.MonkeyPatch) -> None:
    """The page of a watcher that looks no more is served as a new one."""
    made = SnapshotCollector.__init__
    patch.setattr(SnapshotCollector, "__init__", lambda self, shown, _: made(self, shown, True))


def ends_reached_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Since when a partition is behind is found anew at each look."""
    reached = compose_partition.reached
    patch.setattr(compose_partition, "reached", lambda _, end, position, now: reached((), end, position, now))


VIEW_MUTATIONS: Mapping[str, tuple[View, str, Need]] = {
    "a stop untold": (_partitions(lambda p: replace(p, stopped=None)), "a stop: DELETED", ("PartitionStopped", "aaa")),
    "a partition without a leader taken for known": (
        _partitions(lambda p: replace(p, unknown=None)),
        "a partition has no leader",
        ("PartitionUnknown", "aaa"),
    ),
    "an open transaction untold": (
        _partitions(lambda p: replace(p, held=None)),
        "a transaction stays open",
        ("Held", "bbb"),
    ),
    "gaps untold": (_partitions(lambda p: replace(p, gaps=())), "retention was faster", ("Gap", "aaa")),
    "dead letters untold": (
        _partitions(lambda p: replace(p, dead_letters=0)),
        "SQL has failed on records",
        ("DeadLetters", "aaa"),
    ),
    "what is stuck untold": (stuck_untold, "nothing can be written", ("Stuck", "bbb")),
    "a slow link taken for a stuck one": (commits_taken_for_looks, "it is slower than its producers", ("Stuck", "aaa")),
    "a look for topics untold": (look_for_topics_untold, "the look for topics is denied", ("NotCopying", "")),
    "a silent cluster taken for a known one": (
        unreachable_taken_for_known,
        "the source does not answer",
        ("SourceUnreachable", ""),
    ),
    "a copy that cannot be made untold": (topics_problems_untold, "a copy cannot be made", ("TopicStopped", "ccc")),
    "an old page taken for a new one": (old_page_taken_for_new, "the replicator looks no more", ("Silent", "")),
    "the beginning of a lag forgotten": (
        ends_reached_forgotten,
        "it is slower than its producers",
        ("Lag", "aaa"),
    ),
}
"""Each with the history that shows it, and what is said wrongly there."""

_GAPS, _LETTERS = "kafka_replicator_gaps_total", "kafka_replicator_dead_letters_total"
TOO_QUIET: Mapping[str, tuple[str, str]] = {
    "NotScraped": ("absent(", "count("),
    "Silent": ("[2m]", "[1d]"),
    "PartitionStopped": ("> 0", "> 1"),
    "TopicStopped": ("> 0", "> 1"),
    "NotCopying": ("never run|failing|nothing matches", "inactive"),
    "Restarts": ("[15m]", "[1m]"),
    "Stuck": ("kafka_replicator_stuck", "kafka_replicator_stopped"),
    "PartitionUnknown": ("_reachable == 1", "_reachable == 0"),
    "SourceUnreachable": ("source", "destination"),
    "DestinationUnreachable": ("destination", "source"),
    "Lag": ("> 60 ", "> 6000 "),
    "Held": ("> 900", "> 9000"),
    "Gap": (_GAPS, _LETTERS),
    "DeadLetters": (_LETTERS, _GAPS),
    "CommandUnfinished": ("|resetting", ""),
    "GroupsNotSynced": ("refused|unknown", "behind"),
    "AuditBehind": ("> 7200", "> 72000"),
    "StandbyMissing": ("standing by", "active"),
}
"""A part of each alert's condition, and another in its place that makes it miss a state that needs a person."""

TOO_LOUD: Mapping[str, tuple[str, str]] = {
    "NotScraped": ('"kafka-replicator"', '"replicator"'),
    "Silent": ("0.5", "1.1"),
    "PartitionStopped": ("> 0", ">= 0"),
    "TopicStopped": ("> 0", ">= 0"),
    "NotCopying": ('"never run|', '"copied|never run|'),
    "Restarts": ("> 4", "> 0"),
    "Stuck": ("> 0", ">= 0"),
    "PartitionUnknown": ("> 0", ">= 0"),
    "SourceUnreachable": ("== 0", ">= 0"),
    "DestinationUnreachable": ("== 0", ">= 0"),
    "Lag": ('"active"', '"paused"'),
    "Held": ("> 900", "> 20"),
    "Gap": (f"max_over_time({_GAPS}[1h] offset 1h)", f"{_GAPS} offset 1h"),
    "DeadLetters": ("> 0", ">= 0"),
    "CommandUnfinished": ("|resetting", "|resetting|active"),
    "GroupsNotSynced": ("> 0", ">= 0"),
    "AuditBehind": ("> 7200", "> 0"),
    "StandbyMissing": ("standing by", "not ready"),
}
"""The same that makes it fire when nobody is needed."""
