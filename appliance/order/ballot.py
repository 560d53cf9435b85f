"""The part of a lane in elections: its beats, the wishes that it meets, and the promise that it gives next."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from appliance.clock import loop_seconds, now_ms
from appliance.errors import PartitionStopped
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.order import Epoch, Members, Origin, Place, Promise
from appliance.link.model.states import LaneState
from appliance.order.lane import OrderLane
from appliance.order.model.beats import LaneBeat, Watch, Wish, is_working, reached
from appliance.order.model.elections import GATE, first_promise, may_be_first, next_epoch, promise
from appliance.order.partition import OrderedPartition
from appliance.order.peers import Peer

YIELD_SECONDS = 5.0
"""Longest time for which a home that yields takes nothing."""


class Candidacy(NamedTuple):
    """It is to become home of a new epoch with these members; the operator has declared some clusters lost.

    ``cause`` tells people why.
    """

    members: Members
    cause: str
    lost: Members = ()


class Yielding(NamedTuple):
    """A home takes nothing more until another cluster has begun a new epoch, or this time is over."""

    target: str
    until: float


@dataclass(eq=False)
class Ballot:
    """The part of one lane of the cluster ``own`` in elections; ``peers`` are the other lanes.

    ``first``: it is to become home of these members where nobody has promised anything yet. With ``alone`` a home of
    two clusters goes on when the other one is silent. ``beat_due`` asks for a beat at once.
    """

    own: str
    lane: OrderLane
    peers: Mapping[str, Peer]
    partitions: Mapping[Partition, OrderedPartition]
    wake: asyncio.Event
    watch: Watch
    first: Members | None
    alone: bool
    beat_due: asyncio.Event = field(default_factory=asyncio.Event)
    committed: float = field(init=False, default_factory=loop_seconds)
    """The time of the lane's last commit, in seconds of the event loop."""
    _candidacy: Candidacy | None = field(init=False, default=None)
    _yielding: Yielding | None = field(init=False, default=None)
    _yields: bool = field(init=False, default=False)
    _goes_alone: bool = field(init=False, default=False)
    """By the operator's word."""
    _was_alone: bool = field(init=False, default=False)
    _advanced: float = field(init=False, default_factory=loop_seconds)
    _state: object = field(init=False, default=None)

    def beat(self) -> LaneBeat:
        """The beat of the lane now."""
        now, promise = loop_seconds(), self.lane.promise
        read = {name: each.log.read_at for name, each in self.peers.items()}
        if promise is None or self.lane.state is not LaneState.COPYING:
            return LaneBeat(reaches=tuple(reached(now, read)))
        works = is_working(now, self.committed, self._advanced, read, promise.members, GATE - 1)
        target = self._yielding.target if self._yielding and self._yields else ""
        return LaneBeat(promise.epoch, works, self.watch.suspects(now), tuple(reached(now, read)), target)

    def hear(self, cluster: str, beat: LaneBeat) -> None:
        """Take in a beat of the lane in another cluster; a home that yields to this one is followed at once."""
        promise = self.lane.promise
        self.watch.hear(cluster, beat, loop_seconds())
        if (
            beat.yields_to == self.own
            and promise is not None
            and promise.epoch == beat.epoch
            and cluster == beat.epoch.home
        ):
            self._candidacy = Candidacy(promise.members, f"{cluster} has handed over")
            self.wake.set()

    def meet(self, wish: Wish) -> None:
        """Do what an operator wishes, if it is this cluster's to do."""
        promise = self.lane.promise
        if promise is None:
            return
        is_home = promise.epoch.home == self.own
        if wish.gap:
            if wish.target == self.own:
                for each in self.partitions.values():
                    each.skip()
        elif wish.resumed:
            if is_home:  # another one would do it when it is home, on what was taken since
                self._resume(wish)
        elif wish.alone:
            self._goes_alone = is_home
        elif wish.members:
            if is_home:
                self._candidacy = Candidacy(wish.members, "an operator has changed the members")
        elif not wish.waits:
            if wish.target == self.own:
                self._candidacy = Candidacy(promise.members, "an operator's word", wish.lost)
        elif is_home and wish.target != self.own and wish.target in promise.members:
            self._yielding = Yielding(wish.target, loop_seconds() + YIELD_SECONDS)
        self.wake.set()

    def _resume(self, wish: Wish) -> None:
        for cluster, topic, number, offset in wish.resumed:
            for each in self.partitions.values():
                for replica in each.replicas:
                    if (replica.cluster, replica.source_topic, replica.partition) == (cluster, topic, number):
                        each.arrivals.resume(Origin(cluster, number), Place(replica.source_id, offset, -1))

    def newer_promise(self, now: float) -> Promise | None:
        """The promise to give: of the newest epoch that another cluster has promised, or of one of its own."""
        own = self.lane.promise
        others = [each.checkpoint.promise for each in self.peers.values() if each.checkpoint.promise is not None]
        newest = max(others, key=lambda each: each.epoch, default=None)
        if newest is not None and (own is None or newest.epoch > own.epoch):
            self._candidacy = None
            if newest.epoch.home == self.own:  # it may have opened that epoch already
                raise PartitionStopped(
                    f"epoch {newest.epoch} began here, and {self.lane.positions.topic} has lost that: "
                    "another cluster has to become home"
                )
            return promise(own, newest, now_ms())
        if own is None:
            known = [name for name, each in self.peers.items() if each.log.is_known]
            if newest is not None or self.first is None or not may_be_first(self.own, known, self.first):
                return None
            return first_promise(Epoch(1, self.own), self.first, now_ms(), "GLOBAL_HOME names the first home")
        if self._candidacy is None and self.watch.stands(own, now, random.random()):
            self._candidacy = Candidacy(own.members, f"{own.epoch.home} was silent")
        if self._candidacy is None:
            return None
        (members, cause, lost), self._candidacy = self._candidacy, None
        if self.own not in members:  # enough promises of these would not meet whoever shows its records
            return None
        wanted = first_promise(next_epoch(self.own, [own.epoch]), members, now_ms(), cause)
        return promise(own, replace(wanted, lost=lost), now_ms())

    def promised(self, epoch: Epoch, now: float) -> None:
        """Note a promise that was committed: what was asked of the home before is over."""
        self._yielding, self._goes_alone = None, False
        self.watch.promised(epoch, now)
        self.beat_due.set()

    def prepare(self, own: Promise, now: float) -> None:
        """Tell the partitions of what only the lane knows: a home that yields, or may go on alone."""
        self.watch.promised(own.epoch, now)
        if self._yielding is not None and now >= self._yielding.until:
            self._yielding = None
        for each in self.partitions.values():
            each.pauses = self._yielding is not None
            each.gate.may_go_alone = (self.alone and len(own.members) == GATE) or self._goes_alone

    def note_progress(self, own: Promise) -> None:
        """Note if an opening has advanced, and if all is handed over to the cluster that the home yields to."""
        working = [each for each in self.partitions.values() if each.failure is None]
        state = [(each.record.accepted, each.record.rank) for each in working]
        if state != self._state or all(each.record.accepted == own.epoch for each in working):
            self._state, self._advanced = state, loop_seconds()
        is_alone = any(each.record.is_alone for each in working)
        self._goes_alone = self._goes_alone and (is_alone or not self._was_alone)  # the word holds once
        self._was_alone = is_alone
        before, yielding = self._yields, self._yielding
        self._yields = yielding is not None and all(each.has_handed_over(own, yielding.target) for each in working)
        if self._yields and not before:
            self.beat_due.set()
