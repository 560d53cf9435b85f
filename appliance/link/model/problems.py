"""The open problems of a running replicator, as its log and its status tell them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

_GROUPS, _GAP = "groups ", " gap"
ACLS, AUDIT, BOUND, HEARTBEATS, MAPS = "ACLs", "audit table", "bound of the link", "heartbeats", "maps of offsets"
STANDBY = "standby"
CONFIGS, CLAIMS = "configs of ", "registry "
BESIDE = (ACLS, AUDIT, BOUND, HEARTBEATS, MAPS, STANDBY, "names of lanes")
BESIDE_EACH = (CONFIGS, CLAIMS)
"""Work beside the copying, by its subjects, or the beginnings of those that name a copy: it is never the reason that
nothing is copied. No name of a topic has the space of a beginning."""
PERSISTS_MS = 60_000
"""Age from which the search for topics does not pass by itself, as a new leader or a restarted broker would have it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: its reason, and the time at which it began, in milliseconds."""

    reason: str
    since: int


Problems = Mapping[str, Fault]
"""Faults by their subject: a partition, a topic, a lane, a cluster, or a part of the replicator's work."""


def is_beside(subject: str) -> bool:
    """True of work beside the copying."""
    return subject in BESIDE or subject.startswith(BESIDE_EACH)


def has_a_view(subject: str) -> bool:
    """True of groups, and of recorded gaps: the status shows them by themselves."""
    return subject.startswith(_GROUPS) or subject.endswith(_GAP)


def persistent(problems: Problems, now: int) -> Problems:
    """Those that matter though nothing is behind, as nobody knows of new topics: old ones, or older than the clock."""
    return {s: each for s, each in problems.items() if s == "discovery" and not 0 <= now - each.since < PERSISTS_MS}
