"""Invariant O at a fan-in: one group that reads at both sources, the sync of each link, and what these commit."""

import asyncio
from dataclasses import dataclass, field

from appliance.errors import ApplianceError
from appliance.failover import group_service
from appliance.failover.group_sync import GroupSync
from appliance.kafka.protocol.metadata import Partition
from tests.simulation.fan_in import FanIn
from tests.simulation.groups import Groups
from tests.simulation.invariants import Violation
from tests.simulation.link import Link
from tests.simulation.log import Log, Record, seen
from tests.simulation.loop import Life

GROUP = "billing"
SETTLED_IN = 2.0
"""Virtual seconds within which the group has followed at both links, once nothing goes wrong any more."""

_LATE, _AT_ONCE = 6.0, 0.6
"""A round may commit what it has read so many seconds ago, where requests are late, and else."""

_SYNCED_EVERY = 0.15
_RESET = 0.1


@dataclass(slots=True, eq=False)
class Reader:
    """The group at one source, and the sync of that link; ``known`` are the partitions with a place, since when."""

    link: Link
    source: Groups
    read: set[Record] = field(default_factory=set)
    known: dict[Partition, float] = field(default_factory=dict)
    syncs: list[tuple[Life, asyncio.Task[None]]] = field(default_factory=list)

    def consume(self) -> None:
        """The group reads on in a partition, or is set back by its operator."""
        link = self.link
        log = link.chance.choice(link.source.topics["orders"].logs)
        at = log.topic, log.number
        held = self.source.offsets(GROUP).get(at)
        begin = log.start if held is None or link.chance.random() < _RESET else min(held.offset, log.stable_end)
        self._commit(log, link.chance.choice((link.chance.randint(begin, log.stable_end), log.stable_end)))

    def _commit(self, log: Log, offset: int) -> None:
        link, at = self.link, (log.topic, log.number)
        truth = link.invariants.current[at]
        truth.learn()
        self.read.update(truth.between(0, offset))
        epoch = max((entry.leader_epoch for entry in log.entries if entry.base < offset), default=-1)
        self.source.commit(GROUP, at, offset, epoch)
        link.fates.note(GROUP, "has read", link.source.name, log, "up to", offset)

    def sync(self) -> None:
        """Start the sync of the link's groups."""
        life = Life(f"{self.link.source.name}-groups-{len(self.syncs) + 1}")
        self.syncs.append((life, self.link.loop.start(life, self._sync())))

    def crash(self) -> None:
        """Kill the sync, and start another."""
        if self.syncs:
            self.syncs[-1][0].alive = False
            self.sync()

    async def _sync(self) -> None:
        link = self.link
        sync = group_service.group_sync(link.settings, link.at_source(), link.at_destination())
        while True:
            try:
                await sync.round()
                self._note(sync)
            except ApplianceError as error:
                link.fates.note("groups:", error)
            await asyncio.sleep(_SYNCED_EVERY)

    def _note(self, sync: GroupSync) -> None:
        """From now on the link has a part where it knows the group's place."""
        planned = sync.plans.get(GROUP)
        for each in planned.partitions if planned else ():
            if each.target is not None:
                self.known.setdefault(each.source, self.link.loop.time())

    def unread(self, log: Log, offset: int) -> list[tuple[int, Record]]:
        """The source's records in the copy below an offset that the group has not read, and could read there."""
        truth = self.link.invariants.current.get(("orders", log.number))
        if truth is None:
            return []
        passed = [each for each in seen(log) if each[0] < offset and each[1] not in self.read]
        if not passed:
            return []
        truth.learn()
        there = set(truth.records)
        return [each for each in passed if each[1] in there]

    def lowest(self, log: Log) -> int | None:
        """The copy's offset of the first of the source's records past the group's offset there; None if none is."""
        at = "orders", log.number
        truth, held = self.link.invariants.current[at], self.source.offsets(GROUP)[at]
        truth.learn()
        ahead = set(truth.between(held.offset, truth.log.end))
        return next((place for place, record in seen(log) if record in ahead), None)


class SharedGroup:
    """The group at the copy."""

    def __init__(self, world: FanIn) -> None:
        self.world = world
        self.readers = [Reader(link, Groups(link.source, lambda *_: None)) for link in world.links]
        self.destination = Groups(world.destination, self._committed)
        self.judged = 0

    def _committed(self, _: str, copy: Partition, offset: int) -> None:
        """A sync commits."""
        log, late = self.world.destination.log(copy), _LATE if self.world.fates.rate else _AT_ONCE
        if log is not None:
            fault = self._fault(log, offset, self.world.loop.time() - late)
            if fault and self.world.violation is None:
                self.world.violation = Violation(f"O: {GROUP} is set to {offset} of {log}, {fault}")

    def _parts(self, log: Log, before: float) -> list[Reader]:
        """The links whose records in the copy count: they have known the group's place there since before then."""
        at, removed = ("orders", log.number), self.world.removed
        return [
            each
            for each in self.readers
            if each.known.get(at, before) < before and each.link.source.name not in removed
        ]

    def _fault(self, log: Log, offset: int, before: float) -> str:
        """What is wrong about an offset of the copy, if nothing has befallen the logs since then; else empty."""
        troubles = [each.link.troubles.get(("orders", log.number), -_LATE) for each in self.readers]
        if max(troubles) >= before:
            return ""
        self.judged += 1
        if not log.start <= offset <= log.end:
            return f"which holds {log.start} to {log.end}"
        for each in self._parts(log, before):
            if passed := each.unread(log, offset):
                return f"past {passed} of {each.link.source.name}, which it has not read"
        return ""

    def at_rest(self) -> None:
        """Nothing happens any more: the group is at the lowest place of both links."""
        now = self.world.loop.time()
        there = self.destination.offsets(GROUP)
        for log in self.world.copies():
            parts = [each for each in self._parts(log, now) if ("orders", log.number) in each.known]
            if not parts:
                continue
            if (log.topic, log.number) not in there:
                raise Violation(f"O: {GROUP} is nowhere in {log}")
            offset = there[log.topic, log.number].offset
            if fault := self._fault(log, offset, now):
                raise Violation(f"O: {GROUP} is at {offset} of {log}, {fault}")
            if any(each.link.invariants.current["orders", log.number].before for each in parts):
                continue  # its source has lost records: what the copy has of them counts for nobody
            places = [place for each in parts if (place := each.lowest(log)) is not None]
            between = [each for each in seen(log) if offset <= each[0] < min(places, default=log.end)]
            if between and offset > log.start:  # where retention has taken the place, the start is near enough
                raise Violation(f"O: {GROUP} is held at {offset} of {log}, and need not read {between}")

    def check(self) -> None:
        """Raise what a sync has ended by."""
        for each in self.readers:
            for life, task in each.syncs:
                if life.alive and task.done() and (error := task.exception()):
                    raise Violation(f"{life.name} ended by {error!r}") from error
