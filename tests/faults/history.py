"""The history of a run for the checker; records are fingerprints (see ``testbed.reading``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.comparison import Track

Partition = tuple[str, int]
"""A source topic and one of its partitions; its copy goes by the same name here."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A position as the destination remembers it: the next source offset, and how many records were copied so far."""

    next_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class History:
    """One run.

    ``acknowledged`` and ``aborted`` are what the producers were told of their records; of others the outcome is not
    known. ``source`` and ``destination`` are the committed logs, ``observed`` what a read_committed consumer saw at
    the destination while the run went on, ``progress`` every committed position in its order.
    """

    acknowledged: Mapping[Partition, Sequence[int]]
    aborted: Mapping[Partition, Sequence[int]]
    source: Mapping[Partition, Track]
    observed: Mapping[Partition, Track]
    destination: Mapping[Partition, Track]
    progress: Mapping[Partition, Sequence[Progress]]
