"""The commits of an order's lanes, each checked before its markers are written: S, and A, B and D of the engine.

- **A** One transaction has the records, the positions of their origins, and the cluster's part in the order.
- **B** A lane writes what belongs to the epoch that it has promised, as its home or as a follower.
- **D** Promises, accepted epochs and ranks never go back, and no place passes over a record.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import unpack
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.naming import Naming
from appliance.link.model.order import Digest, Epoch, OrderRecord, Origin, Promise, Run, SequenceMark, merged
from appliance.link.model.order_records import decode_sequence_mark
from appliance.order.names import hidden_topic
from tests.simulation.brokers import Brokers
from tests.simulation.coordinator import Transaction
from tests.simulation.invariants import Violation
from tests.simulation.log import Entry, Log, Record, batch_of, placed
from tests.simulation.order_truth import OrderTruth


@dataclass(slots=True)
class Ranks:
    """Records in the order from rank 0 on, of a T-global or of a home; ``opened`` is the rank that a home took over."""

    records: list[Record] = field(default_factory=list)
    digest: Digest = field(default_factory=Digest)
    lasts: dict[Origin, int] = field(default_factory=dict)
    """The newest offset of each origin."""
    counts: dict[Origin, int] = field(default_factory=dict)
    opened: int = 0

    def copy(self) -> "Ranks":
        """Another one that goes on by itself."""
        return Ranks([*self.records], self.digest, {**self.lasts}, {**self.counts})

    def add(self, records: Sequence[Record], truth: OrderTruth) -> tuple[Run, ...]:
        """More records; the runs that they are."""
        runs = merged(_run(record, truth) for record in records)
        self.records += records
        self.digest = self.digest.after(runs)
        for run in runs:
            self.lasts[run.origin] = run.first + run.length - 1
            self.counts[run.origin] = self.counts.get(run.origin, 0) + run.length
        return runs


class OrderWatch:
    """Watches the lanes of all clusters."""

    def __init__(self, naming: Naming, brokers: Mapping[str, Brokers], truths: Mapping[Partition, OrderTruth]) -> None:
        self.damaged: set[tuple[str, str]] = set()
        """The topics, by cluster, whose logs are not what was written to them any more."""
        self.deleted: set[tuple[str, str]] = set()
        """Those whose T-global somebody has deleted: of these the hidden logs alone are looked at."""
        self.promises: dict[tuple[str, int], Promise] = {}
        self.marks: dict[Partition, SequenceMark] = {}
        """The newest mark of each partition of T."""
        self.skips: set[str] = set()
        """The clusters that may go on after records that nobody has any more, by the operator's word."""
        self.checks = True
        """False: it only knows what is promised, for what an engine made wrong does in sight."""
        self._naming, self._brokers, self._truths = naming, brokers, truths
        self._parts: dict[tuple[str, Partition], OrderRecord] = {}
        self._shown: dict[tuple[str, Partition], Ranks] = {}
        self._epochs: dict[tuple[Partition, Epoch], Ranks] = {}
        self._accepted: dict[tuple[Partition, Epoch], int] = {}
        """The rank that a follower has accepted of an epoch, while it had promised nothing newer."""
        self._born: dict[Partition, list[Epoch]] = {}
        """The oldest epoch that a cluster had promised when it showed a rank."""
        self._oldest: dict[Partition, list[tuple[Epoch, Record]]] = {}
        """The oldest epoch by which each rank was shown."""

    def committed(self, cluster: str, transaction: Transaction) -> None:
        """A transaction commits in a cluster."""
        remembered, data = LaneCheckpoint(), dict[Partition, tuple[Log, list[Entry]]]()
        lane = -1
        for (topic, number), log in transaction.partitions.items():
            pending = log.pending(transaction.producer)
            if topic == self._naming.positions_topic:
                lane = number
                for written in (each for entry in pending for each in unpack(batch_of(entry), 0)):
                    remembered.add(decode(written))
            elif topic != self._naming.offsets_topic and ".aside-" not in topic and pending:
                data[Partition(topic, number)] = log, pending
        if data and transaction.id != self._naming.transactional_id(lane):
            raise Violation(f"B: {transaction.id} writes to {[*data]} of {cluster}")
        promise = self._promised(cluster, lane, remembered.promise)
        if not self.checks:
            return
        for key, record in remembered.orders.items():
            logs = (Partition(self._naming.destination(key.topic), key.number), hidden_log(key))
            shown, hidden = (data.pop(log)[1] if log in data else [] for log in logs)
            if (cluster, key.topic) not in self.damaged:
                self._changed(cluster, key, record, promise, shown, hidden, remembered)
            self._parts[cluster, key] = record
            if promise is not None and promise.epoch == record.accepted and record.accepted.home != cluster:
                accepted = key, record.accepted
                self._accepted[accepted] = max(record.rank, self._accepted.get(accepted, 0))
        if data:
            raise Violation(f"A: {cluster} writes to {[*data]}, and not what part of the order that is")

    def begin_again(self, cluster: str, topic: str) -> None:
        """A cluster's T-globals of a topic are rebuilt, and are watched again."""
        self.damaged.discard((cluster, topic))
        for key in [key for name, key in self._shown if (name, key.topic) == (cluster, topic)]:
            del self._shown[cluster, key]

    def end(self, cluster: str, key: Partition) -> int:
        """The end of a T-global as it is remembered."""
        end = self._parts.get((cluster, key), OrderRecord()).end
        return end.offset if end else 0

    def _promised(self, cluster: str, lane: int, newer: Promise | None) -> Promise | None:
        before = self.promises.get((cluster, lane))
        if newer is None:
            return before
        if before is not None and newer.epoch < before.epoch:
            raise Violation(f"D: lane {lane} of {cluster} promises {newer.epoch} after {before.epoch}")
        if newer.epoch.home not in newer.members:
            raise Violation(f"B: lane {lane} of {cluster} promises {newer.epoch}, which is none of {newer.members}")
        self.promises[cluster, lane] = newer
        return newer

    def _changed(
        self,
        cluster: str,
        key: Partition,
        record: OrderRecord,
        promise: Promise | None,
        shown: Sequence[Entry],
        hidden: Sequence[Entry],
        remembered: LaneCheckpoint,
    ) -> None:
        before, what = self._parts.get((cluster, key), OrderRecord()), f"{cluster}: {key}"
        if promise is not None and (cluster, key.topic) in self.deleted:
            self._shown.setdefault((cluster, key), Ranks()).add(_records(shown), self._truths[key])
            if hidden:
                self._taken(cluster, key, record, promise, hidden)
            return
        if promise is None or record.accepted < before.accepted or record.accepted > promise.epoch:
            raise Violation(f"D: {what} accepts {record.accepted} after {before.accepted}, promised is {promise}")
        if record.accepted != before.accepted and record.accepted != promise.epoch:
            raise Violation(f"B: {what} accepts {record.accepted}, and has promised {promise.epoch}")
        newer = self._epochs.get((key, record.accepted))
        if record.accepted != before.accepted and newer is not None and record.rank < newer.opened:
            raise Violation(f"S: {what} accepts {record.accepted} at rank {record.rank} of {newer.opened}")
        own = self._shown.setdefault((cluster, key), Ranks())
        records = _records(shown)
        if cluster in self.skips and not records and record.rank > len(own.records):
            self._skipped(cluster, key, own, record.rank)
        if records:
            self._is_shown(cluster, key, record, before, own.records, records, promise)
        runs = own.add(records, self._truths[key])
        digest = own.digest if record.digest.is_known else record.digest
        if (record.rank, record.digest) != (len(own.records), digest):
            raise Violation(f"A: {what} is at rank {record.rank} by its record, and shows {len(own.records)} records")
        if shown and (record.end is None or record.end.offset != shown[-1].last + 2):
            raise Violation(f"A: {what} ends at {shown[-1].last + 2}, and by its record at {record.end}")
        for origin in {run.origin for run in runs}:
            position = remembered.positions.get(origin.of(key.topic))
            if position is None or position.records != own.counts[origin]:
                raise Violation(f"A: {what} shows {own.counts[origin]} records of {origin}, by its position {position}")
            self._is_next(f"D: the position of {what}", key, origin, own, position.next_offset)
        if hidden:
            self._taken(cluster, key, record, promise, hidden)
        elif record.hidden and before.hidden and record.hidden.rank != before.hidden.rank:
            raise Violation(f"A: the hidden log of {what} gets nothing, and goes on to rank {record.hidden.rank}")

    def _skipped(self, cluster: str, key: Partition, own: Ranks, rank: int) -> None:
        """A T-global goes on at a rank, and will never have those before."""
        counts, truth = {**own.counts}, self._truths[key]
        own.add(truth.order[len(own.records) : rank], truth)
        own.counts = counts
        log = self._brokers[cluster].log(Partition(self._naming.destination(key.topic), key.number))
        assert log is not None
        truth.ranks[log] = rank

    def _is_shown(
        self,
        cluster: str,
        key: Partition,
        record: OrderRecord,
        before: OrderRecord,
        earlier: Sequence[Record],
        records: Sequence[Record],
        promise: Promise,
    ) -> None:
        """S: an older epoch shows nothing past what a newer one has taken over; what was learned is visible elsewhere.

        A transaction that follows a hidden log moves its place there.
        """
        rank, what = len(earlier), f"{cluster}: {key}"
        end, born = rank + len(records), self._born.setdefault(key, [])
        if (record.accepted, record.following) == (before.accepted, before.following):
            if end > len(self._truths[key].order):
                raise Violation(f"S: {what} learns up to rank {end} what nobody shows")
            if (newest := max(born[rank:end])) > promise.epoch:
                raise Violation(
                    f"S: {what} learns up to rank {end} what was shown by {newest}, before it promises that"
                )
        born += [promise.epoch] * (end - len(born))
        born[rank:end] = [min(each, promise.epoch) for each in born[rank:end]]
        if (record.accepted, record.following) == (before.accepted, before.following):
            return
        by = record.accepted
        if by != promise.epoch:
            raise Violation(f"B: {what} shows records by epoch {by}, and has promised {promise.epoch}")
        if by.home == cluster and record.alone != by and rank + len(records) > self._accepted.get((key, by), 0):
            raise Violation(f"S: {what} shows up to rank {rank + len(records)} what nobody else has of epoch {by}")
        of_home = self._epochs[key, by].records
        if (by.home, key.topic) not in self.damaged and of_home[rank : rank + len(records)] != records:
            raise Violation(f"P: {what} shows from rank {rank} on what its home has not taken")
        for (other, epoch), newer in self._epochs.items():
            if other == key and epoch > by:
                taken_over = newer.records[: newer.opened]
                if taken_over[rank : rank + len(records)] != records:
                    text = f"{what} shows ranks {rank} to {rank + len(records)} by epoch {by}"
                    raise Violation(f"S: {text}, and epoch {epoch} has taken over {newer.opened}, or others")
        oldest = self._oldest.setdefault(key, [])
        for at, each in enumerate(records, rank):
            if at == len(oldest):
                oldest.append((by, each))
            elif at < len(oldest):
                oldest[at] = min(oldest[at], (by, each))

    def _taken(
        self, cluster: str, key: Partition, record: OrderRecord, promise: Promise, hidden: Sequence[Entry]
    ) -> None:
        """A home takes records, or takes over the order as it opens an epoch."""
        *data, last = hidden
        mark, log, what = _mark(last), record.hidden, f"the hidden log of {cluster}: {key}"
        if not mark.epoch == promise.epoch == record.accepted or mark.epoch.home != cluster:
            raise Violation(f"B: {what} gets records of epoch {mark.epoch}; promised is {promise.epoch}")
        if mark.opens:
            if (key, mark.epoch) in self._epochs:
                raise Violation(f"D: {what} opens {mark.epoch} again")
            self._epochs[key, mark.epoch] = self._shown[cluster, key].copy()
        sequence = self._epochs.get((key, mark.epoch))
        if sequence is None or (mark.start, mark.before) != (len(sequence.records), sequence.digest):
            raise Violation(f"D: {what} goes on from rank {mark.start} on, and is not there")
        runs = sequence.add(_records(data), self._truths[key])
        if runs != mark.runs:
            raise Violation(f"A: {what} gets {runs}, and its mark says {mark.runs}")
        if log is None or (log.rank, log.digest, log.vector) != (mark.rank, sequence.digest, mark.vector):
            raise Violation(f"A: {what} ends at rank {mark.rank}, and by the record otherwise: {log}")
        if log.end is None or log.end.offset != last.last + 2:
            raise Violation(f"A: {what} ends at {last.last + 2}, and by the record at {log.end}")
        for origin in {*sequence.lasts, *mark.vector}:
            place = mark.vector.get(origin)
            self._is_next(f"D: {what}", key, origin, sequence, place.next_offset if place else 0)
        if mark.opens:
            sequence.opened = mark.rank
            self._is_opened(what, key, mark, sequence)
        self.marks[key] = mark

    def forget(self, cluster: str, key: Partition, rank: int) -> None:
        """A cluster is declared lost, with what it alone has shown, from this rank on."""
        self._oldest[key] = self._oldest.get(key, [])[:rank]
        self._born[key] = self._born.get(key, [])[:rank]
        self.damaged.add((cluster, key.topic))

    def _is_opened(self, what: str, key: Partition, mark: SequenceMark, sequence: Ranks) -> None:
        """S: what older epochs have shown lies within what this one takes over."""
        for rank, (epoch, record) in enumerate(self._oldest.get(key, [])):
            if epoch < mark.epoch and (rank >= sequence.opened or sequence.records[rank] != record):
                text = f"opens {mark.epoch} up to rank {sequence.opened}"
                raise Violation(f"S: {what} {text}, and rank {rank} was shown by {epoch}")

    def _is_next(self, what: str, key: Partition, origin: Origin, sequence: Ranks, offset: int) -> None:
        """Check that nothing lies between the newest record of an origin in a sequence, and its next place."""
        truth, last = self._truths[key], sequence.lasts.get(origin, -1)
        if not truth.is_plain(origin):
            return
        if offset <= last:
            raise Violation(f"{what} goes on at offset {offset} of {origin}, and has {last}")
        (log,) = truth.origins[origin]
        for entry in log.entries[log.index(last + 1) :]:
            if last < entry.last < offset and not entry.marker and entry.outcome is not False:
                raise Violation(f"{what} goes on at offset {offset} of {origin}, and lacks {entry.base}")


def hidden_log(key: Partition) -> Partition:
    """The hidden log of a partition of T."""
    return Partition(hidden_topic(key.topic), key.number)


def _records(entries: Iterable[Entry]) -> list[Record]:
    return [record for entry in entries for _, record in placed(entry)]


def _run(record: Record, truth: OrderTruth) -> Run:
    source = truth.sources.get(record)
    if source is None:
        raise Violation(f"Q: {truth.name} gets {record}, which is of no origin")
    return Run(source.origin, source.offset, 1)


def _mark(entry: Entry) -> SequenceMark:
    return decode_sequence_mark(unpack(batch_of(entry), 0)[-1])
