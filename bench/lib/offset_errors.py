"""The errors of translated offsets, judged by the records that a consumer gets from there."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.lib.numbered_records import Read

Offsets = Mapping[str, Mapping[int, int]]
"""The committed offsets of groups in one topic, by name and partition."""


@dataclass(frozen=True, slots=True)
class OffsetErrors:
    """Numbers of offsets by exactness, and of the records that all groups together read again or miss.

    An offset is exact if a consumer continues with the record that it would have read next at the source.
    """

    exact: int = 0
    missing: int = 0
    again: int = 0
    most_again: int = 0
    """Maximum number of records that one group reads again in one partition."""
    missed: int = 0

    def __add__(self, other: "OffsetErrors") -> "OffsetErrors":
        most = max(self.most_again, other.most_again)
        exact, missing = self.exact + other.exact, self.missing + other.missing
        return OffsetErrors(exact, missing, self.again + other.again, most, self.missed + other.missed)


def errors(source: Read, copy: Read, at_source: Offsets, at_destination: Offsets) -> OffsetErrors:
    """All errors; ``source`` contains every record of ``copy``."""
    source_offsets = {partition: _source_offsets(source[partition], copy[partition]) for partition in source}
    total = OffsetErrors()
    for group, offsets in at_source.items():
        for partition, offset in offsets.items():
            total += _error(source_offsets[partition], offset, at_destination.get(group, {}).get(partition))
    return total


def _source_offsets(source: Mapping[int, int], copy: Mapping[int, int]) -> dict[int, int]:
    """The source offset of each record, by its offset in the copy."""
    offsets = {number: offset for offset, number in source.items()}
    return {offset: offsets[number] for offset, number in copy.items()}


def _error(source_offsets: Mapping[int, int], at_source: int, at_destination: int | None) -> OffsetErrors:
    if at_destination is None:
        return OffsetErrors(missing=1)
    given = [offset for at, offset in source_offsets.items() if at >= at_destination]
    again = sum(offset < at_source for offset in given)
    passed = {offset for at, offset in source_offsets.items() if at < at_destination and offset >= at_source}
    missed = len(passed.difference(given))
    return OffsetErrors(int(not again and not missed), 0, again, again, missed)
