"""The values of a total order in several clusters: epochs, promises, ranks, runs, marks. Pure.

One topic T in several clusters has one order of all its records, for each partition; each cluster's ``T-global`` is a
prefix of it. A *rank* is the number of records of the order before a place. The *home* of an *epoch* decides which
record comes next, in its hidden log; all others follow that log. ``docs/run/total-order.md`` has the protocol.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from appliance.kafka.protocol.metadata import NOWHERE, Partition
from appliance.link.model.position import CopyEnd

Members = tuple[str, ...]
"""The clusters that take part in an epoch, by their ids, sorted."""


class Epoch(NamedTuple):
    """An epoch of the order, and its home; epochs are compared in this order, and a number is used once by a home."""

    number: int
    home: str

    def __str__(self) -> str:
        return f"{self.number} of {self.home}" if self.number else "none"


NO_EPOCH = Epoch(0, "")


@dataclass(frozen=True, slots=True)
class Promise:
    """A cluster accepts nothing of epochs before this one, in a lane; ``since`` in milliseconds.

    ``named`` are the memberships of what it has accepted, and of each epoch that it has promised since: a new home
    needs enough promises of each. ``lost`` are the clusters that the operator has declared lost. ``cause`` tells people
    why the epoch began.
    """

    epoch: Epoch
    members: Members
    named: tuple[Members, ...]
    since: int
    lost: Members = ()
    cause: str = ""


class Origin(NamedTuple):
    """A partition of T in one cluster."""

    cluster: str
    number: int

    def of(self, topic: str) -> Partition:
        """Its name among the source partitions of all clusters: no topic's name has a colon."""
        return Partition(f"{self.cluster}:{topic}", self.number)


class Run(NamedTuple):
    """Records that are neighbours in the order and in their origin: the first offset there, and their number."""

    origin: Origin
    first: int
    length: int


class Place(NamedTuple):
    """The next offset to take of an origin's topic, and the leader epoch of what lies before it."""

    topic_id: UUID
    next_offset: int
    leader_epoch: int


Vector = Mapping[Origin, Place]
"""The places of all origins at a rank; an origin without one begins at its log's start."""


_UNKNOWN = "unknown"


class Digest(NamedTuple):
    """A digest of all runs before a rank: equal ranks with equal digests have the same records before them.

    It does not depend on how runs were split: the last one, which may grow, is not in ``settled`` yet. It is unknown
    after records that nobody has any more.
    """

    settled: str = ""
    cluster: str = ""
    number: int = 0
    first: int = 0
    next: int = 0

    @property
    def is_known(self) -> bool:
        """False after records that nobody has any more."""
        return self.settled != _UNKNOWN

    def after(self, runs: Iterable[Run]) -> "Digest":
        """The digest after these runs."""
        if not self.is_known:
            return self
        settled, cluster, number, first, following = self
        for run in runs:
            if run.origin == (cluster, number) and run.first == following:
                following += run.length
                continue
            if following > first:
                text = f"{settled} {cluster} {number} {first} {following}"
                settled = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
            (cluster, number), first, following = run.origin, run.first, run.first + run.length
        return Digest(settled, cluster, number, first, following)


UNKNOWN_DIGEST = Digest(_UNKNOWN)


@dataclass(frozen=True, slots=True)
class SequenceMark:
    """The end of a transaction in a hidden log: the runs of its records, from rank ``start`` on.

    ``before`` is the digest at that rank; ``vector`` has the places after the runs; without runs it has moved past
    offsets that hold no records, or by the operator's word. ``opens``: it is the first mark of
    its epoch, whose home has taken over the order up to this mark's rank.
    """

    epoch: Epoch
    start: int
    runs: tuple[Run, ...]
    vector: Vector
    before: Digest
    opens: bool = False

    @property
    def rank(self) -> int:
        """The rank after its records."""
        return self.start + sum(run.length for run in self.runs)

    @property
    def digest(self) -> Digest:
        """The digest after its records."""
        return self.before.after(self.runs)

    def brings_on(self, rank: int) -> bool:
        """True if whoever shows this rank gets something from it: records, or only further places."""
        return self.rank > rank or (self.rank == rank == self.start and not self.opens)

    def digest_at(self, rank: int) -> Digest:
        """The digest at a rank from ``start`` to its end."""
        return self.before.after(first_runs(self.runs, rank - self.start))


