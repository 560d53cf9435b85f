"""Promises and votes: who may become home, what it takes over, and what may be shown.

A record is shown once ``GATE`` clusters hold it in one epoch: the home's hidden log and one T-global. A new home needs
so many promises that any of them meet any such two clusters (flexible Paxos, Howard 2016), of its own membership and of
each one that a voter has named.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.order import Epoch, Members, OrderRecord, Promise

GATE = 2

NOT_LISTED = "a member of the order, and not in GLOBAL_CLUSTERS here, which must be the same on all VMs"
"""What is said of a cluster that another VM knows by another id, or this one not at all."""


class Facts(NamedTuple):
    """One cluster's promise, and its part in an order, as one prefix of its lane's records has them."""

    promise: Promise | None
    record: OrderRecord


def next_epoch(home: str, seen: Iterable[Epoch]) -> Epoch:
    """An epoch that is newer than all of these."""
    return Epoch(max((epoch.number for epoch in seen), default=0) + 1, home)


def first_promise(epoch: Epoch, members: Members, now: int, cause: str) -> Promise:
    """The promise of a cluster that has not promised anything yet."""
    return Promise(epoch, members, (members,), now, cause=cause)


def _votes(members: Members) -> int:
    """The promises that a new home needs of a membership: any so many meet any ``GATE``, and any others so many."""
    return max(len(members) - GATE + 1, len(members) // 2 + 1)


def may_be_first(own: str, known: Collection[str], members: Members) -> bool:
    """True if no epoch was ever opened, as these clusters, which are read, know of none: nor has ``own`` by itself.

    Any enough promises of an earlier epoch, without that of ``own``, which may have lost it, would be one of theirs.
    """
    others = {*members} - {own}
    return len(others.intersection(known)) >= len(others) - _votes(members) + 2


def promise(before: Promise | None, newer: Promise, now: int) -> Promise:
    """The promise of a newer epoch: it names what was named before, too."""
    named = (before.named if before else ()) + (newer.members,)
    return replace(newer, named=tuple(sorted({*named})), since=now)


def accepted(before: Promise) -> Promise:
    """The promise of a lane that has accepted its epoch everywhere: no older membership matters any more."""
    return replace(before, named=(before.members,))


def is_accepted_everywhere(
    own: Promise, cluster: str, orders: Mapping[Partition, OrderRecord], others: Mapping[str, LaneCheckpoint]
) -> bool:
    """True if this ``cluster`` has accepted the epoch in every partition that an older membership may have shown.

    Enough clusters of each membership tell which there are; they have promised the epoch, and accept nothing older.
    """
    promised = {name: lane for name, lane in others.items() if lane.promise and lane.promise.epoch >= own.epoch}
    known = {*orders}.union(*(lane.orders for lane in promised.values()))
    return all(enough({cluster, *promised}, members, own.lost) for members in own.named) and all(
        key in orders and orders[key].accepted == own.epoch for key in known
    )


def enough(promised: Collection[str], members: Members, lost: Collection[str] = ()) -> bool:
    """True if these clusters are enough of a membership; those that the operator has declared lost count as well."""
    there = {*members}.intersection({*promised, *lost})
    return len(there) >= _votes(members)


def voters(own: Promise, facts: Mapping[str, Facts]) -> dict[str, OrderRecord]:
    """The part in the order of each cluster that has promised the same epoch."""
    return {
        cluster: each.record
        for cluster, each in facts.items()
        if each.promise is not None and each.promise.epoch == own.epoch and not each.record.stopped
    }


def is_elected(own: Promise, facts: Mapping[str, Facts]) -> bool:
    """True if the home of this promise may open its epoch."""
    promises = [each.promise for each in facts.values() if each.promise and each.promise.epoch == own.epoch]
    named = {own.members, *(members for each in promises for members in each.named)}
    promised = voters(own, facts)
    return all(enough(promised, members, own.lost) for members in named)


def best(records: Mapping[str, OrderRecord]) -> str:
    """The cluster with the longest log of the newest accepted epoch."""
    return max(records, key=lambda cluster: (records[cluster].accepted, records[cluster].length(cluster), cluster))


def acknowledged(own: Promise, cluster: str, facts: Mapping[str, Facts]) -> int:
    """The rank up to which another member has accepted the order of this epoch, besides its home ``cluster``."""
    ranks = [
        each.record.rank
        for member, each in facts.items()
        if member != cluster and member in own.members and each.promise and each.promise.epoch == own.epoch
        if each.record.accepted == own.epoch and not each.record.stopped
    ]
    return max(ranks, default=0)
