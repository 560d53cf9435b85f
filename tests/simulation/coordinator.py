"""Transactions as their coordinator keeps them (KIP-98, KIP-360, KIP-890's check of what is produced)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from appliance.kafka.client.offsets import Partition
from tests.simulation.log import Log


@dataclass(slots=True, eq=False)
class Transaction:
    """A transactional id: its producer, and its newest transaction; ``ending`` holds what is not marked yet."""

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
    """All transactions of a cluster; ``decided`` is told each commit before its markers are written."""

    def __init__(self, later: Later, decided: Callable[[Transaction], None], marked: Callable[[Log], None]) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.by_producer: dict[int, Transaction] = {}
        self._later = later
        self._decided = decided
        self._marked = marked

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
        """May the producer write there now? A transaction that is open there already is not asked about."""
        known, state = self.by_producer.get(producer), log.producers.get(producer)
        if producer in log.open and state is not None and state.epoch == epoch:
            return ErrorCode.none
        if known is None:
            return ErrorCode.invalid_producer_id_mapping
        if epoch != known.epoch:
            return ErrorCode.invalid_producer_epoch
        added = known.ongoing and (log.topic, log.number) in known.partitions
        return ErrorCode.none if added else ErrorCode.invalid_txn_state

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
    """Is any of them open, or not marked everywhere?"""
    return any(known.ongoing or known.ending for known in transactions)