@dataclass(frozen=True, slots=True)
class HiddenLog:
    """The hidden log of a home, as far as it belongs to an epoch of its own.

    It begins at offset ``first``, whose rank is ``first_rank``; the home has taken over what lies before rank
    ``opened``. ``rank`` and ``digest`` are those of its end, ``vector`` has the next places; ``ahead`` is the number of
    its bytes past the home's T-global.
    """

    epoch: Epoch
    first: int
    first_rank: int
    opened: int
    rank: int
    digest: Digest
    vector: Vector
    ahead: int = 0
    end: CopyEnd | None = None


@dataclass(frozen=True, slots=True)
class OrderRecord:
    """A cluster's part in the order of one partition of T, as its lane has committed it.

    ``accepted`` is the epoch whose order it has accepted last; ``rank``, ``digest`` and ``end`` are those of its
    T-global, whose topic is ``global_id``. What it lacks by the operator's word lies before offset ``first``, which has
    rank ``first_rank``. ``following`` is the offset of the accepted home's hidden log where T-global
    goes on, -1 if unknown. ``hidden`` is its own hidden log, if it is or was home. A home that went on ``alone`` in an
    epoch shows what nobody else has, until another one has acknowledged that, in whatever epoch. While it is
    ``stopped`` for a reason, its logs are not what it has accepted, and it does not vote. One that was rebuilt ``owes``
    a rank: it stays stopped below that in the epoch that it has accepted.
    """

    accepted: Epoch = NO_EPOCH
    rank: int = 0
    digest: Digest = field(default_factory=Digest)
    end: CopyEnd | None = None
    following: int = -1
    hidden: HiddenLog | None = None
    alone: Epoch = NO_EPOCH
    global_id: UUID = NOWHERE
    hidden_id: UUID = NOWHERE
    stopped: str = ""
    owes: int = 0
    first: int = 0
    first_rank: int = 0

    def is_final(self, epoch: Epoch) -> bool:
        """True if what its T-global shows is in the order for ever, for whoever has promised this epoch.

        A home that was alone in an older one may have shown what the operator has declared lost.
        """
        return not self.stopped and (not self.is_alone or self.accepted == epoch)

    @property
    def is_alone(self) -> bool:
        """True while it may show what no other cluster has."""
        return self.alone != NO_EPOCH

    @property
    def hidden_end(self) -> CopyEnd | None:
        """The end of its hidden log, whichever epoch that was of."""
        return self.hidden.end if self.hidden else None

    def length(self, cluster: str) -> int:
        """The rank of what this cluster answers for: its hidden log, if it was home of what it accepted last."""
        hidden = self.hidden_tail(cluster)
        return self.rank if hidden is None else hidden.rank

    def hidden_tail(self, cluster: str) -> HiddenLog | None:
        """Its hidden log, if it is a part of what it has accepted."""
        hidden = self.hidden
        return hidden if hidden is not None and hidden.epoch == self.accepted and hidden.epoch.home == cluster else None


def first_runs(runs: Iterable[Run], records: int) -> tuple[Run, ...]:
    """The runs of the first ``records``."""
    first: list[Run] = []
    for run in runs:
        if records <= 0:
            break
        first.append(run._replace(length=min(run.length, records)))
        records -= run.length
    return tuple(first)


def without_first(runs: Iterable[Run], records: int) -> tuple[Run, ...]:
    """The runs without their first ``records``."""
    rest: list[Run] = []
    for run in runs:
        cut = min(run.length, records)
        records -= cut
        if cut < run.length:
            rest.append(run._replace(first=run.first + cut, length=run.length - cut))
    return tuple(rest)


def merged(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The same runs, with neighbours as one."""
    joined: list[Run] = []
    for run in runs:
        if joined and joined[-1].origin == run.origin and joined[-1].first + joined[-1].length == run.first:
            joined[-1] = joined[-1]._replace(length=joined[-1].length + run.length)
        else:
            joined.append(run)
    return tuple(joined)
