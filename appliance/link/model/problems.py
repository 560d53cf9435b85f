"""The open problems of a running replicator, as its log and its status tell them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

_GROUPS, _GAP = "groups ", " gap"
ACLS, CONFIGS = "ACLs", "configs of "
AUDIT, BOUND, HEARTBEATS, MAPS = "audit table", "bound of the link", "heartbeats", "maps of offsets"
BESIDE = (ACLS, AUDIT, BOUND, CONFIGS, HEARTBEATS, MAPS, "names of lanes", "registry")
"""Work beside the copying, by the beginnings of its subjects: it is never the reason that nothing is copied."""
PERSISTS_MS = 60_000
"""Age from which the search for topics does not pass by itself, as a new leader or a restarted broker would have it."""


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


def persistent(problems: Problems, now: int) -> Problems:
    """Those that matter though nothing is behind, as nobody knows of new topics: old ones, or older than the clock."""
    return {s: each for s, each in problems.items() if s == "discovery" and not 0 <= now - each.since < PERSISTS_MS}
