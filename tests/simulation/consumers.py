"""The consumer groups at a link's source, and the sync of their offsets.

A group has read what lay below its offset when it committed that: also what a transaction wrote that has failed, and
that commits after all when a truncation takes its marker. What a truncation has taken is read by nobody there any more,
and is not counted.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from appliance.errors import ApplianceError
from appliance.groups import group_service
from appliance.groups.group_sync import GroupSync
from appliance.kafka.protocol.metadata import Partition
from tests.simulation.client import Fates
from tests.simulation.groups import Groups
from tests.simulation.invariants import Violation
from tests.simulation.link import Link
from tests.simulation.log import Log, Record, seen
from tests.simulation.loop import Life, SimulatedLoop

_SETTLED_IN, _SETTLED_AFTER = 2.0, 4
"""Virtual seconds within which all groups have followed, once all is copied; last timeouts may take as many more."""

LATE = 6.0
"""A round may commit what it has read so many seconds ago, where requests were late; else this many:"""

_AT_ONCE = 0.6
_SYNCED_EVERY = 0.15
_RESET = 0.1


def lateness(fates: Fates) -> float:
    """The virtual seconds that may pass between the reading of a round and its commits."""
    return LATE if fates.was_disturbed else _AT_ONCE


def settle(loop: SimulatedLoop, run_while: Callable[[Callable[[], bool]], None], at_rest: Callable[[], None]) -> None:
    """Go on until the groups are where they belong, which ``at_rest`` tells.

    Raises:
        Violation: they never are.
    """
    begun = loop.time()
    for spans in range(1, _SETTLED_AFTER + 1):
        run_while(partial(_is_before, loop, begun + spans * _SETTLED_IN))
        try:
            return at_rest()
        except Violation:
            if spans == _SETTLED_AFTER:
                raise
    return None


def _is_before(loop: SimulatedLoop, end: float) -> bool:
    return loop.time() < end


@dataclass(slots=True, eq=False)
class Consumers:
    """The groups at one source, and their sync; ``known`` are the partitions with a place, since when."""

    link: Link
    prefix: str = ""
    source: Groups = field(init=False)
    known: dict[tuple[str, Partition], float] = field(default_factory=dict)
    _read: dict[str, set[Record]] = field(default_factory=dict)
    _syncs: list[tuple[Life, asyncio.Task[None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source = Groups(self.link.source, lambda *_: None)

    def consume(self, group: str, log: Log) -> None:
        """A group reads on in a partition, or is set to another place by its operator."""
        chance, at = self.link.chance, (log.topic, log.number)
        held = self.source.offsets(group).get(at)
        begin = log.start if held is None or chance.random() < _RESET else min(held.offset, log.stable_end)
        if begin <= log.stable_end:
            self._commit(group, log, chance.choice((chance.randint(begin, log.stable_end), log.stable_end)))

    def _commit(self, group: str, log: Log, offset: int) -> None:
        truth, below = self.link.invariants.current[log.topic, log.number], [e for e in log.entries if e.base < offset]
        truth.learn()
        read = self._read.setdefault(group, set())
        read.update(truth.between(0, offset))
        for entry in below:
            offsets = entry.offsets or range(entry.base, entry.last + 1)
            read.update(record for at, record in zip(offsets, entry.records or (), strict=False) if at < offset)
        epoch = max((entry.leader_epoch for entry in below), default=-1)
        self.source.commit(group, (log.topic, log.number), offset, epoch)
        self.link.fates.note(group, "has read", self.link.source.name, log, "up to", offset)

    def sync(self) -> None:
        """Start the sync of the groups, as a replicator does."""
        life = Life(f"{self.prefix}groups-{len(self._syncs) + 1}")
        self._syncs.append((life, self.link.loop.start(life, self._sync())))

    def crash(self) -> None:
        """Kill the newest sync, and start another."""
        if self._syncs:
            self._syncs[-1][0].alive = False
            self.sync()

    async def _sync(self) -> None:
        link = self.link
        sync = group_service.group_sync(link.opened(), link.settings)
        while True:
            try:
                await sync.round()
                self._note(sync)
            except ApplianceError as error:
                link.fates.note("groups:", error)
            await asyncio.sleep(_SYNCED_EVERY)

    def _note(self, sync: GroupSync) -> None:
        """From now on the link has a part where it knows a group's place."""
        for group, planned in sync.plans.items():
            for each in planned.partitions:
                if each.target is not None:
                    self.known.setdefault((group, each.source), self.link.loop.time())

    def check(self) -> None:
        """Raise what a sync has ended by."""
        for life, task in self._syncs:
            if life.alive and task.done() and (error := task.exception()):
                raise Violation(f"{life.name} ended by {error!r}") from error

    def unread(self, group: str, partition: Partition, log: Log, offset: int) -> list[tuple[int, Record]]:
        """The source's records in a copy below an offset that the group has not read, and could read there."""
        truth, read = self.link.invariants.current.get(partition), self._read.get(group, set())
        passed = [each for each in seen(log) if each[0] < offset and each[1] not in read]
        if truth is None or not passed:
            return []
        truth.learn()
        there = set(truth.records)
        return [each for each in passed if each[1] in there]
