"""The work of one lane: a start when it is cold, then transaction after transaction until it is told to stop."""

import asyncio
import contextlib
import random
import time
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.errors import ApplianceError, CopyRefused, Fenced, GapFound, PartitionStopped, PartitionsUnavailable
from appliance.kafka.client.configs import WriteLimits, write_limits
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import Metadata
from appliance.link.model.checkpoint import Gap, StartOffsets
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica
from appliance.link.model.states import LaneState
from appliance.replicator.model.chunk import LedgerRow
from appliance.replicator.model.held_back import HeldBack
from appliance.replicator.model.ledger import Ledger
from appliance.replicator.model.problem_log import Notice, ProblemLog
from appliance.replicator.read.buffer import Limits, ReadyQueue
from appliance.replicator.read.source_reader import SourceReader
from appliance.replicator.write.admission import admit, made_anew_since, too_few_replicas
from appliance.replicator.write.lane import Lane
from appliance.settings.values import EngineSettings, OnGap

_BACKOFF_MAX = 5.0
_CYCLE = 2
"""Minimum spacing of transaction starts, as a multiple of the average commit time."""

_NEWEST = 1 / 8
"""EWMA weight of the newest commit time: a broker's pause is not to be waited for twice."""

_SILENCE = 3.0
"""After so many seconds without a record a lane looks whether it is another's by now."""

_COPIES_INTERVAL = 5.0
"""Interval of looks at the leaders of the copies and their replicas in sync, in seconds."""

_ROOM_INTERVAL = 3.0
"""Interval of looks whether a copy that refused a batch takes larger ones by now, in seconds."""

