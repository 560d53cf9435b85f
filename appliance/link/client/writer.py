"""The transactional writer of a lane's epoch: its producer, its sequence numbers, the ends of its copies.

It runs one transaction after the other, and never retries a step: after any doubtful answer the lane restarts with a
new epoch, and so with a new writer.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kio.schema.produce.v9 import ProduceResponse

from appliance.errors import BrokerRefused, CopyLost, CopyRefused, PartitionsUnavailable
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.client.offsets import Bound, list_offsets, undecided
from appliance.kafka.client.open_transactions import open_since
from appliance.kafka.client.produce import Copy, check_produced, produce
from appliance.kafka.client.requests import ask_leaders
from appliance.kafka.client.transactions import Producer, add_partitions, end_transaction
from appliance.kafka.protocol.metadata import Metadata, Partition, is_another
from appliance.kafka.records import batch
from appliance.kafka.records.outgoing import Outgoing
from appliance.kafka.records.records import Record
from appliance.link.client.retry import is_completing, retry_while_busy
from appliance.link.model.checkpoint_records import packed

_MARKER = 1
"""Offsets of a transaction's marker in each partition that it wrote to."""

Round = Sequence[tuple[Partition, Outgoing]]
"""One batch for each of several copies."""

OwnRecords = Mapping[Partition, Sequence[Record]]
"""Records of ours, by their partition."""

Begins = Mapping[Partition, Sequence[int]]
"""The offsets of a transaction's batches in each copy, in their order."""

Remember = Callable[[Mapping[Partition, int], Begins], OwnRecords]
"""Returns the records to remember, from the ends of the copies after the transaction and the begins of its batches;
there are none if every batch follows the one before it."""


@dataclass(slots=True)
class Writer:
    """Writes transactions of one producer epoch; ``positions`` is the lane's partition of the positions topic.

    Others may write to ``shared`` copies at any time: where they end is known only after each write. With
    ``keeps_times`` no transaction commits whose records got other times than they had.
    """

    cluster: Cluster
    producer: Producer
    positions: Partition
    metadata: Metadata
    timeout: float
    shared: bool = False
    keeps_times: bool = False
    ends: dict[Partition, int] = field(default_factory=dict)
    """The offset of the next batch for each copy, if nobody else writes there."""
    epochs: dict[Partition, int] = field(default_factory=dict)
    """The leader epochs of the copies when their ends were checked."""
    sequences: dict[Partition, int] = field(default_factory=dict)
    in_transaction: bool = False
    """True from the first write of a transaction, or earlier, until its end."""

    def learn(self, metadata: Metadata) -> None:
        """Add the leaders of topics; the offsets of a recreated topic begin at 0 again."""
        before = self.metadata.topics
        recreated = {name for name, topic in metadata.topics.items() if name in before and before[name].id != topic.id}
        for counters in (self.sequences, self.ends, self.epochs):
            for partition in [partition for partition in counters if partition[0] in recreated]:
                del counters[partition]
        self.metadata = replace(metadata, topics={**before, **metadata.topics})

    async def write(self, rounds: Sequence[Round], remember: Remember) -> None:
        """Commit one transaction: the copies, and the records to remember.

        ``remember`` is called once more when a copy ends elsewhere than expected: somebody else has written there. Its
        records other than positions are sent when the ends are known: a map segment has the copy's offset as its key.

        Raises:
            Fenced: the epoch is no longer the newest.
            CopyLost: a copy is shorter than it was, or was recreated.
            PartitionsUnavailable: some copies cannot be written now, or may have got a late batch.
            Unreachable, BrokerBusy, BrokerRefused, PeerError: the outcome is unknown.
        """
        coordinator = await self.cluster.coordinator(self.producer.transactional_id)
        copies = {copy for one in rounds for copy, _ in one}
        first_of_the_epoch = copies - self.sequences.keys()
        await self._reach(copies)
        await self._add(coordinator, {*copies, self.positions})
        self.in_transaction = True
        ends = {copy: self.ends[copy] for copy in copies if copy in self.ends}
        pending = [each for one in rounds for each in await self._send_round(one, ends)]
        ends = {copy: end + _MARKER for copy, end in ends.items()}
        own_records: OwnRecords = {}
        if not self.shared:
            own_records = remember(ends, {})
            if own_records.keys() == {self.positions}:
                pending += await self._send_own_records(coordinator, own_records)
                own_records = {}  # unless a copy ends elsewhere: newer positions then replace these by key
        begins = await _all_written(pending)
        further = _further(pending, begins)
        if further:
            await self._require_ours({copy: shift.first_offset for copy, shift in further.items()}, first_of_the_epoch)
            ends = {copy: end + further[copy].distance if copy in further else end for copy, end in ends.items()}
        if further or self.shared:
            own_records = remember(ends, begins)
        await _all_written(await self._send_own_records(coordinator, own_records))
        await end_transaction(coordinator, self.producer, self.timeout)
        self.in_transaction = False
        self.ends |= ends

    async def _require_ours(self, first_offsets: Mapping[Partition, int], first: Collection[Partition]) -> None:
        """Check that this commit makes nothing visible but the records of this transaction.

        A late batch of an earlier epoch of this producer can only have come before the ``first`` write of this epoch to
        a copy (KAFKA-14402). In a shared copy all other open transactions are others' own.
        """
        if not self.shared:
            await self._require_decided(first_offsets)
        elif asked := {copy: first_offsets[copy] for copy in first_offsets if copy in first}:
            open_transactions, unknown = await open_since(self.cluster, self.metadata, asked)
            since = {
                copy: open_transactions.get(copy, {}).get(self.producer.id, offset) for copy, offset in asked.items()
            }
            late = {copy: undecided(copy, offset) for copy, offset in asked.items() if since[copy] < offset}
            if late or unknown:
                raise PartitionsUnavailable({**unknown, **late})

    async def _require_decided(self, first_offsets: Mapping[Partition, int]) -> None:
        """Check that everything before the transaction's first records in these copies is decided, and in the same
        topics.

        An open transaction there may be a late batch of an earlier epoch of this producer: this commit would make it
        visible too (KAFKA-14402), while a new epoch aborts it.
        """
        metadata = await self.cluster.metadata(sorted({topic for topic, _ in first_offsets}))
        for name, topic in metadata.topics.items():
            if is_another(topic.id, self.metadata.topics[name].id):
                raise CopyLost(f"{name} was deleted and made anew")
        stable_ends = await list_offsets(self.cluster, metadata, first_offsets, Bound.STABLE_END)
        below = {copy: first for copy, first in first_offsets.items() if stable_ends[copy] < first}
        if below:
            raise PartitionsUnavailable({copy: undecided(copy, first) for copy, first in below.items()})

    async def _reach(self, copies: Collection[Partition]) -> None:
        """Open a connection to each leader before the transaction begins.

        A transaction that has touched a leaderless partition could not end, not even by an abort.
        """

        async def nothing(*_: object) -> None:
            """Ask nothing: the connection is enough."""

        if failures := await ask_leaders(self.cluster, self.metadata, copies, nothing, "produce"):
            raise PartitionsUnavailable(failures)

    async def _send_round(self, one: Round, ends: dict[Partition, int]) -> list["_PendingProduce"]:
        """Send a batch for each copy, and advance the copy's end by its records."""
        bases = {copy: ends[copy] for copy, _ in one if copy in ends}
        for copy, outgoing in one:
            if copy in ends:
                ends[copy] += outgoing.records
        answers = await self._send([(copy, outgoing.data, outgoing.records) for copy, outgoing in one])
        return [_PendingProduce(answer, dict(one), bases, self.keeps_times) for answer in answers]

    async def _send_own_records(self, coordinator: Connection, own_records: OwnRecords) -> list["_PendingProduce"]:
        if further := own_records.keys() - {self.positions}:
            await self._add(coordinator, further)
        pending = []
        for partition, records in own_records.items():
            for data, count in packed(records):
                pending += [_PendingProduce(answer, {}, {}) for answer in await self._send([(partition, data, count)])]
        return pending

    async def _add(self, coordinator: Connection, partitions: Collection[Partition]) -> None:
        await retry_while_busy(lambda: add_partitions(coordinator, self.producer, partitions), is_completing)

    async def _send(
        self, batches: Collection[tuple[Partition, memoryview | bytes, int]]
    ) -> list[asyncio.Future[ProduceResponse]]:
        """One Produce for each leader."""
        by_leader: dict[int, list[Copy]] = {}
        for partition, data, count in batches:
            sequence = self.sequences.get(partition, 0)
            self.sequences[partition] = batch.next_sequence(sequence, count)
            by_leader.setdefault(self.metadata.leader(*partition), []).append(Copy(partition, data, sequence))
        answers = []
        for leader, led in by_leader.items():
            connection = await self.cluster.broker(leader, "produce")
            answers.append(await produce(connection, self.producer, led))
        return answers


