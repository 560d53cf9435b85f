"""Source transactions with copied and uncopied partitions, as far as the source's logs show.

A log names a transaction only by its producer's id and epoch. Clients of Kafka 4 have an epoch for each transaction;
the transactions of an older client are distinguished by time. All records precede all markers, and the markers come at
once: so two partitions share a transaction if the marker of one is nearer to the other's marker than to the other's
first record.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field

from appliance.grouping import grouped
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.committed import EndedTransaction

_TICK = 2
"""Minimum tolerance between two markers of one transaction, in milliseconds, however short it was."""

Ended = tuple[Partition, EndedTransaction]


@dataclass(frozen=True, slots=True)
class Share:
    """The records of a transaction in one partition, from offset ``first`` to ``last``."""

    topic: str
    partition: int
    first: int
    last: int

    def __str__(self) -> str:
        """Print it for the operator."""
        return f"{self.topic}-{self.partition} {self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class TornTransaction:
    """A partly copied transaction; a partition that was copied up to its middle is among both."""

    producer_id: int
    producer_epoch: int
    copied: tuple[Share, ...]
    not_copied: tuple[Share, ...]

    def __str__(self) -> str:
        """Describe it in one line."""
        copied, others = ("; ".join(map(str, shares)) for shares in (self.copied, self.not_copied))
        name = f"transaction of producer {self.producer_id}, epoch {self.producer_epoch}"
        return f"{name}: copied offsets {copied}; not copied {others}"


@dataclass(frozen=True, slots=True)
class TornTransactions:
    """The transactions found, and the incompletely read partitions that may belong to one."""

    found: tuple[TornTransaction, ...] = ()
    unread: tuple[Partition, ...] = ()

    def document(self) -> Mapping[str, object]:
        """The JSON object."""
        unread = [{"topic": topic, "partition": number} for topic, number in self.unread]
        return {"found": [asdict(each) for each in self.found], "not_read": unread}


NOTHING_TORN = TornTransactions()


@dataclass(slots=True)
class _Transaction:
    """The shares of one transaction."""

    shares: dict[Partition, EndedTransaction] = field(default_factory=dict)

    def takes(self, partition: Partition, ended: EndedTransaction, by_epoch: bool) -> bool:
        """True when the share belongs to this transaction, whose markers are no newer than its own."""
        if partition in self.shares:
            return False
        apart = ended.ended - min(each.ended for each in self.shares.values())
        return by_epoch or 2 * apart <= ended.ended - ended.began + _TICK


def torn_transactions(ended: Iterable[Ended], positions: Mapping[Partition, int]) -> list[TornTransaction]:
    """The partly copied transactions, given the progress of each partition."""
    by_producer = grouped((each[1].producer_id, each) for each in ended)
    transactions = [transaction for shares in by_producer.values() for transaction in _transactions(shares)]
    return [torn for transaction in transactions if (torn := _torn(transaction, positions)) is not None]


def uncopied_producers(ended: Iterable[Ended], positions: Mapping[Partition, int]) -> set[int]:
    """The producers of transactions with uncopied records."""
    return {each.producer_id for partition, each in ended if each.last >= positions[partition]}


def _transactions(shares: Collection[Ended]) -> list[_Transaction]:
    """Group the shares of one producer's transactions."""
    epochs = {each.producer_epoch for _, each in shares}
    once = len({(partition, each.producer_epoch) for partition, each in shares}) == len(shares)
    by_epoch = once and len(epochs) > 1
    transactions: list[_Transaction] = []
    for partition, each in sorted(shares, key=lambda share: (share[1].producer_epoch, share[1].ended)):
        newest = transactions[-1] if transactions else None
        same_epoch = newest is not None and next(iter(newest.shares.values())).producer_epoch == each.producer_epoch
        if newest is None or not (same_epoch and newest.takes(partition, each, by_epoch)):
            transactions.append(newest := _Transaction())
        newest.shares[partition] = each
    return transactions


def _torn(transaction: _Transaction, positions: Mapping[Partition, int]) -> TornTransaction | None:
    copied, others = [], []
    for partition, each in sorted(transaction.shares.items()):
        position = positions[partition]
        if each.first < position:
            copied.append(Share(*partition, each.first, min(each.last, position - 1)))
        if each.last >= position:
            others.append(Share(*partition, max(each.first, position), each.last))
    if not (copied and others):
        return None
    return TornTransaction(each.producer_id, each.producer_epoch, tuple(copied), tuple(others))
