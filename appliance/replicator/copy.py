"""One lane's work within a slice: start if it is cold, then transaction after transaction until the slice ends."""

import asyncio
import contextlib
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.errors import ApplianceError, CopyRefused, Fenced, GapFound, PartitionStopped
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.configs import largest_batches
from appliance.kafka.offsets import Bound, Partition, list_offsets
from appliance.replicator.buffer import Arrivals, Limits
from appliance.replicator.failing import Notice
from appliance.replicator.intake import Intake
from appliance.replicator.lane import Lane
from appliance.replicator.ledger import Ledger
from appliance.replicator.memory import Gap
from appliance.replicator.plan import Replica
from appliance.replicator.portion import LedgerRow
from appliance.replicator.position import Position
from appliance.replicator.states import LaneState
from appliance.settings.values import EngineSettings, OnGap

_BACKOFF_MAX = 5.0
_CYCLE = 2
"""How many times as long as a transaction takes it is at least from one's begin to the next one's."""

_NEWEST = 1 / 8
"""How much the newest transaction counts in what one takes: a broker's pause is not to be waited for twice."""

_SILENCE = 3.0
"""After so many seconds without a record a lane looks whether it is another's by now."""

_TOO_LARGE = frozenset({"MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"})


@dataclass(slots=True)
class Copier:
    """A lane with what it reads from and what it owns; it outlives the slice, and stays warm."""

    lane: Lane
    source: KafkaCluster
    destination: KafkaCluster
    intake: Intake
    engine: EngineSettings
    notice: Notice
    replicas: tuple[Replica, ...] = ()
    latest: frozenset[str] = frozenset()
    arrived: Arrivals = field(default_factory=Arrivals)
    _taken_in: set[Replica] = field(default_factory=set)
    _refused: dict[Replica, tuple[int, str]] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _failures: int = 0
    _wrote: bool = False
    _took: float = 0.0

    def assign(self, replicas: Sequence[Replica], latest: frozenset[str]) -> None:
        """Copy these partitions from now on; new ones of the topics in ``latest`` begin at their end."""
        removed = set(self.replicas).difference(replicas)
        self.intake.forget(removed)
        self._taken_in -= removed
        self._refused = {replica: why for replica, why in self._refused.items() if replica not in removed}
        self.replicas, self.latest = tuple(replicas), latest

    async def run(self, stopping: asyncio.Event) -> list[LedgerRow]:
        """Copy until ``stopping``, which sets ``arrived`` too; a transaction that has begun is finished."""
        ledger = Ledger()
        await self._look_for_others(stopping)
        while not stopping.is_set() and self.lane.state is not LaneState.FENCED:
            try:
                if self.lane.state is LaneState.COLD:
                    await self._start()
                if len(self._taken_in) < len(self.replicas):
                    await self._take_in([replica for replica in self.replicas if replica not in self._taken_in])
                    self.notice(self._name, None)
                ledger.add(await self._transact(stopping))
                self._failures = 0
            except CopyRefused as error:
                self._refuse(error)
            except Fenced:
                await self._find_out_by_whom(stopping)
            except ApplianceError as error:
                self.notice(self._name, error)
                await self._back_off(stopping)
        return ledger.rows

    @property
    def _name(self) -> str:
        return f"lane {self.lane.index}"

    async def _start(self) -> None:
        """Fence, read what is remembered, and leave our name, for which whoever was fenced waits."""
        self.intake.forget(self.replicas)
        self._taken_in.clear()
        await self.lane.start()
        await self.lane.commit([], await self._first_positions(self.replicas))

    async def _take_in(self, replicas: Sequence[Replica]) -> None:
        """Have the intake read these partitions on from what is remembered: all of them, or those that are added.

        Cut off at any await, it is done again: what it has remembered by then is found, and nothing of it was read yet.
        """
        topics = {replica.destination_topic for replica in replicas}
        await self.lane.learn(topics)
        await self.lane.commit([], await self._first_positions(replicas))
        self._sizes |= await largest_batches(self.destination, topics)
        for replica in replicas:
            fault = _identity_fault(replica, self._position(replica))
            if fault is None:
                self._read(replica)
            else:
                await self._settle([(replica, fault)])
            self._taken_in.add(replica)

    def _read(self, replica: Replica) -> None:
        position = self._position(replica)
        refusal = self._refused.get(replica)
        limits = Limits(self._sizes[replica.destination_topic], *(refusal or ()))
        self.intake.read(replica, position.next_offset, position.leader_epoch, self.arrived, limits)

    async def _first_positions(self, replicas: Sequence[Replica]) -> dict[Replica, Position]:
        """Where partitions begin that have no position yet: remembered before the first record is copied."""
        new = {_key(replica): replica for replica in replicas if _key(replica) not in self.lane.memory.positions}
        if not new:
            return {}
        metadata = await self.source.metadata(sorted({topic for topic, _ in new}))
        at_end = {key for key in new if key[0] in self.latest}
        offsets = await list_offsets(self.source, metadata, at_end, Bound.STABLE_END)
        offsets |= await list_offsets(self.source, metadata, new.keys() - at_end, Bound.START)
        return {r: Position(r.source_id, r.destination_id, offsets[key]) for key, r in new.items()}

    async def _transact(self, stopping: asyncio.Event) -> list[LedgerRow]:
        """One transaction with what has arrived; none when that is nothing for long."""
        try:
            async with asyncio.timeout(_SILENCE):
                await self.arrived.wait()
        except TimeoutError:
            await self._look_for_others(stopping)
            return []  # the lane may be another's, or cold, by now
        self.arrived.clear()
        portions = self.intake.take(self.arrived, self.engine.commit_bytes)
        rows: list[LedgerRow] = []
        if portions:
            began = time.monotonic()
            rows = await self.lane.commit(portions, self._moving({portion.replica for portion in portions}))
            self._wrote = True
            self._took += (time.monotonic() - began - self._took) * _NEWEST
            await self._gather(began + min(_CYCLE * self._took, self.engine.commit_interval), stopping)
        await self._settle(self.intake.stopped(self.arrived))
        if self.arrived.filled:
            self.arrived.set()
        return rows

    async def _gather(self, until: float, stopping: asyncio.Event) -> None:
        """What comes in a trickle is collected for a moment, rather than committed record by record."""
        while (pause := until - time.monotonic()) > 0 and not stopping.is_set() and not self.intake.full(self.arrived):
            self.arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.arrived.wait()

    def _moving(self, replicas: Iterable[Replica]) -> dict[Replica, Position]:
        """The positions of those replicas that were stopped and move again."""
        held = {replica: self._position(replica) for replica in replicas}
        for replica in [replica for replica, position in held.items() if position.stopped]:
            self.notice(_label(replica), None)
        return {replica: position.go_on() for replica, position in held.items() if position.stopped}

    async def _settle(self, stops: Sequence[tuple[Replica, PartitionStopped]]) -> None:
        """Remember why partitions stop; or go on after a gap and write it down, if the operator has chosen that."""
        for replica, reason in stops:
            if isinstance(reason, GapFound) and self.engine.on_gap is OnGap.RECORD:
                await self._go_on_after(replica, reason)
                continue
            self.notice(_label(replica), reason)
            held = self._position(replica)
            stopped = held.stop(str(reason), _now())
            if stopped is not held:
                await self.lane.commit([], {replica: stopped})

    async def _go_on_after(self, replica: Replica, gap: GapFound) -> None:
        """The gap and the position past it commit together (invariants A and F)."""
        start = gap.next
        if start < 0:
            metadata = await self.source.metadata([replica.source_topic])
            start = (await list_offsets(self.source, metadata, [_key(replica)], Bound.START))[_key(replica)]
        held = self._position(replica)
        entry = Gap(_key(replica), held.source_id, gap.first, gap.next, gap.cause, _now())
        moved = held.go_on().begin_again(replica.source_id, replica.destination_id, start)
        await self.lane.commit([], {replica: moved}, [entry])
        self.notice(f"{_label(replica)} gap", gap)
        self._read(replica)

    def _refuse(self, error: CopyRefused) -> None:
        """A batch that the destination will not take: read up to it the next time, and stop there."""
        by_copy = {(replica.destination_topic, replica.partition): replica for replica in self.replicas}
        replica = by_copy[error.partition]
        at = error.first_offset
        remedy = "; raise its max.message.bytes" if error.code in _TOO_LARGE else ""
        self._refused[replica] = (at, f"{_label(replica)} offset {at} is refused: {error}{remedy}")

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
            except ApplianceError:
                await self._back_off(stopping)
                if stopping.is_set():
                    return
        if error is None:
            self._refused.clear()
        else:
            self.notice(self._name, error)

    def _position(self, replica: Replica) -> Position:
        return self.lane.memory.positions[_key(replica)]

    async def _back_off(self, stopping: asyncio.Event) -> None:
        self._failures += 1
        pause = min(_BACKOFF_MAX, 0.05 * 2**self._failures)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause * random.uniform(0.5, 1)):
                await stopping.wait()


def _identity_fault(replica: Replica, position: Position) -> GapFound | None:
    """Why a position does not belong to the topics of today (invariant G)."""
    changed: Mapping[str, bool] = {
        f"source topic {replica.source_topic}": position.source_id != replica.source_id,
        f"destination topic {replica.destination_topic}": position.destination_id != replica.destination_id,
    }
    for what, is_changed in changed.items():
        if is_changed:
            cause = f"{what} was deleted and made anew"
            return GapFound(f"{_label(replica)}: {cause} since it was copied", position.next_offset, -1, cause)
    return None


def _key(replica: Replica) -> Partition:
    return replica.source_topic, replica.partition


def _label(replica: Replica) -> str:
    return f"{replica.source_topic}-{replica.partition}"


def _now() -> int:
    return time.time_ns() // 1_000_000
