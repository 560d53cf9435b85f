"""The comparison of all T-global with each other, and with T of each cluster, as an independent consumer reads them.

A hash chain over the records of a partition is equal in two clusters if and only if their orders are equal.
"""

import asyncio
import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from demo.order_setenv import ORDERED, TOPIC
from testbed.comparison import Differences, Track, compare
from testbed.reading import Reading, read
from testbed.tasks import in_thread


@dataclass
class OrderCheck:
    """The result of the comparison.

    ``written`` are the records in T of each cluster, ``shown`` those in its T-global, and ``chains`` the hash chains of
    its partitions. ``foreign`` are records in the order that are in no T.
    """

    written: dict[str, int] = field(default_factory=dict)
    shown: dict[str, int] = field(default_factory=dict)
    chains: dict[str, list[str]] = field(default_factory=dict)
    differences: Differences = field(default_factory=Differences)
    foreign: int = 0

    @property
    def chains_equal(self) -> bool:
        """True when all clusters have the same."""
        return len({tuple(each) for each in self.chains.values()}) == 1

    @property
    def clean(self) -> bool:
        """True when all T-global are equal, and have each record of each T exactly once."""
        same = {*self.shown.values()} == {sum(self.written.values())}
        return self.chains_equal and same and not self.differences and not self.foreign


async def verify_order(clients: Mapping[str, Mapping[str, str]]) -> OrderCheck:
    """Read all clusters, and compare.

    Raises:
        Unreachable: a cluster did not answer.
    """
    partitions = [(topic, number) for topic in (TOPIC.name, ORDERED) for number in range(TOPIC.partitions)]
    work = [functools.partial(read, client, partitions, lambda _count: None) for client in clients.values()]
    readings = dict(zip(clients, await asyncio.gather(*map(in_thread, work)), strict=True))
    check = OrderCheck()
    for number in range(TOPIC.partitions):
        _compare(readings, number, check)
    return check


def _compare(readings: Mapping[str, Reading], number: int, check: OrderCheck) -> None:
    """Add the comparison of one partition."""
    orders = {name: reading.tracks[ORDERED, number] for name, reading in readings.items()}
    longest = max(orders.values(), key=lambda track: len(track.offsets))
    known: set[int] = set()
    for name, reading in readings.items():
        order, origin = orders[name], reading.tracks[TOPIC.name, number]
        check.shown[name] = check.shown.get(name, 0) + len(order.offsets)
        check.written[name] = check.written.get(name, 0) + len(origin.offsets)
        check.chains.setdefault(name, []).append(_chain(order))
        own = {*origin.fingerprints}
        known |= own
        check.differences += compare(ORDERED, number, longest, order)
        check.differences += compare(TOPIC.name, number, origin, _only(longest, own))
    check.foreign += sum(each not in known for each in longest.fingerprints)


def _only(track: Track, fingerprints: set[int]) -> Track:
    """The records of a track that have these fingerprints."""
    part = Track()
    for offset, fingerprint in zip(track.offsets, track.fingerprints, strict=True):
        if fingerprint in fingerprints:
            part.append(offset, fingerprint)
    return part


def _chain(track: Track) -> str:
    """The last link of the hash chain over all records of a partition, in their order."""
    link = b""
    for fingerprint in track.fingerprints:
        link = hashlib.blake2b(link + fingerprint.to_bytes(8, "big"), digest_size=16).digest()
    return link.hex()
