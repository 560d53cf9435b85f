"""One partition of T in one cluster: what its lane writes next, by what has been read and promised.

At home, records of all origins are taken into the hidden log, and shown once another cluster has them. Elsewhere the
home's hidden log is followed into T-global.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from appliance.clock import loop_seconds
from appliance.engine.problem_log import ProblemLog
from appliance.engine.read.source_reader import SourceReader
from appliance.errors import ApplianceError, PartitionStopped, RanksDeleted
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import UNLIMITED
from appliance.link.model.order import (
    NO_EPOCH,
    Epoch,
    HiddenLog,
    OrderRecord,
    Promise,
    SequenceMark,
    merged,
    without_first,
)
from appliance.link.model.replicas import Replica
from appliance.order.arrivals import Arrivals
from appliance.order.hidden_log import HiddenReading, HiddenTransaction
from appliance.order.lane import OrderLane
from appliance.order.learning import Learning
from appliance.order.model.changes import Change, Shown, Taken, places_of, show
from appliance.order.model.elections import Facts, acknowledged, best, is_elected, voters
from appliance.order.model.gate import Gate
from appliance.order.model.rebuilding import AFTER_A_GAP, REBUILD, REBUILDING
from appliance.order.peers import Peer

WINDOW = 64 * 1024 * 1024
"""Bytes that a hidden log may be ahead of what is shown at home."""


@dataclass(eq=False)
class OrderedPartition:
    """A partition of T, as the lane of the cluster ``own`` writes it; ``replicas`` are its origins.

    ``failure`` is the reason that its logs must not be written.
    """

    key: Partition
    own: str
    lane: OrderLane
    peers: Mapping[str, Peer]
    readers: Mapping[str, SourceReader]
    problems: ProblemLog
    wake: asyncio.Event
    commit_bytes: int
    single: bool = False
    """True if it has the records of all partitions of T."""
    records_gaps: bool = False
    """True if an origin that has lost records before they were taken goes on after them, and the gap is recorded."""
    replicas: tuple[Replica, ...] = ()
    hidden_logs: Mapping[str, Replica] = field(default_factory=dict)
    """The hidden log of each cluster that has one, as what is read."""
    limit: int = UNLIMITED
    failure: ApplianceError | None = None
    pauses: bool = False
    """True while the home takes nothing: it yields to another one."""
    gate: Gate = field(init=False, default_factory=Gate)
    learning: Learning = field(init=False)
    arrivals: Arrivals = field(init=False)
    hidden: HiddenReading = field(init=False)

    def __post_init__(self) -> None:
        self.learning = Learning(self.key, self.peers)
        self.arrivals = Arrivals(self.key, self.readers, self.problems, self.wake, self.records_gaps)
        self.hidden = HiddenReading(self.readers, self.wake, self.commit_bytes, self.own, self.problems)

    def restart(self) -> None:
        """Read nothing until the lane has started again."""
        self.arrivals.restart()
        self.hidden.stop()
        self.learning.learned = None
        self.gate.restart()

    @property
    def record(self) -> OrderRecord:
        """The cluster's part in the order."""
        return self.lane.record(self.key)

    def facts(self) -> dict[str, Facts]:
        """The facts of all clusters, as they are known."""
        return {self.own: Facts(self.lane.promise, self.record)} | {
            name: peer.facts(self.key) for name, peer in self.peers.items()
        }

    def next_change(self) -> Change | None:
        """The lane's next change here; None if there is nothing to write."""
        promise, learning = self.lane.promise, self.learning
        first = learning.first_left(promise, self.record) if promise is not None else None
        if isinstance(self.failure, RanksDeleted) and first is None:
            self._go_on()  # it may become home without those who had more
        reason = str(self.failure or "") or (REBUILDING if self._is_behind else "")
        if reason != self.record.stopped:
            return Change(self.key, replace(self.record, stopped=reason))
        if promise is None or self.failure is not None:
            return None
        if learning.skips(self.record) and first is not None:
            return learning.go_on_at(first, self.record, self.lane.checkpoint.positions)
        try:
            if promise.epoch.home != self.own:
                self.arrivals.restart()  # it may be home much later, when nothing is left to resume
                return self._follow(promise)
            if self.record.accepted == promise.epoch:
                return self._take_and_show(promise)
            self.arrivals.stop()
            return learning.change(promise, self.record) or self._open(promise)
        except PartitionStopped as error:
            self.stop(error)
            return None

    @property
    def _is_behind(self) -> bool:
        """True while it has no vote, since it begins again, or goes on after records that nobody has any more."""
        return self.record.rank < self.record.owes or not self.record.digest.is_known

    def skip(self) -> None:
        """Go on at the first records that another cluster has, by the operator's word."""
        if isinstance(self.failure, RanksDeleted):
            self.learning.skips_at = self.record.rank
            self._go_on()

    def _go_on(self) -> None:
        self.failure = None
        self.problems.over(str(self.key))

    def stop(self, reason: PartitionStopped) -> None:
        """Write it no further until the lane starts again."""
        self.restart()
        self.failure = reason
        self.problems.tell(str(self.key), reason)

    def source_to_learn_from(self) -> Peer | None:
        """Another cluster whose T-global has more, if nothing else brings it."""
        promise, record = self.lane.promise, self.record
        if promise is None or self.failure is not None or self.learning.learned is not None:
            return None
        home = self.peers.get(promise.epoch.home)
        if home is None and record.accepted == promise.epoch:
            return None
        if home is not None and self.hidden.is_read and home.failure is None and not self.hidden.lacks:
            return None
        if (first := self.learning.first_left(promise, record)) is None:
            return self.learning.source(promise, record)
        if not self.learning.skips(record):
            text = f"{self.key}: ranks {record.rank} to {first.rank - 1} are deleted in all other clusters"
            self.stop(RanksDeleted(f"{text}: {AFTER_A_GAP}"))
        return None

    def _open(self, promise: Promise) -> Change | None:
        """Open the epoch, once enough clusters have promised it: take over what the best of them has accepted."""
        facts, record = self.facts(), self.record
        if not is_elected(promise, facts):
            return None
        records = voters(promise, facts)
        winner = best(records)
        theirs = records[winner]
        opened = theirs.length(winner)
        if record.rank > opened:
            raise PartitionStopped(diverged(self.key, record.rank, opened))
        hidden, tail = theirs.hidden_tail(winner), list[HiddenTransaction]()
        visible = [each for each in self.learning.ahead(promise, record) if each.id not in self.learning.avoided]
        if record.rank < opened and (hidden is None or visible):
            return None  # the catch-up brings it
        if hidden is not None and opened > record.rank:
            self.hidden.read(self.hidden_logs.get(winner), hidden.epoch, theirs.following)
            self.hidden.tail += (arrived := self.hidden.transactions(record.rank, UNLIMITED))
            if not self.hidden.tail or self.hidden.tail[-1].mark.rank < opened:
                if arrived:  # there may be more
                    self.wake.set()
                return None
            tail = [each for each in self.hidden.tail if each.mark.rank > record.rank]  # a catch-up may have shown some
        elif (hidden.digest if hidden else theirs.digest) != record.digest:
            raise PartitionStopped(diverged(self.key, record.rank, opened))
        self.hidden.stop()
        shown, rank = [], record.rank
        for each in tail:
            shown.append(self._shown(each, rank, record.digest if rank == record.rank else None))
            rank = each.mark.rank
        runs = merged(run for each in shown for run in each.runs)
        known = places_of(self.key, self.lane.checkpoint.positions, single=self.single)
        vector = hidden.vector if hidden is not None else known
        mark = SequenceMark(promise.epoch, record.rank, runs, vector, record.digest, opens=True)
        taken = Taken([batch for each in shown for batch in each.batches], mark)
        log = HiddenLog(promise.epoch, -1, record.rank, opened, opened, mark.digest, vector, taken.bytes)
        opened_record = replace(record, accepted=promise.epoch, following=-1, owes=0)
        return Change(self.key, replace(opened_record, hidden=log), taken=[taken])

    def _take_and_show(self, promise: Promise) -> Change | None:
        """Take what has arrived from the origins, and show what another cluster has."""
        record, hidden = self.record, self.record.hidden
        assert hidden is not None
        self.hidden.read(self.hidden_logs.get(self.own), promise.epoch, record.following)
        if (resumed := self.arrivals.resumed(hidden.vector)) is not None:
            vector, gaps = resumed
            moved = Taken((), SequenceMark(promise.epoch, hidden.rank, (), vector, hidden.digest))
            return Change(self.key, replace(record, hidden=replace(hidden, vector=vector)), (), [moved], gaps)
        rank = acknowledged(promise, self.own, self.facts())
        record, bound = self.gate.bound(record, hidden, rank, loop_seconds())
        shown = []
        for each in self.hidden.transactions(record.rank, bound):
            if each.mark.brings_on(record.rank):
                shown.append(self._shown(each, record.rank, record.digest))
                record = replace(show(record, shown[-1]), following=each.next_offset)
                hidden = replace(hidden, ahead=max(hidden.ahead - each.bytes, 0))
        taken = self._take(promise.epoch, hidden) if hidden.ahead < WINDOW and not self.pauses else None
        if taken is not None:
            mark, ahead = taken.mark, hidden.ahead + taken.bytes
            hidden = replace(hidden, rank=mark.rank, digest=mark.digest, vector=mark.vector, ahead=ahead)
        if not shown and taken is None and record == self.record:
            return None
        return Change(self.key, replace(record, hidden=hidden), shown, [taken] if taken else ())

    def has_handed_over(self, promise: Promise, target: str) -> bool:
        """True if all that was taken is shown, here and in the cluster that is to be home."""
        record, peer = self.record, self.peers.get(target)
        theirs = peer.facts(self.key) if peer else Facts(None, OrderRecord())
        taken = record.hidden.rank if record.hidden and record.accepted == promise.epoch else -1
        return record.rank == taken == theirs.record.rank and theirs.record.accepted == promise.epoch

    def _take(self, epoch: Epoch, hidden: HiddenLog) -> Taken | None:
        """The records of the origins that have arrived, in this order."""
        arrived = self.arrivals.take(hidden.vector, self.replicas, self.limit, self.commit_bytes)
        if arrived is None:
            return None
        batches, runs, vector = arrived
        return Taken(batches, SequenceMark(epoch, hidden.rank, runs, vector, hidden.digest))

    def _follow(self, promise: Promise) -> Change | None:
        """Show what the home's hidden log has; the first time in an epoch at least all that it has taken over."""
        record, home = self.record, self.peers.get(promise.epoch.home)
        theirs = home.facts(self.key) if home else Facts(None, OrderRecord())
        hidden = theirs.record.hidden_tail(promise.epoch.home)
        if (
            home is None
            or self.own not in promise.members
            or not record.digest.is_known
            or theirs.promise is None
            or theirs.promise.epoch != promise.epoch
            or hidden is None
            or hidden.epoch != promise.epoch
            or (record.accepted != promise.epoch and record.rank < hidden.first_rank)
        ):
            self.hidden.stop()
            return self.learning.change(promise, record)
        has_accepted = record.accepted == promise.epoch
        start = record.following if has_accepted else hidden.first
        self.hidden.read(self.hidden_logs.get(home.id), promise.epoch, start)
        shown, size = [], 0
        while size < self.commit_bytes and (each := self.hidden.next(record.rank)) is not None:
            mark, has_accepted = each.mark, record.accepted == promise.epoch
            if not mark.brings_on(record.rank) if has_accepted else mark.rank < max(record.rank, hidden.opened):
                continue
            shown.append(self._shown(each, record.rank, record.digest))
            owes = record.owes if has_accepted else 0
            following = replace(record, accepted=promise.epoch, following=each.next_offset, alone=NO_EPOCH, owes=owes)
            record = show(following, shown[-1])
            size += each.bytes
        return Change(self.key, record, shown) if shown else self.learning.change(promise, record)

    def _shown(self, each: HiddenTransaction, rank: int, digest: object) -> Shown:
        """The records of a transaction from a rank on; ``digest`` is that of the order before, unless it is known."""
        mark = each.mark
        if mark.start > rank or (digest is not None and mark.digest_at(rank) != digest):
            raise PartitionStopped(diverged(self.key, rank, mark.start))
        skip = rank - mark.start
        return Shown(each.outgoing(skip, self.limit), without_first(mark.runs, skip), mark.vector)


def diverged(key: Partition, rank: int, other: int) -> str:
    """The reason to stop where T-global is no prefix of the order."""
    return f"{key}: T-global has {rank} records, and not as the others order them (they have {other}): {REBUILD}"
