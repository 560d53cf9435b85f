"""The orders that T-global has in several clusters, read by another client than ours, and compared rank by rank.

A hash chain over key, value, headers, timestamp and its type is computed for each partition as each cluster shows it.
Chains that agree at a rank have the same records in the same order before it. What is read of T itself says which
records of each origin there are, and in which order.
"""

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Message, TopicPartition

from testbed.cluster import Cluster

Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, tuple[int, int]]
"""Key, value, headers, and the timestamp with its type."""

CLIENT = {
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 2000,
    "log_level": 0,
}
"""Settings of clients whose broker may be away for a while."""


@dataclass
class Chains:
    """All that was read of topic ``topic`` and its T-global, of which ``faults`` says what is wrong.

    Keys of records begin with ``origin``, so that each tells where it was written.
    """

    topic: str
    faults: list[str] = field(default_factory=list)
    origins: dict[tuple[str, int], list[Row]] = field(default_factory=dict)
    ranks: dict[tuple[str, int], int] = field(default_factory=dict)
    orders: dict[int, list[Row]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _chain: dict[int, list[bytes]] = field(default_factory=dict)
    _newest: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def take(self, cluster: str, message: Message) -> None:
        """Note a record that a cluster shows, and compare its chain with that of the others at this rank."""
        partition = message.partition() or 0
        row = message.key(), message.value(), message.headers(), message.timestamp()
        with self.lock:
            if message.topic() == self.topic:
                self.origins.setdefault((cluster, partition), []).append(row)
            else:
                self._show(cluster, partition, row)

    def _show(self, cluster: str, partition: int, row: Row) -> None:
        at, order = (cluster, partition), self._chain.setdefault(partition, [])
        rank = self.ranks.get(at, 0)
        link = hashlib.blake2b(self._newest.get(at, b"") + repr(row).encode(), digest_size=16).digest()
        self.ranks[at], self._newest[at] = rank + 1, link
        if rank == len(order):
            order.append(link)
            self.orders.setdefault(partition, []).append(row)
        elif order[rank] != link:
            self.faults.append(f"{cluster}-{partition} shows {row} at rank {rank}: {self.orders[partition][rank]}")

    def check(self, *, whole: bool = False) -> None:
        """Require one order, and in it each origin's records in their order; if ``whole``, all of them."""
        with self.lock:
            assert not self.faults, self.faults[:3]
            shown: dict[bytes, list[Row]] = {}
            for order in self.orders.values():
                for row in order:
                    shown.setdefault((row[0] or b"").rpartition(b"/")[0], []).append(row)
            for (cluster, partition), rows in self.origins.items():
                there = shown.pop(origin(cluster, partition), [])
                both = min(len(there), len(rows))
                assert there[:both] == rows[:both], f"{cluster}-{partition}: {first_difference(there, rows)}"
                assert not whole or len(there) == len(rows), f"{cluster}-{partition}: {len(there)} of {len(rows)}"
            assert not whole or not shown, f"nobody wrote {list(shown)}"

    def shown(self, *clusters: str) -> list[int]:
        """The number of records that each of these clusters shows."""
        with self.lock:
            return [sum(rank for (of, _), rank in self.ranks.items() if of == name) for name in clusters]

    def missing(self, *clusters: str) -> int:
        """The number of records that some of these clusters do not show yet."""
        with self.lock:
            there = sum(map(len, self.origins.values()))
        return max(there - rank for rank in self.shown(*clusters))


def origin(cluster: str, partition: int) -> bytes:
    """The beginning of the keys of all records that are written to a partition of T in a cluster."""
    return f"{cluster}/{partition}".encode()


def first_difference(one: list[Row], other: list[Row]) -> str:
    """The first rank at which two lists differ, and what they have there."""
    at = next(at for at, rows in enumerate(zip(one, other, strict=False)) if rows[0] != rows[1])
    return f"record {at} is {one[at]}, and not {other[at]}"


class Follower(threading.Thread):
    """Reads T and T-global of one cluster as it grows, until it is closed."""

    def __init__(self, name: str, cluster: Cluster, chains: Chains, logs: Mapping[str, int]) -> None:
        """``logs`` are the topics with their numbers of partitions."""
        super().__init__(name=f"follower of {name}", daemon=True)
        self._cluster, self._chains, self._of = cluster, chains, name
        self._partitions = [TopicPartition(log, number, 0) for log, size in logs.items() for number in range(size)]
        self._ends = threading.Event()

    def run(self) -> None:
        """Read."""
        reader = {"group.id": "follower", "isolation.level": "read_committed", "fetch.wait.max.ms": 20, **CLIENT}
        consumer = Consumer({**self._cluster.client_configuration(), **reader})
        consumer.assign(self._partitions)
        while not self._ends.is_set():
            for message in consumer.consume(500, 0.1):
                if message.error() is None:
                    self._chains.take(self._of, message)
        consumer.close()

    def close(self) -> None:
        """Read no further."""
        self._ends.set()
        self.join()


@contextlib.contextmanager
def followed(clusters: Mapping[str, Cluster], topic: str, partitions: int, single: bool) -> Iterator[Chains]:
    """Read all clusters, which have the topic and its T-global, while the block runs."""
    chains = Chains(topic)
    logs = {topic: partitions, f"{topic}-global": 1 if single else partitions}
    followers = [Follower(name, cluster, chains, logs) for name, cluster in clusters.items()]
    for each in followers:
        each.start()
    try:
        yield chains
    finally:
        for each in followers:
            each.close()
