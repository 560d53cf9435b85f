"""The open problems of a running replicator, as its log and its status tell them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

_BESIDE = frozenset({"heartbeats", "lanes", "maps", "tasks"})
_GROUPS, _GAP = "groups ", " gap"
PERSISTS_MS = 60_000
"""Age from which a problem does not pass by itself, as a new leader or a restarted broker would have it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: its reason, and the time at which it began, in milliseconds."""

    reason: str
    since: int


Problems = Mapping[str, Fault]
"""Faults by their subject: a partition, a topic, a lane, a cluster, or a part of the replicator's work."""


def has_a_view(subject: str) -> bool:
    """True of groups, and of recorded gaps: the status shows them by themselves."""
    return subject.startswith(_GROUPS) or subject.endswith(_GAP)


def hampers(subject: str) -> bool:
    """True if such a problem can keep records from being copied."""
    return subject not in _BESIDE and not has_a_view(subject)


def persistent(problems: Problems, now: int) -> Problems:
    """The problems that keep records from being copied, and that do not pass by themselves."""
    return {s: fault for s, fault in problems.items() if hampers(s) and now - fault.since >= PERSISTS_MS}
