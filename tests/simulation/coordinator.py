"""Transactions as their coordinator keeps them (KIP-98, KIP-360, KIP-890's check of what is produced)."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from appliance.kafka.protocol.metadata import Partition
from tests.simulation.log import Log


@dataclass(slots=True, eq=False)
class Transaction:
    """A transactional id: its producer, and its newest transaction; ``ending`` holds partitions without a marker
    yet."""

    id: str
    producer: int
    epoch: int = 0
    ongoing: bool = False
    decided: bool | None = None
    partitions: dict[Partition, Log] = field(default_factory=dict)
    ending: dict[Partition, Log] = field(default_factory=dict)
    number: int = 0


Answer = tuple[ErrorCode, int, int]
Later = Callable[[str, Callable[[], None]], None]
"""Runs something when chance has it, for the reason given."""


class Coordinator:
    """The transactions of a cluster; ``decided`` is called with each commit before its markers are written."""

    def __init__(
        self, nodes: Sequence[int], later: Later, decided: Callable[[Transaction], None], marked: Callable[[Log], None]
    ) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.by_producer: dict[int, Transaction] = {}
        self.verifies = True
        """False before 3.7: nobody asks whether a transaction is open that a batch belongs to (KIP-890)."""
        self._nodes = nodes
        self._moved: set[str] = set()
        self._loading: set[str] = set()
        self._failing: set[tuple[str, type]] = set()
        self._later = later
        self._decided = decided
        self._marked = marked

    def node(self, name: str, lagging: bool = False) -> int:
        """The broker that coordinates a transactional id; with ``lagging`` the one that did before."""
        return self._nodes[(len(name) + ((name in self._moved) is not lagging)) % len(self._nodes)]

    def move(self, name: str) -> None:
        """Let another broker coordinate an id, once it has loaded what is known of it."""
        self._moved ^= {name}
        self._loading.add(name)
        self._later("loading", lambda: self._loading.discard(name))

    def move_at(self, name: str, kind: type) -> None:
        """The same, when the coordinator has written the next request of a kind to its log, before it can say so."""
        self._failing.add((name, kind))

    def asked(self, name: str, node: int, kind: type, act: Callable[[], ErrorCode]) -> ErrorCode:
        """The answer of a broker to a request for an id: by ``act``, if it coordinates that now."""
        if node != self.node(name):
            return ErrorCode.not_coordinator
        if name in self._loading:
            return ErrorCode.coordinator_load_in_progress
        code = act()
        if (name, kind) in self._failing:
            self._failing.discard((name, kind))
            self.move(name)
            return ErrorCode.not_coordinator
        return code

    def init(self, name: str) -> Answer:
        """A new epoch; what is open is aborted first."""
        known = self.transactions.get(name)
        if known is None:
            producer = 1000 + len(self.transactions)
            known = self.transactions[name] = self.by_producer[producer] = Transaction(name, producer)
            return ErrorCode.none, known.producer, 0
        if known.ending:
            return ErrorCode.concurrent_transactions, -1, -1
        known.epoch += 1
        known.number += 1
        if known.ongoing:
            self._end(known, False)
            return ErrorCode.concurrent_transactions, -1, -1
        known.decided = None
        return ErrorCode.none, known.producer, known.epoch

    def add(self, name: str, producer: int, epoch: int, logs: dict[Partition, Log]) -> ErrorCode:
        """Let a transaction write to partitions; the first ones open it."""
        known = self.transactions.get(name)
        if known is None or known.producer != producer:
            return ErrorCode.invalid_producer_id_mapping
        if known.epoch != epoch:
            return ErrorCode.producer_fenced
        if known.ending:
            return ErrorCode.concurrent_transactions
        if not known.ongoing:
            known.ongoing, known.decided = True, None
            known.partitions = {}
            known.number += 1
            number = known.number
            self._later("transaction timeout", lambda: self._expire(known, number))
        known.partitions.update(logs)
        return ErrorCode.none

    def end(self, name: str, producer: int, epoch: int, committed: bool) -> ErrorCode:
        """Commit or abort."""
        known = self.transactions.get(name)
        if known is None or known.producer != producer:
            return ErrorCode.invalid_producer_id_mapping
        if known.epoch != epoch:
            return ErrorCode.producer_fenced
        if known.ending:
            return ErrorCode.concurrent_transactions
        if not known.ongoing:
            return ErrorCode.none if known.decided is committed else ErrorCode.invalid_txn_state
        self._end(known, committed)
        return ErrorCode.none

    def verify(self, producer: int, epoch: int, log: Log) -> ErrorCode:
        """The error of a write by a producer; a transaction that is open in the log already is not verified."""
        known, state = self.by_producer.get(producer), log.producers.get(producer)
        if not self.verifies or (producer in log.open and state is not None and state.epoch == epoch):
            return ErrorCode.none
        if known is None:
            return ErrorCode.invalid_producer_id_mapping
        if epoch != known.epoch:
            return ErrorCode.invalid_producer_epoch
        added = known.ongoing and (log.topic, log.number) in known.partitions
        return ErrorCode.none if added else ErrorCode.invalid_txn_state

    def holds(self, producer: int, log: Log) -> bool:
        """True if the producer's transaction writes to the log now, or has still to be marked there."""
        known = self.by_producer.get(producer)
        written = {} if known is None else known.partitions if known.ongoing else known.ending
        return written.get((log.topic, log.number)) is log

    def _expire(self, known: Transaction, number: int) -> None:
        if known.ongoing and known.number == number:
            known.epoch += 1
            known.number += 1
            self._end(known, False)

    def _end(self, known: Transaction, committed: bool) -> None:
        known.ongoing, known.decided = False, committed
        if committed:
            self._decided(known)
        known.ending = dict(known.partitions)
        for partition in known.partitions:
            self._later("marker", lambda partition=partition: self._mark(known, partition, committed))  # type: ignore[misc]

    def _mark(self, known: Transaction, partition: Partition, committed: bool) -> None:
        log = known.ending.pop(partition)
        log.mark(known.producer, known.epoch, committed)
        self._marked(log)


def undecided(transactions: Collection[Transaction]) -> bool:
    """True if any transaction is open, or lacks a marker."""
    return any(known.ongoing or known.ending for known in transactions)
