"""The order's engine made wrong, each time in one way, at the place where the rule stands."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from appliance.errors import PeerError
from appliance.kafka.client.fetch import FetchedPartition, FetchExchange, WantedPartition
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.batch import CONTROL, NO_END, Batch
from appliance.kafka.records.legacy import convert
from appliance.kafka.records.records import Record, unpack
from appliance.link.model.naming import HIDDEN
from appliance.link.model.order import NO_EPOCH, Epoch, Members, OrderRecord, Promise
from appliance.link.model.order_records import decode_sequence_mark
from appliance.order import hidden_log, partition
from appliance.order.ballot import Ballot
from appliance.order.hidden_log import HiddenBuffer
from appliance.order.lane import OrderLane
from appliance.order.learning import Learning
from appliance.order.model import elections
from appliance.order.model.changes import Change, Taken, places_of
from appliance.order.model.elections import Facts
from appliance.order.partition import OrderedPartition
from appliance.order.peers import Peer
from tests.simulation import fetching

_ENDLESS = 2**62
_LOOKS = 50
"""So many times a home that is late looks at a newer promise before it gives it."""


def voters_read_before_they_promise(patch: pytest.MonkeyPatch) -> None:
    """The part that a cluster has accepted is read when its promise is asked for, not once it has promised."""
    read = OrderedPartition.facts
    told: dict[tuple[int, Epoch, str], OrderRecord] = {}

    def facts(self: OrderedPartition) -> dict[str, Facts]:
        known, own = read(self), self.lane.promise
        if own is None or own.epoch.home != self.own or self.record.accepted == own.epoch:
            return known
        return {
            name: each
            if name == self.own
            else Facts(each.promise, told.setdefault((id(self), own.epoch, name), each.record))
            for name, each in known.items()
        }

    patch.setattr(OrderedPartition, "facts", facts)


def gate_without_epoch(patch: pytest.MonkeyPatch) -> None:
    """The home shows what another cluster shows, by whatever epoch that has it.

    A lane promises what it meets before it does anything else, and sees promise and rank at once: so it promises late.
    """
    _promise_late(patch)

    def acknowledged(_: Promise, cluster: str, facts: Mapping[str, Facts]) -> int:
        return max((each.record.rank for name, each in facts.items() if name != cluster), default=0)

    patch.setattr(partition, "acknowledged", acknowledged)


def vector_of_an_older_rank(patch: pytest.MonkeyPatch) -> None:
    """A new home takes the origins from the places of its T-global, whatever it takes over beyond that."""
    begin = OrderedPartition._open

    def open_at_own_places(self: OrderedPartition, promise: Promise) -> Change | None:
        change = begin(self, promise)
        if change is None or not change.taken or change.record.hidden is None:
            return change
        vector = places_of(self.key, self.lane.checkpoint.positions, single=self.single)
        taken = [Taken(each.batches, replace(each.mark, vector=vector)) for each in change.taken]
        record = replace(change.record, hidden=replace(change.record.hidden, vector=vector))
        return replace(change, record=record, taken=taken)

    patch.setattr(OrderedPartition, "_open", open_at_own_places)


def epoch_accepted_without_what_it_took_over(patch: pytest.MonkeyPatch) -> None:
    """A follower accepts an epoch before it has what that took over."""
    follow = OrderedPartition._follow

    def accept_first(self: OrderedPartition, promise: Promise) -> Change | None:
        home = self.peers.get(promise.epoch.home)
        theirs = home.facts(self.key) if home else Facts(None, OrderRecord())
        hidden = theirs.record.hidden_tail(promise.epoch.home)
        if hidden is None or hidden.epoch != promise.epoch or self.record.accepted == promise.epoch:
            return follow(self, promise)
        if self.record.rank < hidden.first_rank:
            return follow(self, promise)
        return Change(self.key, replace(self.record, accepted=promise.epoch, following=hidden.first))

    patch.setattr(OrderedPartition, "_follow", accept_first)


def home_without_a_gate(patch: pytest.MonkeyPatch) -> None:
    """The home shows what it has taken, before anybody else has it."""
    patch.setattr(partition, "acknowledged", lambda *_: _ENDLESS)


def home_not_fenced_by_its_promise(patch: pytest.MonkeyPatch) -> None:
    """A home goes on to take records when it has promised another epoch, until that is open."""
    decide = OrderedPartition.next_change

    def go_on_as_home(self: OrderedPartition) -> Change | None:
        own, record = self.lane.promise, self.record
        if own is None or self.failure is not None or record.hidden_tail(self.own) is None:
            return decide(self)
        newer = self.peers.get(own.epoch.home)
        is_open = newer is not None and newer.record(self.key).accepted >= own.epoch
        if record.accepted == own.epoch or is_open or own.epoch.home == self.own:
            return decide(self)
        return self._take_and_show(replace(own, epoch=record.accepted, members=()))

    patch.setattr(OrderedPartition, "next_change", go_on_as_home)


def follower_that_does_not_wait_for_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Hidden logs are read up to their end, and a mark is the end of a transaction, decided or not."""
    read = fetching.Fetching._read

    def read_all(
        self: fetching.Fetching, wanted: WantedPartition, node: int, size: int, exchange: FetchExchange
    ) -> FetchedPartition:
        if wanted.partition.topic.endswith(HIDDEN):
            exchange = replace(exchange, limits=replace(exchange.limits, committed=False))
        fetched = read(self, wanted, node, size, exchange)
        return fetched if exchange.limits.committed else replace(fetched, stable_end=NO_END)

    def absorb(self: HiddenBuffer, fetched: FetchedPartition) -> int:
        size = 0
        for batch in fetched.batches(convert):
            if batch.header.last_offset < self.position:
                continue
            self.position, self.epoch = batch.header.last_offset + 1, batch.header.leader_epoch
            if not batch.header.attributes & CONTROL:
                self._pending.append(batch)
                if _is_mark(batch):
                    size += self._end(batch)
        return size

    patch.setattr(hidden_log, "marker", lambda _: None)
    patch.setattr(fetching.Fetching, "_read", read_all)
    patch.setattr(HiddenBuffer, "absorb", absorb)


