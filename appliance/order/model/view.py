"""The order as the committed facts of all clusters show it, read once. An unknown value is None, never 0."""

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

from appliance.link.model.order import Epoch, Members, Origin
from appliance.order.model.elections import NOT_LISTED, enough
from appliance.program import command_line

_SILENT = 10
"""Seconds without a beat after which a process is silent; the clocks of two VMs may differ by some of them."""

_MUTE = "its beats cannot be read"


class OrderState(enum.StrEnum):
    """The state of the order in a word; the first one that holds of any part of it, in this order."""

    NEVER_RUN = "never run"
    STOPPED = "stopped"
    NO_HOME = "no home"
    SILENT = "silent"
    UNKNOWN = "unknown"
    ALONE = "alone"
    ORDERING = "ordering"
    ORDERED = "ordered"

    @property
    def well(self) -> bool:
        """True when no operator is needed."""
        return self in (OrderState.ORDERING, OrderState.ORDERED)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster: the newest promise of its lanes and the size of its gap ledger, or why nothing is known of it now.

    After ``heard`` no beat says that its process is at work; it is None if its beats cannot be read. The process of the
    host ``active`` writes there, unknown if None; those of ``standbys`` could follow.
    """

    id: str
    unknown: str | None
    promised: Epoch | None
    gaps: int | None
    heard: int | None
    active: str | None = None
    standbys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane: its newest epoch, promised by ``promised``; ``since`` is the time of its home's own promise, and
    ``cause`` why it began.

    ``before`` is the newest older epoch that a cluster which was read has accepted, or was home of.
    """

    lane: int
    epoch: Epoch | None
    since: int | None
    members: Members
    promised: Members
    lost: Members
    cause: str | None
    before: Epoch | None


@dataclass(frozen=True, slots=True)
class PartView:
    """A cluster's part in the order of a partition: ``rank`` records of its T-global, which ``lacks`` others.

    A home has taken ``unshown`` records that its T-global does not show yet. ``alone`` is the epoch in which it began
    to show what no other cluster has.
    """

    cluster: str
    accepted: Epoch
    rank: int
    lacks: int | None
    unshown: int | None
    alone: Epoch | None
    stopped: str | None


@dataclass(frozen=True, slots=True)
class OriginView:
    """A partition of T in one cluster: the next offset to take, and the number of offsets that wait from there on.

    The home takes nothing of one that has ``stopped``, for this reason.
    """

    cluster: str
    partition: int
    next_offset: int | None
    end_offset: int | None
    backlog: int | None
    stopped: str | None


@dataclass(frozen=True, slots=True)
class PartitionView:
    """The order of a partition of T: ``open`` is None if its home is unknown; ``length`` counts the home's records."""

    topic: str
    partition: int
    lane: int
    open: bool | None
    length: int | None
    parts: tuple[PartView, ...]
    origins: tuple[OriginView, ...]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that needs an operator, and the commands that end it."""

    subject: str
    reason: str

    @property
    def remedies(self) -> tuple[str, ...]:
        """The commands of an order that the reason names; what a process logs is no remedy."""
        return tuple(command_line(words) for words in re.findall(r"`appliance (order [^`]+)`", self.reason))


@dataclass(frozen=True, slots=True)
class OrderView:
    """The whole order at a time in milliseconds."""

    at: int
    clusters: tuple[ClusterView, ...]
    lanes: tuple[LaneView, ...]
    partitions: tuple[PartitionView, ...]

    @property
    def unknown(self) -> dict[str, str]:
        """The clusters of which nothing is known now, and why: members that are not listed, too."""
        members, read = {name for each in self.lanes for name in each.members}, {each.id for each in self.clusters}
        mute = {each.id: _MUTE for each in self.clusters if each.heard is None and each.promised}
        unknown = mute | {each.id: each.unknown for each in self.clusters if each.unknown}
        return unknown | dict.fromkeys(sorted(members - read), NOT_LISTED)

    @property
    def state(self) -> OrderState:
        """The state in a word."""
        parts = [part for each in self.partitions for part in each.parts]
        unknown = bool(self.unknown) or any(each.open is None for each in self.partitions)
        holds = {
            OrderState.NEVER_RUN: not unknown and not any(each.epoch for each in self.lanes),
            OrderState.STOPPED: any(part.stopped for part in parts) or any(self._stopped_origins()),
            OrderState.NO_HOME: any(each.open is False for each in self.partitions),
            OrderState.SILENT: bool(self.silent),
            OrderState.UNKNOWN: unknown,
            OrderState.ALONE: any(part.alone for part in parts),
            OrderState.ORDERING: any(part.lacks != 0 for part in parts)
            or any(origin.backlog != 0 for each in self.partitions for origin in each.origins),
        }
        return next((state for state, is_so in holds.items() if is_so), OrderState.ORDERED)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that needs an operator."""
        return tuple(self._problems())

    @property
    def silent(self) -> dict[str, int]:
        """The members whose process has not beaten for long, and for how many seconds."""
        members = {name for each in self.lanes for name in each.members}
        heard = {each.id: each.heard for each in self.clusters if each.heard is not None and each.id in members}
        seconds = {name: (self.at - at) // 1000 for name, at in heard.items()}
        return {name: number for name, number in seconds.items() if number >= _SILENT}

    def _of_home(self, cluster: str) -> str:
        """The consequence if a cluster that is down is home, and the command if it is lost; empty if it is not home."""
        down = {*self.unknown, *self.silent}
        for lane in self.lanes:
            if lane.epoch is None or lane.epoch.home != cluster:
                continue
            up = [each for each in lane.members if each not in down]
            if enough(up, lane.members):
                return "; it is home: another cluster becomes home by itself"
            if up:
                lost = ",".join(sorted({*lane.members} - {*up}))
                return f"; it is home: `appliance order move --to {up[0]} --lost {lost}` if {lost} is lost"
        return ""

    def _stopped_origins(self) -> Iterator[Problem]:
        for each in self.partitions:
            for origin in each.origins:
                if origin.stopped:
                    yield Problem(f"{each}, taken of {origin.cluster}", origin.stopped)

    def _problems(self) -> Iterator[Problem]:
        if self.state is OrderState.NEVER_RUN:
            yield Problem("order", "no cluster has promised anything yet: start its process beside each of them")
        for cluster, reason in self.unknown.items():
            yield Problem(cluster, f"unknown now: {reason}{self._of_home(cluster)}")
        for cluster, seconds in self.silent.items():
            yield Problem(cluster, f"silent for {seconds} s: start its process{self._of_home(cluster)}")
        for each in self.partitions:
            lane = self.lanes[each.lane]
            if each.open is False and lane.epoch:
                promised = ", ".join(lane.promised) or "nobody"
                yield Problem(str(each), f"no home: epoch {lane.epoch}, promised by {promised}, is not open")
            for part in each.parts:
                if part.stopped:
                    yield Problem(f"{each} of {part.cluster}", part.stopped)
                if part.alone:
                    yield Problem(f"{each} of {part.cluster}", "alone: it shows what no other cluster has")
        yield from self._stopped_origins()


def made_anew(origin: Origin, topic: str) -> str:
    """The reason that nothing is taken of an origin whose topic was made anew."""
    return (
        f"{origin.of(topic)} was deleted and made anew: `appliance order resume --origin {origin.cluster} "
        f"--topic-name {topic} --partition {origin.number} --from earliest`"
    )
