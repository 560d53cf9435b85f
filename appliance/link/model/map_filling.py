"""A stretch of a map that is made by reading both logs, rather than by copying."""

from appliance.kafka.records.outgoing import Outgoing
from appliance.link.model.offset_tail import OffsetTail


class MapFilling:
    """The runs of copied records from a source offset and one of the copy on, as stretches of about ``size`` bytes."""

    def __init__(self, source: int, copy: int, size: int) -> None:
        self._size = size
        self._stretches: list[OffsetTail] = []
        self._tail = OffsetTail.begin(source, copy)
        self._run: tuple[int, int, int] | None = None

    def add(self, source: int, copy: int, length: int) -> None:
        """The next run: so many records, the first of which lies at these offsets."""
        if self._run is not None:
            first, first_copy, before = self._run
            if (first + before, first_copy + before) == (source, copy):
                self._run = first, first_copy, before + length
                return
            self._settle(*self._run)
        self._run = source, copy, length

    def finished(self, source_to: int, copy_to: int) -> list[OffsetTail]:
        """All stretches, which go on to these offsets."""
        if self._run is not None:
            self._settle(*self._run)
            self._run = None
        return [*self._stretches, self._tail._replace(source_to=source_to, copy_to=copy_to)]

    def _settle(self, source: int, copy: int, length: int) -> None:
        run = Outgoing(b"", length, source, source + length, -1, False)
        self._tail = self._tail.copied([run], copy, source + length, copy + length)
        if len(self._tail.packed) >= self._size:
            self._stretches.append(self._tail)
            self._tail = OffsetTail.begin(source + length, copy + length)