class _PendingProduce(NamedTuple):
    """A Produce in flight: its answer; each copy's batch in it, and the offset that is expected of it."""

    answer: asyncio.Future[ProduceResponse]
    batches: Mapping[Partition, Outgoing]
    bases: Mapping[Partition, int]
    keeps_times: bool = False


class _Shift(NamedTuple):
    """A copy whose batches lie further on than expected: the offset of its first one, and the largest distance."""

    first_offset: int
    distance: int


async def _all_written(pending: Collection[_PendingProduce]) -> dict[Partition, list[int]]:
    """Wait for all; the offsets of each partition's batches."""
    begins: dict[Partition, list[int]] = {}
    for each in pending:
        for partition, offset in (await _offsets(each)).items():
            begins.setdefault(partition, []).append(offset)
    return begins


def _further(pending: Collection[_PendingProduce], begins: Begins) -> dict[Partition, _Shift]:
    """The copies whose batches lie further on than expected; the last ones lie the furthest."""
    expected = {copy: base for each in pending for copy, base in each.bases.items()}
    return {
        copy: _Shift(begins[copy][0], begins[copy][-1] - base)
        for copy, base in expected.items()
        if begins[copy][-1] != base
    }


async def _offsets(pending: _PendingProduce) -> dict[Partition, int]:
    """Return the offsets of the accepted batches."""
    try:
        offsets = check_produced(await pending.answer, keeps_times=pending.keeps_times)
    except CopyRefused as error:
        if error.partition not in pending.batches:
            raise BrokerRefused(str(error), error.code) from error
        error.offsets = pending.batches[Partition(*error.partition)].refused(error.number)
        raise
    for copy, offset in offsets.items():
        if offset < pending.bases.get(copy, offset):
            raise CopyLost(f"{copy} ended at offset {pending.bases[copy]}, and now at {offset}")
    return offsets
