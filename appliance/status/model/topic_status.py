"""Topics and their partitions in a snapshot, as frozen values. Unknown values are None, never 0.

A field is a key of the JSON, in this order. Its metadata may give the key another name, name the derived keys that
follow it, or the metric of its number.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.link.model.checkpoint import Gap
from appliance.link.model.copy_states import CopyState
from appliance.link.model.position import Trial
from appliance.link.model.problems import Fault

_Number = TypeVar("_Number", int, float)

STUCK_MS = 120_000
_SEEN_MS = 30_000
HIDDEN: Mapping[str, Any] = {"key": ""}
"""Metadata of a field that is not in the JSON."""


@dataclass(frozen=True, slots=True)
class BlockingTransaction:
    """An open transaction that holds up a partition; ``waiting`` offsets are behind it."""

    transaction: OpenTransaction
    waiting: int


class Reached(NamedTuple):
    """An end of a source partition, and the time at which it was first seen, in milliseconds."""

    end: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """One source partition; times are in milliseconds.

    ``copied`` counts records and ``bytes`` their size, ever; ``rate`` is in records a second. ``lag_records`` counts
    source offsets up to the last stable one: transaction markers and what compaction took are among them.
    ``reached`` are the source's ends above the position, the lowest first; ``observed_at`` is the time of the first
    collection that found the lag, ``committed_at`` that of the position by the destination's clock. ``latency_ms`` is
    the time from the newest record's timestamp to the commit of its copy, None if nothing was copied since the snapshot
    before.
    ``gaps`` are None when not known.
    With identical names, ``dropped`` counts the records that were not copied since a link had written them at the
    source, and ``written`` those that links say they wrote there; None if unknown, or with other names.
    ``filtered`` counts the records that SQL in flight has left out, and ``dead_letters`` those that it failed on.
    ``lost_at_source`` counts the copied offsets that the source no longer has; None if unknown. ``trial`` is the range
    that the SQL gets, where Spark may have ended.
    """

    topic: str = field(metadata=HIDDEN)
    partition: int
    lane: int | None
    next_offset: int | None
    end_offset: int | None
    copied: int | None = field(metadata={"metric": "kafka_replicator_records_copied_total"})
    bytes: int | None = field(metadata={"metric": "kafka_replicator_bytes_copied_total"})
    rate: float | None
    lag_records: int | None = field(metadata={"metric": "kafka_replicator_lag_records"})
    lag_seconds: float | None = field(
        metadata={"metric": "kafka_replicator_lag_seconds", "followed_by": ("behind_since",)}
    )
    latency_ms: int | None
    stopped: Fault | None
    unknown: Fault | None = field(metadata={"followed_by": ("remedies",)})
    held: BlockingTransaction | None
    gaps: tuple[Gap, ...] | None
    dropped: int | None = None
    written: int | None = field(default=None, metadata={"key": "written_by_links"})
    filtered: int | None = field(default=None, metadata={"metric": "kafka_replicator_records_filtered_total"})
    dead_letters: int | None = field(default=None, metadata={"metric": "kafka_replicator_dead_letters_total"})
    lost_at_source: int | None = None
    reached: tuple[Reached, ...] = field(metadata=HIDDEN)
    observed_at: int | None = field(metadata=HIDDEN)
    committed_at: int | None = field(metadata=HIDDEN)
    trial: Trial | None = field(default=None, metadata=HIDDEN)

    @property
    def name(self) -> str:
        """``topic-partition``."""
        return f"{self.topic}-{self.partition}"

    @property
    def behind_since(self) -> int | None:
        """The time at which the position could have been newer for the first time; None if it could not."""
        return self.reached[0].at if self.reached else None

    def stuck_since(self, at: int) -> int | None:
        """The time since which there is something to copy and nothing is copied; None unless for two minutes.

        A lag that was there at the first collection may be as old as the position: known after half a minute.
        """
        if not self.lag_records or self.stopped or self.unknown:
            return None
        since, still = self.behind_since, self.committed_at or self.observed_at
        if since is None or still is None:
            return None
        if since != self.observed_at or at - since < _SEEN_MS:
            still = max(since, still)
        return still if at - still >= STUCK_MS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """One source topic; ``active`` while it exists and its name matches. ``state`` is the one that operators have given
    to its copy. ``stopped`` is the reason that none of it can be copied as things are; ``left_out`` are the settings
    that its copy has to do without.
    """

    name: str = field(metadata={"key": "topic"})
    copy: str
    active: bool
    state: CopyState = CopyState.ACTIVE
    stopped: Fault | None = field(
        metadata={"followed_by": ("remedies", "copied", "rate", "lag_records", "lag_seconds")}
    )
    left_out: tuple[str, ...] = ()
    partitions: tuple[PartitionStatus, ...]

    @property
    def copied(self) -> int | None:
        """The records of all partitions."""
        return total(partition.copied for partition in self.partitions)

    @property
    def rate(self) -> float | None:
        """Records a second."""
        return total(partition.rate for partition in self.partitions)

    @property
    def lag_records(self) -> int | None:
        """Number of uncopied offsets of all partitions."""
        return total(partition.lag_records for partition in self.partitions)

    @property
    def lag_seconds(self) -> float | None:
        """The lag of the partition that is furthest behind."""
        return largest(partition.lag_seconds for partition in self.partitions)

    @property
    def bytes(self) -> int | None:
        """The bytes of all partitions."""
        return total(partition.bytes for partition in self.partitions)


def total(numbers: Iterable[_Number | None]) -> _Number | None:
    """The sum; None when one of the numbers is None."""
    result: _Number | None = None
    for number in numbers:
        if number is None:
            return None
        result = number if result is None else result + number
    return result


def largest(numbers: Iterable[float | None]) -> float | None:
    """The largest, 0 of none; None when one of the numbers is None."""
    values = [*numbers]
    return None if None in values else max(filter(None, values), default=0.0)
