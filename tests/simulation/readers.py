"""Invariant O: the consumers at the source, the sync of their groups, and what it commits at the destination.

A group has read what lay below its offset when it committed that. What a truncation has taken from the source is read
by nobody there any more, and is not counted.
"""

import asyncio
from dataclasses import dataclass, field

from appliance.errors import ApplianceError
from appliance.failover import group_service
from appliance.kafka.protocol.metadata import Partition
from tests.simulation.groups import Groups
from tests.simulation.invariants import Violation
from tests.simulation.link import Link
from tests.simulation.log import Log, Record, seen
from tests.simulation.loop import Life

GROUP_NAMES = ("billing", "audit")
SETTLED_IN = 2.0
"""Virtual seconds within which all groups have followed, once nothing goes wrong any more."""

_LATE = 6.0
"""A sync may commit what it has read so many seconds ago, where requests are late; else this many:"""

_AT_ONCE = 0.4
_SYNCED_EVERY = 0.15
_RESET = 0.1


@dataclass(slots=True)
class Readers:
    """The groups of a link."""

    link: Link
    source: Groups = field(init=False)
    destination: Groups = field(init=False)
    judged: int = 0
    _read: dict[str, set[Record]] = field(default_factory=dict)
    _syncs: list[tuple[Life, asyncio.Task[None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source = Groups(self.link.source, lambda *_: None)
        self.destination = Groups(self.link.destination, self._committed)

    def consume(self) -> None:
        """A group reads on in a partition, or is set to another place by its operator."""
        link, group = self.link, self.link.chance.choice(GROUP_NAMES)
        log = link.chance.choice(list(link.source.logs()))
        held = self.source.offsets(group).get((log.topic, log.number))
        begin = log.start if held is None or link.chance.random() < _RESET else min(held.offset, log.stable_end)
        if begin > log.stable_end:
            return
        self._commit_at_source(
            group, log, link.chance.choice((link.chance.randint(begin, log.stable_end), log.stable_end))
        )

    def _commit_at_source(self, group: str, log: Log, offset: int) -> None:
        truth = self.link.invariants.current[log.topic, log.number]
        truth.learn()
        self._read.setdefault(group, set()).update(truth.between(0, offset))
        epoch = max((entry.leader_epoch for entry in log.entries if entry.base < offset), default=-1)
        self.source.commit(group, (log.topic, log.number), offset, epoch)
        self.link.fates.note(group, "has read", log, "up to", offset)

    def sync(self) -> None:
        """Start the sync of the groups, as a replicator does."""
        life = Life(f"groups-{len(self._syncs) + 1}")
        self._syncs.append((life, self.link.loop.start(life, self._sync())))

    def crash(self) -> None:
        """Kill the newest sync, and start another."""
        if self._syncs:
            self._syncs[-1][0].alive = False
            self.sync()

    async def _sync(self) -> None:
        link = self.link
        sync = group_service.group_sync(link.settings, link.at_source(), link.at_destination())
        while True:
            try:
                await sync.round()
            except ApplianceError as error:
                link.fates.note("groups:", error)
            await asyncio.sleep(_SYNCED_EVERY)

    def check(self) -> None:
        """Raise what the sync has ended by."""
        for life, task in self._syncs:
            if life.alive and task.done() and (error := task.exception()):
                raise Violation(f"{life.name} ended by {error!r}") from error

    def _committed(self, group: str, copy: Partition, offset: int) -> None:
        """A commit comes that the link makes."""
        try:
            self._judge(group, copy, offset)
        except Violation as violation:
            self.link.violation = self.link.violation or violation

    def _judge(self, group: str, copy: Partition, offset: int) -> None:
        log, partition = self.link.destination.log(copy), (copy[0].removesuffix(f".{self.link.naming.suffix}"), copy[1])
        if log is None or self._is_in_trouble(partition):
            return
        self.judged += 1
        self._within(group, log, offset)
        if passed := self.unread(group, partition, log, offset):
            raise Violation(f"O: {group} is set to {offset} of {log}, past {passed}, which it has not read")

    def _within(self, group: str, log: Log, offset: int) -> None:
        """An offset lies in the log, but for what has been lost of it and nobody has noticed yet."""
        if offset < log.start or (offset > log.end and log not in self.link.invariants.lost):
            raise Violation(f"O: {group} is set to {offset} of {log}, which holds {log.start} to {log.end}")

    def unread(self, group: str, partition: Partition, log: Log, offset: int) -> list[tuple[int, Record]]:
        """The records of a copy below an offset that the group has not read, and could read at the source."""
        truth = self.link.invariants.current.get(partition)
        if truth is None:
            return []
        read, passed = self._read.get(group, set()), [each for each in seen(log) if each[0] < offset]
        if all(record in read for _, record in passed):
            return []
        truth.learn()
        there = set(truth.records)
        return [each for each in passed if each[1] not in read and each[1] in there]

    def _is_in_trouble(self, partition: Partition) -> bool:
        late = _LATE if self.link.fates.rate else _AT_ONCE
        return self.link.troubles.get(partition, -_LATE) > self.link.loop.time() - late

    def at_rest(self) -> None:
        """Nothing happens any more: what a group has read is not read again."""
        link = self.link
        for group in GROUP_NAMES:
            there = self.destination.offsets(group)
            for partition, held in self.source.offsets(group).items():
                log, truth = link.invariants.copy_of(partition), link.invariants.current[partition]
                position = link.invariants.positions.get(partition)
                is_well = position is not None and not position.stopped and position.next_offset >= held.offset
                if log is None or not is_well:
                    continue
                if (log.topic, log.number) in there and self._is_copied(partition):
                    self._judge_at_rest(group, partition, log, there[log.topic, log.number].offset)
                if not self._is_untouched(partition, log):
                    continue
                offset = there[at].offset if (at := (log.topic, log.number)) in there else log.start
                read = truth.between(0, held.offset)
                if again := [record for place, record in seen(log) if place >= offset and record in read]:
                    raise Violation(
                        f"O: {group} is at {offset} of {log}, {held} of {partition}, and reads again {again}"
                    )

    def _judge_at_rest(self, group: str, partition: Partition, log: Log, offset: int) -> None:
        """By now every loss has been noticed, and what was committed before it is mended."""
        self.judged += 1
        self._within(group, log, offset)
        if passed := self.unread(group, partition, log, offset):
            raise Violation(f"O: {group} is at {offset} of {log}, past {passed}, which it has not read")

    def _is_copied(self, partition: Partition) -> bool:
        link = self.link.invariants
        return not link.obedience.is_inactive(link.layout.lane_of(*partition), partition[0])

    def _is_untouched(self, partition: Partition, log: Log) -> bool:
        is_whole = self.link.invariants.translations.places(log).is_whole
        return self._is_copied(partition) and partition not in self.link.troubles and is_whole