_TOO_LARGE = frozenset({"MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """The source offset of a batch that the destination will not take, and why; ``size`` is the limit of that time."""

    offset: int
    reason: str
    size: int


@dataclass(slots=True)
class LaneRunner:
    """A lane with what it reads from and what it owns, and what it has copied by now."""

    lane: Lane
    source: Cluster
    destination: Cluster
    reader: SourceReader
    engine: EngineSettings
    notice: Notice
    replicas: tuple[Replica, ...] = ()
    starts: Mapping[str, StartOffsets] = field(default_factory=dict)
    ready: ReadyQueue = field(default_factory=ReadyQueue)
    ledger: Ledger = field(default_factory=Ledger)
    _assigned: tuple[tuple[Replica, ...], Mapping[str, StartOffsets]] | None = None
    _running: bool = False
    _taken_in: set[Replica] = field(default_factory=set)
    _held_back: HeldBack = field(default_factory=HeldBack)
    _unwritable: set[Replica] = field(default_factory=set)
    _refused: dict[Replica, Refusal] = field(default_factory=dict)
    _limits: dict[str, WriteLimits] = field(default_factory=dict)
    _room_looked_at: float = 0.0
    _copies_looked_at: float = 0.0
    _failures: int = 0
    _problems: ProblemLog = field(init=False)
    _wrote: bool = False
    _took: float = 0.0

    def __post_init__(self) -> None:
        self._problems = ProblemLog(self.notice)

    def assign(self, replicas: Sequence[Replica], starts: Mapping[str, StartOffsets]) -> None:
        """Copy these partitions from now on; ``starts`` says where those begin that the link was made with.

        A lane that runs does so when the transaction is over that it may be in.
        """
        self._assigned = tuple(replicas), starts
        self.ready.set()
        if not self._running:
            self._apply()

    def _apply(self) -> None:
        if self._assigned is None:
            return
        (replicas, starts), self._assigned = self._assigned, None
        removed = set(self.replicas).difference(replicas)
        for replica in removed:
            self._problems.over(replica.name)
        self.reader.forget(removed)
        self._taken_in -= removed
        self._unwritable -= removed
        self._held_back.keep(replicas)
        self._refused = {replica: why for replica, why in self._refused.items() if replica not in removed}
        self.replicas, self.starts = replicas, starts

    async def run(self, stopping: asyncio.Event) -> None:
        """Copy until ``stopping``, which sets ``ready`` too; a transaction that has begun is finished."""
        self._running = True
        try:
            await self._look_for_others(stopping)
            await self._copy(stopping)
        finally:
            self._running = False

    async def _copy(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set() and self.lane.state is not LaneState.FENCED:
            self._apply()
            try:
                if self._is_cold() or self._due():
                    await _unless_set(stopping, self._get_ready())
                    if stopping.is_set():
                        break
                    if self._is_cold():
                        continue
                self._problems.over(self._name)
                await self._look_at_copies()
                await self._look_for_room()
                if self._is_cold():
                    continue
                self.ledger.add(await self._transact(stopping))
                self._failures = 0
            except CopyRefused as error:
                self._refuse(error)
            except PartitionsUnavailable as error:
                await self._hold_back(error, stopping)
            except Fenced:
                await self._find_out_by_whom(stopping)
            except ApplianceError as error:
                self._problems.tell(self._name, error)
                await self._back_off(stopping)

    def _is_cold(self) -> bool:
        return self.lane.state is LaneState.COLD

    @property
    def _name(self) -> str:
        return f"lane {self.lane.index}"

    async def _get_ready(self) -> None:
        """Start a lane that is cold, and take in the partitions that are due; cut off at any await it is done again."""
        if self._is_cold():
            await self._start()
        if due := self._due():
            await self._take_in(due)

    async def _start(self) -> None:
        """Fence, leave our name, for which whoever was fenced waits, and read what is remembered."""
        self.reader.forget(self.replicas)
        self._taken_in.clear()
        await self.lane.start()

    def _due(self) -> list[Replica]:
        """The partitions that are to be taken in now."""
        if len(self._taken_in) == len(self.replicas):
            return []
        return self._held_back.due((r for r in self.replicas if r not in self._taken_in), _clock())

    async def _take_in(self, replicas: Sequence[Replica]) -> None:
        """Have the reader read these partitions on from what is remembered: all of them, or those that are added.

        Cut off at any await, it is done again: what it has remembered by then is found, and nothing of it was read yet.
        """
        admission = await admit(self.source, self.destination, self.lane, replicas, self.starts)
        if self._have_changed(admission.metadata):
            self.lane.begin_anew()
            return
        self._limits |= admission.limits
        await self.lane.commit([], admission.positions)
        self.lane.expect_ends(admission.ends)
        for replica in replicas:
            if replica in admission.waiting:
                self._wait(replica, admission.waiting[replica])
                continue
            self._held_back.tried(replica)
            if replica not in admission.stops:
                self._read(replica)
            elif not await self._has_settled(replica, admission.stops[replica]):
                continue
            self._taken_in.add(replica)
            well = replica not in self._unwritable and self._held_back.went_well(replica)
            if well and not self._position(replica).stopped:
                self._problems.over(replica.name)

    async def _has_settled(self, replica: Replica, reason: PartitionStopped) -> bool:
        """True when a partition has stopped, or gone on after a gap; what keeps one from it keeps no other waiting."""
        try:
            await self._settle([(replica, reason)])
        except ApplianceError as error:
            if self.lane.state is not LaneState.COPYING:
                raise
            self._wait(replica, error)
            return False
        return True

    def _read(self, replica: Replica) -> None:
        position = self._position(replica)
        refusal, size = self._refused.get(replica), self._limits[replica.destination_topic].batch_bytes
        limits = Limits(size, refusal.offset, refusal.reason) if refusal else Limits(size)
        self.reader.read(replica, position.next_offset, position.leader_epoch, self.ready, limits)

    def _wait(self, replica: Replica, error: ApplianceError) -> None:
        """Leave a partition out for now."""
        self._problems.tell(replica.name, error)
        self._held_back.add(replica, _clock())

    async def _hold_back(self, error: PartitionsUnavailable, stopping: asyncio.Event) -> None:
        """Leave out the partitions whose copies cannot be written now; the lane, which is cold, goes on with others."""
        by_copy = {replica.copy: replica for replica in self.replicas}
        for copy, reason in error.reasons.items():
            if copy in by_copy:
                self._unwritable.add(by_copy[copy])
                self._wait(by_copy[copy], reason)
        if not by_copy.keys() & error.reasons.keys():
            self._problems.tell(self._name, error)
            await self._back_off(stopping)

    async def _transact(self, stopping: asyncio.Event) -> list[LedgerRow]:
        """One transaction with what has arrived; none when that is nothing for long, or others may be tried again."""
        pause = self._held_back.pause(_clock())
        try:
            async with asyncio.timeout(min(_SILENCE, pause)):
                await self.ready.wait()
        except TimeoutError:
            if pause < _SILENCE:
                return []
            await self._look_for_others(stopping)
            return []  # the lane may be another's, or cold, by now
        self.ready.clear()
        chunks = self.reader.take(self.ready, self.engine.commit_bytes)
        rows: list[LedgerRow] = []
        if chunks:
            began = _clock()
            replicas = {chunk.replica for chunk in chunks}
            rows = await self.lane.commit(chunks, self._moving(replicas))
            self._wrote = True
            self._wrote_to(replicas)
            self._took += (_clock() - began - self._took) * _NEWEST
            await self._gather(began + min(_CYCLE * self._took, self.engine.commit_interval), stopping)
        await self._settle(self.reader.stopped(self.ready))
        if self.ready.filled:
            self.ready.set()
        return rows

    async def _gather(self, until: float, stopping: asyncio.Event) -> None:
        """Collect what comes in a trickle for a moment, rather than commit it record by record."""
        while (pause := until - _clock()) > 0 and not stopping.is_set() and not self.reader.full(self.ready):
            self.ready.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.ready.wait()

    def _wrote_to(self, replicas: Collection[Replica]) -> None:
        for replica in self._unwritable.intersection(replicas):
            self._unwritable.discard(replica)
            self._held_back.went_well(replica)
            self._problems.over(replica.name)

    def _moving(self, replicas: Iterable[Replica]) -> dict[Replica, Position]:
        """The positions of those replicas that were stopped and move again."""
        held = {replica: self._position(replica) for replica in replicas}
        for replica in [replica for replica, position in held.items() if position.stopped]:
            self._problems.over(replica.name)
        return {replica: position.go_on() for replica, position in held.items() if position.stopped}

    async def _settle(self, stops: Sequence[tuple[Replica, PartitionStopped]]) -> None:
        """Remember why partitions stop; or go on after a gap and write it down, if the operator has chosen that."""
        for replica, reason in stops:
            if isinstance(reason, GapFound) and self.engine.on_gap is OnGap.RECORD:
                await self._go_on_after(replica, reason)
                continue
            self._problems.tell(replica.name, reason)
            held = self._position(replica)
            stopped = held.stop(str(reason), _now())
            if stopped is not held:
                await self.lane.commit([], {replica: stopped})

    async def _go_on_after(self, replica: Replica, gap: GapFound) -> None:
        """The gap and the position past it commit together (invariants A and F)."""
        start = gap.next
        if start < 0:
            metadata = await self.source.metadata([replica.source_topic])
            start = (await list_offsets(self.source, metadata, [replica.source], Bound.START))[replica.source]
        held = self._position(replica)
        entry = Gap(replica.source, held.source_id, gap.first, gap.next, gap.cause, _now())
        moved = held.go_on().begin_again(replica.source_id, replica.destination_id, start)
        await self.lane.commit([], {replica: moved}, [entry])
        self._problems.tell(f"{replica.name} gap", gap)
        self._read(replica)

    def _refuse(self, error: CopyRefused) -> None:
        """A batch that the destination will not take: read up to it the next time, and stop there."""
        by_copy = {replica.copy: replica for replica in self.replicas}
        replica = by_copy[error.partition]
        at, size = error.first_offset, self._limits[replica.destination_topic].batch_bytes
        remedy = "; raise its max.message.bytes" if error.code in _TOO_LARGE else ""
        self._refused[replica] = Refusal(at, f"{replica.name} offset {at} is refused: {error}{remedy}", size)

    async def _look_at_copies(self) -> None:
        """Notice what may have happened to copies that nothing was written to for a while.

        A copy with a new leader may have lost something (invariant J), and one that was deleted and made anew has
        (invariant G): only a start finds out, since nothing is under way then. One with too few replicas in sync would
        keep a transaction, and so the lane, from ending.
        """
        began = _clock()
        if not self._taken_in or began < self._copies_looked_at + _COPIES_INTERVAL:
            return
        metadata = await self.lane.learn({replica.destination_topic for replica in self._taken_in})
        self._copies_looked_at = _clock()
        if self._have_changed(metadata):
            self.lane.begin_anew()
            return
        for replica in list(self._taken_in):
            if refusal := too_few_replicas(replica, metadata, self._limits):
                self.reader.forget([replica])
                self._taken_in.discard(replica)
                self._wait(replica, refusal)

    def _have_changed(self, metadata: Metadata) -> bool:
        """True when a copy that is written to has another leader, or is another topic, than when it was looked at."""
        made_anew = any(made_anew_since(replica, metadata) for replica in self._taken_in)
        return made_anew or self.lane.has_moved(metadata)

    async def _look_for_room(self) -> None:
        """Try again what was refused where a copy takes larger batches by now."""
        now = _clock()
        if not self._refused or now < self._room_looked_at + _ROOM_INTERVAL:
            return
        self._room_looked_at = now
        limits, _ = await write_limits(self.destination, {replica.destination_topic for replica in self._refused})
        self._limits |= limits
        for replica, refusal in list(self._refused.items()):
            if self._limits[replica.destination_topic].batch_bytes > refusal.size:
                del self._refused[replica]
                self.reader.forget([replica])
                self._taken_in.discard(replica)

    async def _look_for_others(self, stopping: asyncio.Event) -> None:
        """A lane that has nothing to write would not find out that it is another's, or that the operator was there."""
        if self.lane.state is not LaneState.COPYING or self._wrote:
            self._wrote = False
            return
        try:
            owner = await self.lane.owner()
        except ApplianceError:
            return  # whatever it is, the next transaction meets it too
        if not self.lane.is_owner(owner):
            self.lane.lose()
            await self._find_out_by_whom(stopping)

    async def _find_out_by_whom(self, stopping: asyncio.Event) -> None:
        """Fenced: by another replicator, or by nobody but the coordinator's clock and the operator?"""
        while True:
            try:
                error = await self.lane.taken_by()
                break
            except ApplianceError as unknown:
                self._problems.tell(self._name, unknown)
                await self._back_off(stopping)
                if stopping.is_set():
                    return
        if error is None:
            self._refused.clear()
        else:
            self._problems.tell(self._name, error)

    def _position(self, replica: Replica) -> Position:
        return self.lane.checkpoint.positions[replica.source]

    async def _back_off(self, stopping: asyncio.Event) -> None:
        self._failures += 1
        pause = min(_BACKOFF_MAX, 0.05 * 2**self._failures)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause * random.uniform(0.5, 1)):
                await stopping.wait()


async def _unless_set(stopping: asyncio.Event, work: Coroutine[object, object, None]) -> None:
    """Do the work, or cut it off once ``stopping`` is set: a coordinator that is busy may be waited for long."""
    doing, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([doing, stopped], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        doing.cancel()  # nothing, where it is done
        await asyncio.gather(doing, stopped, return_exceptions=True)
    if not doing.cancelled():
        doing.result()


def _now() -> int:
    return time.time_ns() // 1_000_000


def _clock() -> float:
    return asyncio.get_running_loop().time()
