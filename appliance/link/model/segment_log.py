"""The segments of wanted source partitions in one lane's partition of the topic of the maps."""

from collections.abc import Collection, Sequence

from appliance.errors import PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.model.offset_map import Segment, drop, overlay
from appliance.link.model.offset_records import decode_segment, segment_key


class SegmentLog:
    """The segments before offset ``read_to``; -1: nothing has been read yet."""

    def __init__(self) -> None:
        self.read_to = -1
        self._wanted: frozenset[Partition] | None = frozenset()
        self._segments: dict[Partition, list[Segment]] = {}
        self._damaged: dict[Partition, dict[int, PeerError]] = {}

    def segments(self, partition: Partition) -> Sequence[Segment]:
        """The segments of a source partition, in the copy's order."""
        return self._segments.get(partition, ())

    def damage(self, partition: Partition) -> PeerError | None:
        """The reason that a source partition's map cannot be read; None where it can."""
        return next(iter(self._damaged.get(partition, {}).values()), None)

    def want(self, partitions: Collection[Partition] | None) -> Collection[Partition]:
        """Keep the segments of these source partitions, or of all; returns the dropped partitions.

        The segments of another partition become known only when everything is read again.
        """
        before, self._wanted = self._wanted, None if partitions is None else frozenset(partitions)
        if before is not None and (self._wanted is None or self._wanted - before):
            return self.restart()
        return self._forget([of for of in self._known() if self._wanted is not None and of not in self._wanted])

    def restart(self) -> Collection[Partition]:
        """Forget everything, for a read from the log's start; returns the source partitions with known segments."""
        self.read_to = -1
        return self._forget(self._known())

    def take(self, record: Record) -> Partition | None:
        """Add the next record; the source partition of its map, None of an unwanted one.

        Raises:
            PeerError: it is not a segment.
        """
        of, begin = segment_key(record)
        is_wanted = self._wanted is None or of in self._wanted
        if is_wanted:
            self._add(of, begin, record)
        self.read_to = record.offset + 1
        return of if is_wanted else None

    def _add(self, of: Partition, begin: int, record: Record) -> None:
        segments, damaged = self._segments.setdefault(of, []), self._damaged.pop(of, {})
        damaged.pop(begin, None)
        try:
            segment = decode_segment(record)[1]
        except PeerError as error:  # the others' maps stay readable
            damaged[begin] = error
        else:
            if segment is None:
                drop(segments, begin)
            else:
                overlay(segments, segment)
        if damaged:
            self._damaged[of] = damaged

    def _known(self) -> list[Partition]:
        return list({*self._segments, *self._damaged})

    def _forget(self, partitions: Collection[Partition]) -> Collection[Partition]:
        for of in partitions:
            self._segments.pop(of, None)
            self._damaged.pop(of, None)
        return partitions
