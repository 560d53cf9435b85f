"""Reads the source's logs around the positions of a promotion, to find partly copied transactions.

Only records beyond a position can tear a transaction: a promotion that loses nothing reads nothing. The reading is
bounded, in offsets, bytes and seconds; an incompletely read partition is named.
"""

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence

from appliance.commands.model.loss import BothLogs, PartitionLoss
from appliance.commands.model.torn_transactions import Ended, TornTransactions, torn_transactions, uncopied_producers
from appliance.errors import ApplianceError
from appliance.kafka.client.fetch import FetchLimits, fetch_partition
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records.committed import EndedTransactions

_SECONDS = 10.0
_OFFSETS = 10_000
"""Number of offsets of a partition that are read on either side of its position."""
_BYTES = 8 * 1024 * 1024
"""Most bytes read of a partition."""
_FETCH = FetchLimits(1024 * 1024, 0.0)
_AT_ONCE = 32


async def find_torn(source: Cluster, logs: BothLogs, losses: Sequence[PartitionLoss]) -> TornTransactions:
    """The partly copied transactions of the source, as far as its logs can be read within some seconds."""
    by_partition = {Partition(loss.topic, loss.partition): loss for loss in losses}
    places = {
        key: loss.source_end - loss.behind
        for key, loss in by_partition.items()
        if loss.source_end is not None and loss.behind is not None
    }
    behind = [key for key in places if by_partition[key].behind]
    looking = _Looking(source, logs.starts, places)
    looking.unread = by_partition.keys() - places.keys()
    try:
        async with asyncio.timeout(_SECONDS):
            await looking.read(behind)
            if producers := uncopied_producers(looking.ended, places):
                await looking.read([key for key in places if key not in behind])
                looking.keep(producers)
    except (ApplianceError, TimeoutError):
        pass  # unread partitions are named
    return TornTransactions(tuple(torn_transactions(looking.ended, places)), tuple(sorted(looking.not_read())))


class _Looking:
    """The result so far: the transactions that ``ended``, and the incompletely read partitions, ``unread``."""

    def __init__(self, source: Cluster, starts: Mapping[Partition, int], places: Mapping[Partition, int]) -> None:
        self.ended: list[Ended] = []
        self.unread: set[Partition] = set()
        self._source, self._starts, self._places = source, starts, places
        self._oldest: dict[Partition, int] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def read(self, partitions: Collection[Partition]) -> None:
        """Read on both sides of these partitions' positions."""
        self.unread.update(partitions)
        if partitions:
            metadata = await self._source.metadata(sorted({topic for topic, _ in partitions}))
            await asyncio.gather(*(self._read(metadata, partition) for partition in partitions))

    def keep(self, producers: Collection[int]) -> None:
        """Forget the transactions of other producers."""
        self.ended = [each for each in self.ended if each[1].producer_id in producers]

    def not_read(self) -> set[Partition]:
        """The incompletely read partitions that may belong to an uncopied transaction."""
        began = [each.began for partition, each in self.ended if each.last >= self._places[partition]]
        return self.unread | {key for key, oldest in self._oldest.items() if began and oldest > min(began)}

    async def _read(self, metadata: Metadata, partition: Partition) -> None:
        """Read one partition; a silent leader leaves only its own partitions unread."""
        async with self._turns:
            with contextlib.suppress(ApplianceError):
                if await self._read_whole(metadata, partition):
                    self.unread.discard(partition)

    async def _read_whole(self, metadata: Metadata, partition: Partition) -> bool:
        """Read up to the bounds; True when that covers all decided transactions."""
        place, start = self._places[partition], self._starts.get(partition, 0)
        at, size, transactions = max(start, place - _OFFSETS), 0, EndedTransactions()
        while at < place + _OFFSETS and size < _BYTES:
            fetched = await fetch_partition(self._source, metadata, partition, at, "transactions", _FETCH)
            batches = list(fetched.batches())
            if not batches:
                break
            if size == 0 and at > start:
                self._oldest[partition] = batches[0].header.base_timestamp
            transactions.take(batches)
            at, size = batches[-1].header.last_offset + 1, size + len(fetched.records)
        self.ended += [(partition, each) for each in transactions.found]
        return at >= fetched.stable_end
