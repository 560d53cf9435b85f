"""One process's ownership of a lane: its transactional id, the newest epoch, and the name of the owner.

Who may write what (invariant B): lane i writes partition i of the positions topic and the destination partitions of
the source partitions that the link's layout gives it; nobody else does, and of several processes with lane i only the
one with the newest epoch. A lane that was fenced because the layout changes finds that in its checkpoint. There are no
clever retries: after any doubtful answer the lane restarts with a new epoch, which aborts open transactions, fences
delayed writes, and then reads the committed state.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from appliance.clock import loop_seconds, now_ms
from appliance.errors import ApplianceError, BrokerBusy, Fenced, LayoutChanged, PartitionsUnavailable, Superseded
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.transactions import Producer, init_producer_id
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition
from appliance.kafka.records.records import Record
from appliance.link.client.checkpoint_log import peek_checkpoint, read_checkpoint
from appliance.link.client.origins import NAMES, Origins
from appliance.link.client.retry import is_loading, retry_while_busy
from appliance.link.client.writer import Remember, Round, Writer
from appliance.link.model.checkpoint import OPERATOR, LaneCheckpoint, Mark, Owner
from appliance.link.model.checkpoint_records import encode_mark, encode_owner, encode_sql
from appliance.link.model.link_sql import LinkSql, SqlChange, newest_change
from appliance.link.model.naming import PRODUCERS, Naming
from appliance.link.model.producers import encode_producer
from appliance.link.model.standby import SESSION_SECONDS
from appliance.link.model.states import LANE, LaneEvent, LaneState, StateMachine
from appliance.link.model.topic_configs import NAMES_IN_SYNC

_NAME_PATIENCE = 3.0
_NAME_PAUSE = 0.1


@dataclass(eq=False)
class OwnedLane:
    """Lane ``index`` in one process: it fences its predecessor, reads the checkpoint, and writes records there.

    ``layout`` is the number of the layout that it belongs to; with None it only fences and reads. ``names`` are those
    that lanes leave at the destination, one value for all lanes of a process; without it the lane copies nothing. A
    lane is ``named`` once this epoch has left the owner's name, and ``nameless`` is the reason that it copies without
    having left its name as a producer.
    """

    index: int
    cluster: Cluster
    naming: Naming
    owner: Owner
    transaction_timeout: float
    layout: int | None = 0
    names: Origins | None = None
    checkpoint: LaneCheckpoint = field(init=False, default_factory=LaneCheckpoint)
    transactional_id: str = field(init=False)
    positions: Partition = field(init=False)
    """The lane's partition of the positions topic."""
    named: bool = field(init=False, default=False)
    nameless: ApplianceError | None = field(init=False, default=None)
    _latest: LaneCheckpoint = field(init=False, default_factory=LaneCheckpoint)
    _machine: StateMachine[LaneState, LaneEvent] = field(init=False)
    _writer: Writer | None = field(init=False, default=None)
    _outdated: Fenced | None = field(init=False, default=None)
    _owned: float = field(init=False, default=0.0)
    """The latest time at which the lane was ours, in seconds."""

    def __post_init__(self) -> None:
        self.transactional_id = self.naming.transactional_id(self.index)
        self.positions = Partition(self.naming.positions_topic, self.index)
        self._machine = StateMachine(LANE, LaneState.COLD)

    @property
    def state(self) -> LaneState:
        """The lane's state."""
        return self._machine.state

    @property
    def in_transaction(self) -> bool:
        """True when a transaction is open: a cancel now would leave it open until somebody aborts it."""
        return self._writer is not None and self._writer.in_transaction

    @property
    def writer(self) -> Writer:
        """The writer of the started lane's epoch."""
        assert self._writer is not None
        return self._writer

    @property
    def producer(self) -> Producer:
        """The epoch in which the started lane writes."""
        return self.writer.producer

    async def start(self) -> None:
        """Fence the predecessor, leave our name, then read the checkpoint (invariant C).

        An operator's name comes with the changed positions: a replicator that sees it takes the lane back.

        Raises:
            Fenced: a newer owner has the lane.
            LayoutChanged: the lane is of another layout; it is over for us.
            ApplianceError: the lane is cold again.
        """
        self._machine.on(LaneEvent.START)
        try:
            await self._leave_to_a_newer_run()
            producer = await retry_while_busy(self.fence, is_loading)
            self._machine.on(LaneEvent.EPOCH_GRANTED)
            self.checkpoint = await self.read_checkpoint(producer)
            self.require_layout()
            self._latest = LaneCheckpoint(owner=self.checkpoint.owner, read_to=self.checkpoint.read_to)
            self._owned = loop_seconds()
            self._machine.on(LaneEvent.POSITIONS_READ)
        except BaseException as error:
            self._lose(error)
            raise

    async def _leave_to_a_newer_run(self) -> None:
        """Fenced if a newer run has the lane: one that was cut off for longer than a session must not disturb it."""
        cut_off = self._latest.owner and loop_seconds() - self._owned > SESSION_SECONDS
        owner = await self.find_owner() if cut_off else None
        if owner and owner.run != OPERATOR and owner.is_newer_than(self.owner):
            raise Fenced(f"lane {self.index} by {owner}")

    async def fence(self) -> Producer:
        """A new epoch of the transactional id: it fences all earlier ones, and aborts their transaction."""
        # An error answer to a question means no change: it may be repeated, with another broker.
        self.cluster.forget_coordinator(self.transactional_id)
        coordinator = await self.cluster.coordinator(self.transactional_id)
        return await init_producer_id(coordinator, self.transactional_id, self.transaction_timeout)

    async def read_checkpoint(self, producer: Producer) -> LaneCheckpoint:
        """Commit a mark, and read up to it: this finds everything that was committed before.

        The lane leaves its name as a producer in the same transaction, and so before its first copy.
        """
        topic, _ = self.positions
        metadata = await self.cluster.metadata([topic, self.naming.offsets_topic, PRODUCERS])
        shared, timeout = self.naming.sharing.others_write, self.transaction_timeout
        keeps_times = shared or self.naming.keeps_times
        self._writer = Writer(self.cluster, producer, self.positions, metadata, timeout, shared, keeps_times)
        mark, now = Mark(self.index, producer.id, producer.epoch), now_ms()
        self.named = self.owner.run != OPERATOR
        name = [encode_owner(self.index, self.owner, now)] if self.named else []
        own_records: dict[Partition, Sequence[Record]] = {self.positions: [encode_mark(mark, now), *name]}
        if record := await self.producer_name(metadata, producer):
            own_records[NAMES] = [record]
        try:
            await self._writer.write((), lambda *_: own_records)
        except PartitionsUnavailable as error:  # nothing was added to the transaction
            if shared or error.reasons.keys() != {NAMES}:
                raise
            del own_records[NAMES]
            self.nameless = _nameless(error)
            await self._writer.write((), lambda *_: own_records)
        checkpoint = LaneCheckpoint()
        await read_checkpoint(self.cluster, topic, mark, checkpoint)
        return checkpoint

    async def producer_name(self, metadata: Metadata, producer: Producer) -> Record | None:
        """The name to leave; None of a lane that copies nothing, or that keeps to itself and may not leave one."""
        self.nameless = None
        if self.names is None or (PRODUCERS not in metadata.topics and not self.naming.sharing.others_write):
            return None
        try:
            await self.names.refresh()
            if metadata.leader(*NAMES) == NOBODY:
                raise BrokerBusy(f"{PRODUCERS} of the {self.cluster.side} has no leader now", "LEADER_NOT_AVAILABLE")
            if not self.naming.sharing.others_write and metadata.topics[PRODUCERS].lacks_replicas(0, NAMES_IN_SYNC):
                # A transaction that has touched it could not end, not even by an abort, and the lane would wait.
                raise BrokerBusy(f"{PRODUCERS} has too few replicas in sync now", "NOT_ENOUGH_REPLICAS")
        except ApplianceError as error:
            if self.naming.sharing.others_write:
                raise
            self.nameless = _nameless(error)
            return None
        before = self.names.producers.lanes.get(producer.id)
        return encode_producer(metadata.cluster_id, producer, self.naming, now_ms(), before)

    def require_layout(self) -> None:
        """Check that the lane is still of our layout: its predecessor is fenced, so that this cannot change unseen."""
        if self.layout is not None and not self.checkpoint.allows(self.layout):
            record = self.checkpoint.layout
            now = "being changed" if record and record.changing else "changed"
            raise LayoutChanged(f"lane {self.index}: the lanes of {self.naming.replicator} are {now}: run this again")

    async def agree_on_sql(self, sql: LinkSql) -> None:
        """Write the run's SQL down, from the started lane's positions on, unless that is done.

        Raises:
            Fenced: a newer run has written another down: the lane is over for us.
        """
        newest, owner, now = newest_change(self.checkpoint.sql.values()), self.owner, now_ms()
        before = newest.sql if newest else LinkSql()
        # An earlier change to the same SQL does not count: partitions have come from lanes that saw others since.
        if before.is_that_of(sql) and before.number >= sql.number:
            return
        offsets = {partition: position.next_offset for partition, position in self.checkpoint.positions.items()}
        change = SqlChange(sql, owner.run, owner.generation, now, offsets)
        if newest is not None and newest.order > change.order:
            self._outdated = Fenced(f"lane {self.index} by run {newest.run}, which has changed the link's SQL")
            self._lose(self._outdated)
            raise self._outdated
        await self.remember([encode_sql(change, now)])
        self.checkpoint.add(change)

    async def check_owner(self) -> None:
        """Check for another owner of the lane before our next transaction does.

        Raises:
            Fenced: there is one.
        """
        if await self.find_owner() != self.owner:
            fenced = Fenced(self.transactional_id)
            self._lose(fenced)
            raise fenced
        self._owned = loop_seconds()

    async def taken_by(self) -> ApplianceError | None:
        """The new owner of the lane after ``Fenced``, as an error to show; if it is unknown, the lane stays fenced.

        None when there is none: the coordinator gave up our transaction, the operator changed a position, or an older
        replicator was late; the lane is cold again. A new owner leaves its name as soon as it has read the checkpoint.
        Two replicators that start at once take some lanes each, and must agree on which of them stops.
        """
        if self._outdated:
            return self._outdated
        deadline = loop_seconds() + _NAME_PATIENCE
        while loop_seconds() < deadline:
            owner = await self.find_owner()
            if owner is not None and owner.run == OPERATOR:
                break
            if owner is not None and owner != self.owner:
                if owner.run == self.owner.run:
                    return Superseded(f"lane {self.index} was taken by another task of this replicator")
                if self.owner.is_newer_than(owner):
                    break
                return Fenced(f"lane {self.index} by {owner}")
            await asyncio.sleep(_NAME_PAUSE)
        self._machine.on(LaneEvent.NOBODY_ELSE)
        return None

    async def find_owner(self) -> Owner | None:
        """The committed owner of the lane."""
        await peek_checkpoint(self.cluster, *self.positions, self._latest)
        return self._latest.owner

    def restart(self) -> None:
        """Make the lane cold after a change that only a new start can judge."""
        self._writer = None
        self._machine.on(LaneEvent.DOUBT)

    async def learn(self, copies: Collection[str]) -> Metadata:
        """Look up the leaders of topics before the started lane writes to them; the metadata of all of its topics.

        The checkpoint need not be read again: nobody else writes it as long as this lane's epoch is the newest
        (invariant B).
        """
        writer = self.writer
        writer.learn(await self.cluster.metadata(list(copies)))
        return writer.metadata

    def has_moved(self, metadata: Metadata) -> bool:
        """True when a copy's leader has changed since its end was checked."""
        return any(0 <= epoch < metadata.leader_epoch(*copy) for copy, epoch in self.writer.epochs.items())

    async def write(self, copies: Sequence[Round], remember: Remember) -> None:
        """Commit one transaction; after any error the lane is cold, or fenced for good.

        Raises:
            Fenced: somebody newer has the lane, which is over for us.
            ApplianceError: the outcome is unknown.
        """
        try:
            await self.writer.write(copies, remember)
            self._owned = loop_seconds()
        except BaseException as error:
            self._lose(error)
            raise

    async def remember(self, records: Sequence[Record]) -> None:
        """Write records other than positions and gaps into the lane's partition, in their own transaction."""
        await self.write((), lambda *_: {self.positions: records})

    def _lose(self, error: BaseException) -> None:
        self._writer = None
        self.cluster.forget_coordinator(self.transactional_id)
        self._machine.on(LaneEvent.FENCED if isinstance(error, Fenced | LayoutChanged) else LaneEvent.DOUBT)


def _nameless(error: ApplianceError) -> ApplianceError:
    text = f"lanes copy without leaving their names in {PRODUCERS}, for links of identical names from there: {error}"
    return ApplianceError(text)