def hidden_log_not_read(patch: pytest.MonkeyPatch) -> None:
    """Of a former home its T-global alone counts."""
    ask = elections.voters

    def voters(own: Promise, facts: Mapping[str, Facts]) -> dict[str, OrderRecord]:
        return {name: replace(each, hidden=None) for name, each in ask(own, facts).items()}

    patch.setattr(partition, "voters", voters)


def longest_log_wins(patch: pytest.MonkeyPatch) -> None:
    """A new home takes over the longest log, of whatever epoch."""

    def longest(records: Mapping[str, OrderRecord]) -> str:
        return max(records, key=lambda cluster: (records[cluster].length(cluster), cluster))

    patch.setattr(partition, "best", longest)


def takes_over_in_sight(patch: pytest.MonkeyPatch) -> None:
    """A new home shows at once what it takes over, before anybody has accepted its epoch."""
    ask = elections.acknowledged

    def acknowledged(own: Promise, cluster: str, facts: Mapping[str, Facts]) -> int:
        hidden = facts[cluster].record.hidden
        return max(ask(own, cluster, facts), hidden.opened if hidden else 0)

    patch.setattr(partition, "acknowledged", acknowledged)


def catch_up_without_its_promise(patch: pytest.MonkeyPatch) -> None:
    """A cluster copies from any T-global, and promises what that cluster had promised afterwards."""
    promised = Ballot.newer_promise

    def source(self: OrderedPartition) -> Peer | None:
        if self.failure is not None or self.learning.learned is not None or self.lane.promise is None:
            return None
        ahead = [
            peer
            for peer in self.peers.values()
            if peer.failure is None and peer.record(self.key).rank > self.record.rank
        ]
        return max(ahead, key=lambda peer: peer.record(self.key).rank, default=None)

    def later(self: Ballot, now: float) -> Promise | None:
        newer = promised(self, now)
        if newer is None or newer.epoch.home == self.own or self.lane.promise is None:
            return newer
        learns = any(each.learning.learned or each.source_to_learn_from() for each in self.partitions.values())
        return None if learns else newer

    def change(self: Learning, promise: Promise, record: OrderRecord) -> Change | None:
        if self.learned is not None:
            self.learned = replace(self.learned, epoch=NO_EPOCH)
        return show(self, promise, record)

    show = Learning.change
    patch.setattr(OrderedPartition, "source_to_learn_from", source)
    patch.setattr(Learning, "change", change)
    patch.setattr(Ballot, "newer_promise", later)


