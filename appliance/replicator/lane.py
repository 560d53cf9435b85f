"""A lane: one transactional id, one partition of the positions topic, and the copies of its source partitions.

Who may write what (invariant B): lane i writes partition i of the positions topic and the destination partitions of
the source partitions that ``plan.lane_of`` gives it; nobody else does, and of several processes that hold lane i only
the one with the newest epoch. There are no clever retries: after any doubtful answer the lane begins anew with
a new epoch, which aborts what was open, fences what was delayed, and then reads what was decided.
"""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kio.schema.produce.v9 import ProduceResponse

from appliance.errors import ApplianceError, BrokerRefused, CopyRefused, Fenced, Superseded
from appliance.kafka import batch
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.metadata import Metadata
from appliance.kafka.offsets import Partition
from appliance.kafka.produce import Copy, check_produced, produce
from appliance.kafka.records import Record
from appliance.kafka.transactions import (
    Producer,
    add_partitions,
    end_transaction,
    init_producer_id,
)
from appliance.replicator.memory import (
    OPERATOR,
    Gap,
    Memory,
    Owner,
    encode_gap,
    encode_owner,
    encode_position,
    packed,
)
from appliance.replicator.naming import Naming
from appliance.replicator.patience import until_free
from appliance.replicator.plan import Replica
from appliance.replicator.portion import LedgerRow, Portion, advanced, by_partition, ledger, rounds
from appliance.replicator.position import Position
from appliance.replicator.recall import peek_memory, read_memory
from appliance.replicator.states import (
    LANE,
    TRANSACTION,
    LaneEvent,
    LaneState,
    Machine,
    TransactionEvent,
    TransactionState,
)

_COMPLETING = frozenset({"CONCURRENT_TRANSACTIONS"})
_LOADING = _COMPLETING | {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}
_NAME_PATIENCE = 3.0
_NAME_PAUSE = 0.1


