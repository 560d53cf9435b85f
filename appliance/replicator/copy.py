"""One lane's work within a slice: start if it is cold, then transaction after transaction until the slice ends."""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from appliance.errors import ApplianceError, PartitionStopped
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.offsets import Bound, list_offsets
from appliance.replicator.intake import Intake
from appliance.replicator.lane import Lane
from appliance.replicator.plan import Replica
from appliance.replicator.portion import LedgerRow
from appliance.replicator.position import Position
from appliance.replicator.states import LaneState
from appliance.settings.values import EngineSettings

_BACKOFF_MAX = 5.0

LaneNotice = Callable[[int, ApplianceError | None], None]
"""Told what went wrong with a lane; with None, that it is over."""


@dataclass(slots=True)
class Copier:
    """A lane with what it reads from and what it owns; it outlives the slice, and stays warm."""

    lane: Lane
    source: KafkaCluster
    intake: Intake
    engine: EngineSettings
    notice: LaneNotice
    replicas: tuple[Replica, ...] = ()
    latest: frozenset[str] = frozenset()
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _failures: int = 0

    def assign(self, replicas: Sequence[Replica], latest: frozenset[str]) -> None:
        """Copy these partitions from now on; new ones of the topics in ``latest`` begin at their end."""
        if tuple(replicas) != self.replicas:
            self.intake.forget(set(self.replicas) - set(replicas))
            self.lane.reassign()
        self.replicas, self.latest = tuple(replicas), latest

    async def run(self, stopping: asyncio.Event) -> list[LedgerRow]:
        """Copy until ``stopping``, which sets ``arrived`` too; a transaction that has begun is finished."""
        rows: list[LedgerRow] = []
        while not stopping.is_set() and self.lane.state is not LaneState.FENCED:
            try:
                if self.lane.state is LaneState.COLD:
                    await self._start()
                    self.notice(self.lane.index, None)
                rows += await self._transact()
                self._failures = 0
            except ApplianceError as error:
                self.notice(self.lane.index, error)
                await self._back_off(stopping)
        return rows

    async def _start(self) -> None:
        """Fence, read the positions, and have the intake read on from there."""
        await self.lane.start({replica.destination_topic for replica in self.replicas})
        initial = await self._first_positions()
        if initial:
            await self.lane.commit([], initial)
        for replica in self.replicas:
            position = self.lane.positions[replica.source_topic, replica.partition]
            fault = _identity_fault(replica, position)
            if fault is None:
                self.intake.read(replica, position.next_offset, self.arrived)
            else:
                self.intake.forget([replica])
                self.intake.stop(replica, fault)

    async def _first_positions(self) -> dict[Replica, Position]:
        """Where partitions begin that have no position yet: remembered before the first record is copied."""
        new = {(r.source_topic, r.partition): r for r in self.replicas}
        new = {key: replica for key, replica in new.items() if key not in self.lane.positions}
        if not new:
            return {}
        metadata = await self.source.metadata(sorted({topic for topic, _ in new}))
        at_end = {key for key in new if key[0] in self.latest}
        offsets = await list_offsets(self.source, metadata, at_end, Bound.STABLE_END)
        offsets |= await list_offsets(self.source, metadata, new.keys() - at_end, Bound.START)
        return {r: Position(r.source_id, r.destination_id, offsets[key]) for key, r in new.items()}

    async def _transact(self) -> list[LedgerRow]:
        """One transaction with what has arrived."""
        await self.arrived.wait()
        self.arrived.clear()
        portions = self.intake.take(self.replicas, self.engine.commit_bytes)
        if not portions:
            return []
        began = time.monotonic()
        rows = await self.lane.commit(portions, {})
        # What comes in a trickle is collected for a moment, rather than committed record by record.
        await asyncio.sleep(self.engine.commit_interval - (time.monotonic() - began))
        if self.intake.waiting(self.replicas):
            self.arrived.set()
        return rows

    async def _back_off(self, stopping: asyncio.Event) -> None:
        self._failures += 1
        pause = min(_BACKOFF_MAX, 0.05 * 2**self._failures)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause * random.uniform(0.5, 1)):
                await stopping.wait()


def _identity_fault(replica: Replica, position: Position) -> PartitionStopped | None:
    """Why a position does not belong to the topics of today (invariant G)."""
    name = f"{replica.source_topic}-{replica.partition}"
    if position.source_id != replica.source_id:
        return PartitionStopped(
            f"{name}: source topic {replica.source_topic} was deleted and made anew since it was copied"
        )
    if position.destination_id != replica.destination_id:
        return PartitionStopped(
            f"{name}: destination topic {replica.destination_topic} was deleted and made anew since it was copied"
        )
    return None
