"""The segments of a lane's maps that say nothing any more: all that they describe lies below the start of its copy."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from appliance.errors import PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.model.offset_records import SegmentKey, decode_bounds


class Bounds(NamedTuple):
    """The stretch of the copy that a segment describes."""

    copy_from: int
    copy_to: int


class KnownSegments:
    """The segments in a lane's partition of the topic of the maps before offset ``read_to``, by their bounds alone."""

    def __init__(self) -> None:
        self.read_to = -1
        self._bounds: dict[Partition, dict[int, Bounds]] = {}

    def take(self, records: Iterable[Record], following: int) -> None:
        """Take in what follows, up to an offset; a damaged record is left where it is."""
        for record in records:
            try:
                (partition, begin), copy_to = decode_bounds(record)
            except PeerError:
                continue
            own = self._bounds.setdefault(partition, {})
            own.pop(begin, None)
            if copy_to is not None:
                own[begin] = Bounds(begin, copy_to)
        self.read_to = following

    @property
    def partitions(self) -> Collection[Partition]:
        """The source partitions that have any."""
        return {partition for partition, own in self._bounds.items() if own}

    def below(self, starts: Mapping[Partition, int], kept: Collection[SegmentKey]) -> Iterator[SegmentKey]:
        """Those that lie below where the copies start, by source partition, and are not to be ``kept``.

        One stays as long as an older one stays which it has cut: that would say again what holds no more.
        """
        for partition, start in starts.items():
            every = list(self._bounds.get(partition, {}).values())
            stay = [each for each in every if each.copy_to > start or (partition, each.copy_from) in kept]
            for each in every:
                cuts = any(other.copy_from < each.copy_from < other.copy_to for other in stay)
                if each not in stay and not cuts:
                    yield partition, each.copy_from