class Lane:
    """One lane in one process; see the module for what it owns."""

    def __init__(
        self, index: int, destination: KafkaCluster, naming: Naming, owner: Owner, transaction_timeout: float
    ) -> None:
        self.index = index
        self.memory = Memory()
        self._seen = Memory()
        self._cluster = destination
        self._positions_partition: Partition = (naming.positions_topic, index)
        self._transactional_id = naming.transactional_id(index)
        self._owner = owner
        self._timeout = transaction_timeout
        self._machine = Machine(LANE, LaneState.COLD)
        self._producer: Producer | None = None
        self._sequences: dict[Partition, int] = {}
        self._named = False
        self._metadata: Metadata | None = None

    @property
    def state(self) -> LaneState:
        """Where it is in its life."""
        return self._machine.state

    async def start(self) -> None:
        """Fence the predecessor, then read what is remembered (invariant C).

        Raises:
            Fenced: somebody newer has the lane.
            PartitionStopped, BrokerBusy, BrokerRefused, Unreachable: the lane is cold again.
        """
        self._machine.on(LaneEvent.START)
        try:
            self._producer = await until_free(self._take_id, _LOADING)
            self._sequences.clear()
            self._named = False
            self._machine.on(LaneEvent.EPOCH_GRANTED)
            self.memory = await read_memory(self._cluster, *self._positions_partition)
            self._seen = Memory(owner=self.memory.owner, read_to=self.memory.read_to)
            self._metadata = await self._cluster.metadata([self._positions_partition[0]])
            self._machine.on(LaneEvent.POSITIONS_READ)
        except BaseException as error:
            self._fall(error)
            raise

    async def owner(self) -> Owner | None:
        """Who has the lane, as far as it is committed.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused: it cannot be found out.
        """
        await peek_memory(self._cluster, *self._positions_partition, self._seen)
        return self._seen.owner

    def is_owner(self, owner: Owner | None) -> bool:
        """Whether that is us."""
        return owner == self._owner

    async def taken_by(self) -> ApplianceError | None:
        """After ``Fenced``: who has the lane now, as an error to be shown.

        None when nobody has: the coordinator had given up our transaction, or the operator has changed a position, or
        an older replicator was late; the lane is cold again. A new owner leaves its name as soon as it has read what
        is remembered. Two replicators that start at once take some lanes each, and must agree on which of them stops.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused: it cannot be found out; the lane stays fenced.
        """
        deadline = time.monotonic() + _NAME_PATIENCE
        while time.monotonic() < deadline:
            owner = await self.owner()
            if owner is not None and owner.run == OPERATOR:
                break
            if owner is not None and owner != self._owner:
                if owner.run == self._owner.run:
                    return Superseded(f"lane {self.index} was taken by another task of this replicator")
                if self._owner.is_newer_than(owner):
                    break
                return Fenced(f"lane {self.index} by {owner}")
            await asyncio.sleep(_NAME_PAUSE)
        self._machine.on(LaneEvent.NOBODY_ELSE)
        return None

    def lose(self) -> None:
        """Somebody else has the lane: it is known before our next transaction finds out."""
        self._fall(Fenced(self._transactional_id))

    async def learn(self, destination_topics: Collection[str]) -> None:
        """Look up who leads topics before the lane, which has started, writes to them.

        What is remembered need not be read again for that: it is what the destination holds, since nobody else writes
        it as long as this lane's epoch is the newest (invariant B).

        Raises:
            Unreachable, BrokerRefused: nothing has changed.
        """
        assert self._metadata is not None
        found = await self._cluster.metadata(list(destination_topics))
        known = self._metadata.topics
        anew = {name for name, topic in found.topics.items() if name in known and known[name].id != topic.id}
        # A topic that was made anew under its name counts from 0 again.
        for partition in [partition for partition in self._sequences if partition[0] in anew]:
            del self._sequences[partition]
        self._metadata = replace(found, topics={**known, **found.topics})

    async def commit(
        self,
        portions: Sequence[Portion],
        base: Mapping[Replica, Position],
        gaps: Sequence[Gap] = (),
    ) -> list[LedgerRow]:
        """Write the portions, and the positions past them, in one transaction (invariant A).

        ``base`` holds positions that take the place of the remembered ones first: of replicas that have none yet, that
        stop, or that leave a gap behind, which ``gaps`` writes down in the same transaction (invariant F). The first
        transaction after a start leaves the owner's name; later on, one that has nothing to write is none.

        Raises:
            Fenced: somebody newer has the lane, which is over for us.
            Unreachable, BrokerBusy, BrokerRefused: doubtful; the lane is cold again.
        """
        taken = by_partition(portions)
        before = {
            r: base[r] if r in base else self.memory.positions[r.source_topic, r.partition] for r in {*base, *taken}
        }
        after = {(r.source_topic, r.partition): advanced(before[r], taken.get(r, ())) for r in before}
        now = _now()
        records = [encode_position(partition, held, now) for partition, held in after.items()]
        records += [encode_gap(gap, now) for gap in gaps]
        records += [] if self._named else [encode_owner(self.index, self._owner, now)]
        if not records:
            return []
        try:
            await self._write(taken, records)
        except BaseException as error:
            self._fall(error)
            raise
        self._named = True
        self.memory.positions.update(after)
        for gap in gaps:
            self.memory.add(gap)
        return ledger(taken, self.index, {replica: held.next_offset for replica, held in before.items()}, now)

    async def _take_id(self) -> Producer:
        # A question that was answered with an error has changed nothing: it may be asked again, of another broker.
        self._cluster.forget_coordinator(self._transactional_id)
        coordinator = await self._cluster.coordinator(self._transactional_id)
        return await init_producer_id(coordinator, self._transactional_id, self._timeout)

    async def _write(self, taken: Mapping[Replica, Sequence[Portion]], remembered: Sequence[Record]) -> None:
        """One transaction: the copies and what is to be remembered."""
        transaction = Machine(TRANSACTION, TransactionState.EMPTY)
        producer = self._producer
        assert producer is not None
        try:
            coordinator = await self._cluster.coordinator(self._transactional_id)
            turns = rounds(taken)
            written = [*{to for turn in turns for to, _ in turn}, self._positions_partition]
            await until_free(lambda: add_partitions(coordinator, producer, written), _COMPLETING)
            transaction.on(TransactionEvent.PARTITIONS_ADDED)
            answers: list[_Sent] = []
            for turn in turns:
                firsts = {to: outgoing.first_offset for to, outgoing in turn}
                sent = await self._send([(to, outgoing.data, outgoing.records) for to, outgoing in turn])
                answers += [_Sent(answer, firsts) for answer in sent]
            transaction.on(TransactionEvent.COPIES_SENT)
            for data, count in packed(remembered):
                sent = await self._send([(self._positions_partition, data, count)])
                answers += [_Sent(answer, {}) for answer in sent]
            transaction.on(TransactionEvent.POSITIONS_SENT)
            await _all_written(answers)
            transaction.on(TransactionEvent.ACKNOWLEDGED)
            await end_transaction(coordinator, producer, self._timeout)
            transaction.on(TransactionEvent.COMMIT_ANSWERED)
        except BaseException:
            transaction.on(TransactionEvent.DOUBT)
            raise

    async def _send(
        self, batches: Collection[tuple[Partition, memoryview | bytes, int]]
    ) -> list[asyncio.Future[ProduceResponse]]:
        """One Produce for each leader."""
        producer, metadata = self._producer, self._metadata
        assert producer is not None
        assert metadata is not None
        by_leader: dict[int, list[Copy]] = {}
        for partition, data, count in batches:
            sequence = self._sequences.get(partition, 0)
            self._sequences[partition] = batch.next_sequence(sequence, count)
            by_leader.setdefault(metadata.leader(*partition), []).append(Copy(partition, data, sequence))
        answers = []
        for leader, led in by_leader.items():
            connection = await self._cluster.broker(leader, "produce")
            answers.append(await produce(connection, producer, led))
        return answers

    def _fall(self, error: BaseException) -> None:
        self._producer = None
        self._cluster.forget_coordinator(self._transactional_id)
        self._machine.on(LaneEvent.FENCED if isinstance(error, Fenced) else LaneEvent.DOUBT)


class _Sent(NamedTuple):
    """A Produce under way: its answer, and the first source offset of each partition's batch in it."""

    answer: asyncio.Future[ProduceResponse]
    first_offsets: Mapping[Partition, int]


async def _all_written(sent: Collection[_Sent]) -> None:
    for answer, first_offsets in sent:
        try:
            check_produced(await answer)
        except CopyRefused as error:
            if error.partition in first_offsets:
                error.first_offset = first_offsets[error.partition]
                raise
            raise BrokerRefused(str(error), error.code) from error


def _now() -> int:
    return time.time_ns() // 1_000_000
