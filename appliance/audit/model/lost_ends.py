"""The records of the audit's lanes that earlier rows count, after a lane's log has lost its end. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from appliance.audit.model.entries import Entry
from appliance.audit.model.rows import AuditRow, Known, is_old, known_of, untold_row
from appliance.audit.model.starts import Starts
from appliance.audit.model.state import AuditState, LaneKnown, Unsettled
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.position import Position


@dataclass(frozen=True, slots=True)
class LostEnds:
    """The lost ends of logs while a lane is read; it adds to ``rows`` those that say what is unknown."""

    state: AuditState
    lane: int
    copy_of: Callable[[str], str]
    rows: list[AuditRow]

    def was_read(self, known: LaneKnown, kind: str, partition: Partition, entry: Entry) -> bool:
        """True for a position or gap that earlier rows count; for a new one, set the position at which its row begins.

        A later start has gone on from the position that it found, an earlier one from the newest that was counted.
        """
        state, cut = self.state, known.cut
        counted, unsettled = state.partitions.get(partition), state.again.get(partition)
        was_covered = cut is not None and entry.record.offset < known.again and cut.covers(entry)
        if counted is None or unsettled is None or (was_covered and counted.lane != self.lane):
            return was_covered
        remembered = decode(entry.record) if kind == "position" else None
        position = remembered[1] if isinstance(remembered, tuple) else None
        at, layout = entry.record.offset, known.layout_of((entry.producer_id, entry.producer_epoch))
        now = known_of(position, self.lane, at, layout) if isinstance(position, Position) else None
        if cut is None or counted.lane != self.lane:
            return now is not None and self._taken_over(partition, entry, counted, now)
        if kind == "gap" or cut.covers(entry):
            if kind == "position":
                found = now or (unsettled.found or counted)._replace(forgotten=True, layout=known.layout)
                state.again[partition] = unsettled._replace(found=found)
            return cut.covers(entry)
        del state.again[partition]
        return self._begin(partition, entry, now, _goes_on_from(known, counted, unsettled, entry, cut))

    def _taken_over(self, partition: Partition, entry: Entry, counted: Known, now: Known) -> bool:
        """The same for a position in another lane than the one whose log lost its end.

        If it has gone there since, it went on from the position that a start found in what is left of that log.
        """
        state = self.state
        if counted.forgotten or now.layout <= counted.layout:  # it had gone there before
            if not is_old(counted, now):
                del state.again[partition]
            return False
        unsettled, is_read = state.again.pop(partition), state.lanes[counted.lane].has_reached(now.layout)
        found = unsettled.found if is_read and not unsettled.is_unknown else None
        return self._begin(partition, entry, now, found, forgotten=True)

    def _begin(
        self, partition: Partition, entry: Entry, now: Known | None, before: Known | None, forgotten: bool = False
    ) -> bool:
        """Set the position at which the row up to ``now`` begins; True if it is unknown, and a row says so."""
        counted = self.state.partitions[partition]
        if before is not None:
            was_forgotten = before.forgotten or forgotten
            self.state.partitions[partition] = before._replace(cause=counted.cause, forgotten=was_forgotten)
            return False
        self.rows.append(untold_row(partition, self.copy_of(partition[0]), self.lane, counted, now, entry))
        self.state.partitions[partition] = (now or counted)._replace(cause="")
        return now is not None


def _goes_on_from(lane: LaneKnown, counted: Known, unsettled: Unsettled, entry: Entry, cut: Starts) -> Known | None:
    """The position from which the producer of a new entry has gone on; None if that is unknown."""
    found = unsettled.found
    if unsettled.is_unknown:
        return None
    if cut.has(entry) or (found.is_beyond(counted) if found else counted.forgotten):
        return counted
    if found is None or (entry.producer_id, entry.producer_epoch) not in (lane.mark, lane.coming[1:]):
        return None  # its start may have found another position, in what the log has lost
    maybe_removed = found.offset < lane.hole_at and counted.is_beyond(found)
    return None if maybe_removed else found