def acknowledges_what_it_learned_later(patch: pytest.MonkeyPatch) -> None:
    """A catch-up's records after a promise acknowledge for the epoch before; the home promises late."""
    _promise_late(patch)

    def acknowledged(own: Promise, cluster: str, facts: Mapping[str, Facts]) -> int:
        ranks = [
            each.record.rank
            for member, each in facts.items()
            if member != cluster and each.record.accepted == own.epoch
        ]
        return max(ranks, default=0)

    patch.setattr(partition, "acknowledged", acknowledged)


def majority_of_five(patch: pytest.MonkeyPatch) -> None:
    """More than half of the members are enough for a new home."""

    def enough(promised: Sequence[str], members: Members, _: Sequence[str] = ()) -> bool:
        return len({*members}.intersection(promised)) >= len(members) // 2 + 1

    patch.setattr(elections, "enough", enough)


def part_in_the_order_committed_later(patch: pytest.MonkeyPatch) -> None:
    """The records in one transaction, the part in the order and the positions in the next one."""
    commit, encode = OrderLane.commit, OrderLane._records
    held: list[dict[Partition, list[Record]]] = []

    def hold(self: OrderLane, *arguments: object) -> dict[Partition, list[Record]]:
        held[:] = [encode(self, *arguments)]
        return {}

    async def commit_twice(self: OrderLane, changes: Sequence[Change], promise: Promise | None = None) -> None:
        patch.setattr(OrderLane, "_records", hold if changes else encode)
        await commit(self, changes, promise)
        if changes:
            own = held.pop()
            await self.write((), lambda *_: own)

    patch.setattr(OrderLane, "commit", commit_twice)


def marks_known_by_their_content(patch: pytest.MonkeyPatch) -> None:
    """Whatever looks like a mark is one, wherever it lies."""
    end = HiddenBuffer._end

    def end_at_marks(self: HiddenBuffer, control: Batch) -> int:
        pending, self._pending, size = self._pending, [], 0
        for batch in pending:
            self._pending.append(batch)
            if _is_mark(batch):
                size += end(self, control)
        self._pending.clear()
        return size

    patch.setattr(HiddenBuffer, "_end", end_at_marks)


def _promise_late(patch: pytest.MonkeyPatch) -> None:
    promised, met = Ballot.newer_promise, Counter[tuple[int, Epoch]]()

    def late(self: Ballot, now: float) -> Promise | None:
        own, newer = self.lane.promise, promised(self, now)
        if newer is None or own is None or own.epoch.home != self.own or newer.epoch.home == self.own:
            return newer
        met[id(self), newer.epoch] += 1
        return newer if met[id(self), newer.epoch] > _LOOKS else None

    patch.setattr(Ballot, "newer_promise", late)


def _is_mark(batch: Batch) -> bool:
    try:
        decode_sequence_mark(unpack(batch, 0)[-1])
    except PeerError:
        return False
    return True


ORDER_MUTATIONS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a voter read before it promises": voters_read_before_they_promise,
    "a gate without an epoch": gate_without_epoch,
    "a vector of an older rank": vector_of_an_older_rank,
    "an epoch accepted without what it took over": epoch_accepted_without_what_it_took_over,
    "a home without a gate": home_without_a_gate,
    "a home that its promise does not fence": home_not_fenced_by_its_promise,
    "a follower that does not wait for the commit": follower_that_does_not_wait_for_the_commit,
    "a hidden log that is not read": hidden_log_not_read,
    "the longest log wins": longest_log_wins,
    "a home that shows at once what it takes over": takes_over_in_sight,
    "a catch-up without its promise": catch_up_without_its_promise,
    "a catch-up that acknowledges for before": acknowledges_what_it_learned_later,
    "a majority of five": majority_of_five,
    "a part in the order that is committed later": part_in_the_order_committed_later,
    "marks known by their content": marks_known_by_their_content,
}
