"""Invariant O at a fan-in: one group that reads at both sources, the sync of each link, and what these commit."""

from dataclasses import dataclass

from appliance.kafka.protocol.metadata import Partition
from tests.simulation.consumers import LATE, Consumers, lateness
from tests.simulation.fan_in import FanIn
from tests.simulation.groups import Groups
from tests.simulation.invariants import Violation
from tests.simulation.link import Link
from tests.simulation.log import Log, seen

GROUP = "billing"


@dataclass(slots=True, eq=False)
class Reader:
    """The group at one source."""

    link: Link
    consumers: Consumers

    def consume(self) -> None:
        """The group reads on in a partition, or is set back by its operator."""
        self.consumers.consume(GROUP, self.link.chance.choice(self.link.source.topics["orders"].logs))

    def knows(self, at: Partition) -> float | None:
        """The time at which the link came to know the group's place in a partition."""
        return self.consumers.known.get((GROUP, at))

    def lowest(self, log: Log) -> int | None:
        """The copy's offset of the first of the source's records past the group's offset there; None if none is."""
        at = "orders", log.number
        truth, held = self.link.invariants.current[at], self.consumers.source.offsets(GROUP)[at]
        truth.learn()
        ahead = set(truth.between(held.offset, truth.log.end))
        return next((place for place, record in seen(log) if record in ahead), None)


class SharedGroup:
    """The group at the copy."""

    def __init__(self, world: FanIn) -> None:
        self.world = world
        self.readers = [Reader(link, Consumers(link, f"{link.source.name}-")) for link in world.links]
        self.destination = Groups(world.destination, self._committed)
        self.judged = 0

    def _committed(self, _: str, copy: Partition, offset: int) -> None:
        """A sync commits."""
        log, late = self.world.destination.log(copy), lateness(self.world.fates)
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
            if (since := each.knows(at)) is not None and since < before and each.link.source.name not in removed
        ]

    def _fault(self, log: Log, offset: int, before: float) -> str:
        """What is wrong about an offset of the copy, if nothing has befallen the logs since then; else empty."""
        troubles = [each.link.troubles.get(("orders", log.number), -LATE) for each in self.readers]
        if max(troubles) >= before:
            return ""
        self.judged += 1
        if not log.start <= offset <= log.end:
            return f"which holds {log.start} to {log.end}"
        for each in self._parts(log, before):
            if passed := each.consumers.unread(GROUP, ("orders", log.number), log, offset):
                return f"past {passed} of {each.link.source.name}, which it has not read"
        return ""

    def at_rest(self) -> None:
        """Nothing happens any more: the group is at the lowest place of both links."""
        now = self.world.loop.time()
        there = self.destination.offsets(GROUP)
        for log in self.world.copies():
            parts = self._parts(log, now)
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
            each.consumers.check()
