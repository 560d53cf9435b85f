"""Invariant O: the consumers at the source, and what the sync of their groups commits at the destination."""

from dataclasses import dataclass, field

from appliance.kafka.protocol.metadata import Partition
from tests.simulation.consumers import LATE, Consumers, lateness
from tests.simulation.groups import Groups
from tests.simulation.invariants import Violation
from tests.simulation.link import Link
from tests.simulation.log import Log, seen

GROUP_NAMES = ("billing", "audit")


@dataclass(slots=True)
class Readers:
    """The groups of a link."""

    link: Link
    destination: Groups = field(init=False)
    consumers: Consumers = field(init=False)
    judged: int = 0

    def __post_init__(self) -> None:
        self.consumers = Consumers(self.link)
        self.destination = Groups(self.link.destination, self._committed)

    def consume(self) -> None:
        """A group reads on in a partition, or is set to another place by its operator."""
        group = self.link.chance.choice(GROUP_NAMES)
        self.consumers.consume(group, self.link.chance.choice(list(self.link.source.logs())))

    def _committed(self, group: str, copy: Partition, offset: int) -> None:
        """A commit comes that the link makes."""
        try:
            self._judge(group, copy, offset)
        except Violation as violation:
            self.link.violation = self.link.violation or violation

    def _judge(self, group: str, copy: Partition, offset: int) -> None:
        log, partition = self.link.destination.log(copy), (self.link.naming.policy.source_of(copy[0]) or "", copy[1])
        if log is None or self._is_in_trouble(partition):
            return
        self.judged += 1
        self._within(group, log, offset)
        if passed := self.consumers.unread(group, partition, log, offset):
            raise Violation(f"O: {group} is set to {offset} of {log}, past {passed}, which it has not read")

    def _within(self, group: str, log: Log, offset: int) -> None:
        """An offset lies in the log, but for what has been lost of it and nobody has noticed yet."""
        if offset < log.start or (offset > log.end and log not in self.link.invariants.lost):
            raise Violation(f"O: {group} is set to {offset} of {log}, which holds {log.start} to {log.end}")

    def _is_in_trouble(self, partition: Partition) -> bool:
        return self.link.troubles.get(partition, -LATE) > self.link.loop.time() - lateness(self.link.fates)

    def at_rest(self) -> None:
        """Nothing happens any more: what a group has read is not read again."""
        link = self.link
        for group in GROUP_NAMES:
            there = self.destination.offsets(group)
            for partition, held in self.consumers.source.offsets(group).items():
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
        if passed := self.consumers.unread(group, partition, log, offset):
            raise Violation(f"O: {group} is at {offset} of {log}, past {passed}, which it has not read")

    def _is_copied(self, partition: Partition) -> bool:
        link = self.link.invariants
        return not link.obedience.is_inactive(link.layout.lane_of(*partition), partition[0])

    def _is_untouched(self, partition: Partition, log: Log) -> bool:
        is_whole = self.link.invariants.translations.places(log).is_whole
        return self._is_copied(partition) and partition not in self.link.troubles and is_whole
