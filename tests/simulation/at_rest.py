"""The invariants at rest: all is copied that is to be, and the copies and the maps of offsets say the same."""

from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.naming import Naming
from appliance.link.model.position import LOST, UNACCOUNTED, Position
from tests.simulation.brokers import Brokers
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.log import Log, seen
from tests.simulation.truth import Truth


class AtRest:
    """Holds the logs of a link against what its invariants have seen commit."""

    def __init__(self, invariants: Invariants, naming: Naming, destination: Brokers) -> None:
        self._link, self._naming, self._destination = invariants, naming, destination

    def unsettled(self, may_stop: bool) -> list[str]:
        """Partitions that are neither copied nor reported as stopped; also lost copies that are not reported."""
        return [
            f"{partition[0]}-{partition[1]}"
            for partition, truth in self._link.current.items()
            if not self._settled(partition, truth, may_stop)
        ]

    def _settled(self, partition: Partition, truth: Truth, may_stop: bool) -> bool:
        position = self._link.positions.get(partition)
        if self._is_inactive(partition):
            return True
        if position is None:
            return may_stop and partition in self._link.unknown
        is_truncated = truth.agreed is not None and truth.agreed < position.next_offset
        if position.stopped and (may_stop or is_truncated or LOST in position.stopped):
            log = self._link.copy_of(partition)
            return LOST in position.stopped or log not in self._link.lost or self._is_whole(log)
        if is_truncated and not position.stopped:
            return False  # it has not looked since
        if UNACCOUNTED in position.stopped and partition[0] in self._link.remade:
            return True  # a Produce names a topic, not its id: one transaction may go into the new one unnoticed
        topic = self._destination.topics.get(self._naming.destination(partition[0]))
        if topic is None or truth is not self._link.truths.get((partition, position.source_id)):
            return False
        if position.next_offset < truth.log.end or position.destination_id != topic.id:
            return False
        return topic.logs[partition[1]] not in self._link.lost or self._is_whole(topic.logs[partition[1]])

    def _is_whole(self, log: Log) -> bool:
        """A read_committed consumer sees exactly the committed records, except for compacted ones."""
        held = self._link.copies.get(log, [])
        if log.removed:
            removed = set(log.removed)
            held = [each for each in held if each[0] not in removed]
        decided = all(entry.outcome is not None for entry in log.entries)
        return decided and [r for _, r in seen(log)] == [r for _, r in held]

    def at_the_end(self) -> None:
        """A read_committed consumer sees in each copy all the records that were committed there."""
        for partition in self._link.current:
            position = self._link.positions.get(partition)
            log = self._link.copy_of(partition)
            if log is None and ((position is not None and position.stopped) or self._is_inactive(partition)):
                continue  # somebody deleted the copy of a partition that had stopped, or none was to be made
            assert log is not None
            whole = self._is_whole(log)
            if log in self._link.lost and not whole:
                if self._is_inactive(partition):
                    continue  # a copy is looked at again when it is to grow again
                if position is None or LOST not in position.stopped:
                    raise Violation(f"J: {log} has lost records, and {partition} does not say so: {position}")
            elif not whole:
                raise Violation(f"B: {log} does not hold what was committed to it: {self._link.copies.get(log, [])}")

    def translated(self, maps: OffsetMaps, at_rest: bool) -> None:
        """L: hold the maps of offsets, as they were read now, against both logs."""
        for partition, position in maps.positions():
            topic = self._destination.topics.get(self._naming.destination(partition[0]))
            truth = self._link.truths.get((partition, position.source_id))
            if topic is None or topic.id != position.destination_id or truth is None:
                continue
            log = topic.logs[partition[1]]
            if truth.before:
                continue  # offsets of the source name others by now
            if log not in self._link.lost or self._is_known_lost(log, position):
                truth.learn()
                self._link.translations.check(maps, partition, position, log, truth, at_rest)

    def _is_known_lost(self, log: Log, position: Position) -> bool:
        """J: the position says what its copy has lost; not what one loses that has stopped already."""
        places = self._link.translations.places(log)
        return LOST in position.stopped and places.noticed_from == places.lost_from

    def nothing_is_copied(self) -> bool:
        """M: an operator's states forbid that anything is."""
        return all(map(self._is_inactive, self._link.current))

    def _is_inactive(self, partition: Partition) -> bool:
        """M: an operator's state forbids that it is copied."""
        return self._link.obedience.is_inactive(self._link.layout.lane_of(*partition), partition[0])
