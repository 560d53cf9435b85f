"""The checker: a history in, its violations out. Pure.

Jepsen's list for a log, and what this engine promises beyond it:

- no acknowledged write is lost, none is doubled, changed or moved within its partition;
- no record of an aborted transaction is ever seen;
- what a consumer has seen stays: what it saw is what is there in the end;
- no transaction is torn (invariant A): after each one the position counts just the records that are there, and
  names the source offset just past them; a position never moves back (invariant D);
- a command says no less than the copy lacks (invariant N), and no group passes records that it has not read (O);
- what goes wrong beside the transactions shows in the records: they are doubled where a position is missing (H) or
  a second link writes (I), lost where a copy has lost them (J) or a partition is begun too late (K).

The records of a transaction lie side by side in a partition that one lane alone writes, and its marker takes an offset
of its own: where the offsets of a copy have a gap, a transaction ended. So each one can be held to its position.
"""

import enum
import itertools
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.comparison import Track, compare
from tests.faults.history import History, Partition, Progress


class Kind(enum.StrEnum):
    """The kinds of violations."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    ALTERED = "altered"
    ABORTED = "aborted record"
    RETRACTED = "retracted"
    TORN = "torn transaction"
    BACKWARDS = "position moved back"
    MISSTATED = "misstated loss"
    DENIED = "denied by the logs"
    PASSED = "group past unread records"
    TAKEN = "lane taken by a standby"


@dataclass(frozen=True, slots=True)
class Violation:
    """One defect of one partition."""

    kind: Kind
    partition: Partition
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.partition[0]}-{self.partition[1]}: {self.detail}"


def violations(history: History) -> list[Violation]:
    """The violations of a run that has ended: nothing is written any more, and everything should be there."""
    found = violations_of_records(history)
    for partition in history.source:
        source, destination = history.source[partition], history.destination[partition]
        found += _positions(partition, history.progress[partition], source)
        found += _torn(partition, _ends(destination.offsets), _counts(history.progress[partition]))
    return found


def violations_of_records(history: History) -> list[Violation]:
    """The same without the positions, for a run in which an operator has changed them: those count anew."""
    found: list[Violation] = []
    for partition in history.source:
        source, destination = history.source[partition], history.destination[partition]
        found += _differences(partition, source, destination)
        found += _lost_writes(partition, history.acknowledged[partition], destination)
        found += _aborted(partition, history.aborted[partition], destination)
        found += _aborted(partition, history.aborted[partition], history.observed[partition])
        found += _retracted(partition, history.observed[partition], destination)
    return found


def violations_so_far(history: History) -> list[Violation]:
    """The violations in a running run, as far as both observers have seen it."""
    found: list[Violation] = []
    for partition, observed in history.observed.items():
        source, progress = history.source[partition], history.progress[partition]
        count = min(len(source.offsets), len(observed.offsets))
        if source.fingerprints[:count] != observed.fingerprints[:count]:
            observed = _first(observed, count)
            found += _differences(partition, _up_to_last_of(source, observed), observed)
        found += _aborted(partition, history.aborted[partition], observed)
        found += _positions(partition, progress, source)
        # Of the last transaction that was seen, more may come; of its position, too.
        ends, counts = _ends(observed.offsets)[:-1], _counts(progress)
        known = min(len(ends), len(counts))
        found += _torn(partition, ends[:known], counts[:known])
    return found


def misstatements(said: Mapping[str, Any], partition: Partition, source: Track, copy: Track) -> Iterator[Violation]:
    """The losses of a partition that the JSON of a promotion or a failback does not tell (invariant N).

    A promotion's ``behind`` may be unknown, but is no less than the source's offsets from the first record on that the
    copy lacks. A failback names the offsets of each such record.
    """
    lacks = _lacking(source, copy)
    for each in said["partitions"]:
        if (each["topic"], each["partition"]) != partition:
            continue
        if "behind" in each:
            least = source.offsets[-1] + 1 - lacks[0] if lacks else 0
            if each["behind"] is not None and each["behind"] < least:
                yield Violation(Kind.MISSTATED, partition, f"{each['behind']} behind, and the copy lacks {least}")
        else:
            told = [span for span in (each["diverged"], each["written_there"]) if span]
            untold = [offset for offset in lacks if not any(first <= offset < end for first, end in told)]
            if untold:
                yield Violation(Kind.MISSTATED, partition, f"{told} are told, and the copy lacks {untold}, too")


def denied(said: Mapping[str, Any], partition: Partition, source: Track, seen: int) -> Iterator[Violation]:
    """The statements of a status about a partition that its source's log denies (N); unknown is right.

    The end is behind all records that a consumer had ``seen`` before, and so many records are copied as there are below
    the next offset.
    """
    names = [(topic, each) for topic in said["topics"] for each in topic["partitions"]]
    for each in (each for topic, each in names if (topic["topic"], each["partition"]) == partition):
        following, end, lag = each["next_offset"], each["end_offset"], each["lag_records"]
        least = source.offsets[seen - 1] + 1 if seen else 0
        if end is not None and end < least:
            yield Violation(Kind.DENIED, partition, f"the source ends at {end}, and {least - 1} had been seen")
        if None not in (lag, following) and lag != max(0, end - following):
            yield Violation(Kind.DENIED, partition, f"{lag} behind, from {following} up to {end}")
        copied = bisect_left(source.offsets, following) if following is not None else 0
        if copied < len(source.offsets) and each["copied"] not in (None, copied):
            yield Violation(Kind.DENIED, partition, f"{each['copied']} copied up to {following}, where {copied} are")


def passed(partition: Partition, read_to: int, source: Track, committed: int, copy: Track) -> Iterator[Violation]:
    """The records of a copy that a group has not read at the source, below its offset there (invariant O)."""
    read = {record for offset, record in zip(source.offsets, source.fingerprints, strict=True) if offset < read_to}
    below = [each for each in zip(copy.offsets, copy.fingerprints, strict=True) if each[0] < committed]
    if unread := [offset for offset, record in below if record not in read]:
        yield Violation(Kind.PASSED, partition, f"committed is {committed}, and {unread} of the copy are not read")


def taken(lane: Partition, owners: Sequence[str], active: Sequence[str]) -> Iterator[Violation]:
    """The hosts that took the lane out of turn: each of ``owners`` was the active one then, in this order (B)."""
    turns = iter(active)
    for host, _ in itertools.groupby(owners):
        if host not in turns:
            yield Violation(Kind.TAKEN, lane, f"by {list(owners)}, and the active ones were {list(active)}")
            return


def _lacking(source: Track, copy: Track) -> list[int]:
    """The offsets of the source's records that the copy does not hold."""
    held = set(copy.fingerprints)
    return [offset for offset, record in zip(source.offsets, source.fingerprints, strict=True) if record not in held]


def _differences(partition: Partition, source: Track, destination: Track) -> Iterator[Violation]:
    differences = compare(*partition, source, destination)
    for kind in (Kind.LOST, Kind.DUPLICATED, Kind.REORDERED, Kind.ALTERED):
        count: int = getattr(differences, kind.value)
        if count:
            examples = "; ".join(str(example) for example in differences.examples if example.kind.value == kind.value)
            yield Violation(kind, partition, f"{count} records: {examples}")


def _up_to_last_of(source: Track, observed: Track) -> Track:
    """The source's log up to the newest record that was observed, or as much of it as that is."""
    last = observed.fingerprints[-1]
    known = [index for index, record in enumerate(source.fingerprints) if record == last]
    return _first(source, known[-1] + 1 if known else len(observed.offsets))


def _first(track: Track, count: int) -> Track:
    return Track(track.offsets[:count], track.fingerprints[:count])


def _lost_writes(partition: Partition, acknowledged: Sequence[int], destination: Track) -> Iterator[Violation]:
    lost = set(acknowledged).difference(destination.fingerprints)
    if lost:
        yield Violation(Kind.LOST, partition, f"{len(lost)} writes that the source had acknowledged")


def _aborted(partition: Partition, aborted: Sequence[int], seen: Track) -> Iterator[Violation]:
    dirty = set(aborted)
    offsets = [offset for offset, record in zip(seen.offsets, seen.fingerprints, strict=True) if record in dirty]
    if offsets:
        yield Violation(
            Kind.ABORTED, partition, f"{len(offsets)} records, the first at destination offset {offsets[0]}"
        )


def _retracted(partition: Partition, observed: Track, destination: Track) -> Iterator[Violation]:
    count = len(observed.offsets)
    if observed.offsets != destination.offsets[:count] or observed.fingerprints != destination.fingerprints[:count]:
        yield Violation(Kind.RETRACTED, partition, f"the first {count} records that were seen are others now")


def _positions(partition: Partition, progress: Sequence[Progress], source: Track) -> Iterator[Violation]:
    """Positions against the source's log, as far as that is known."""
    for before, after in itertools.pairwise(progress):
        if after.next_offset < before.next_offset or after.records < before.records:
            yield Violation(Kind.BACKWARDS, partition, f"from {before} to {after}")
    end = source.offsets[-1] if source.offsets else -1
    for position in progress:
        before_it = bisect_left(source.offsets, position.next_offset)
        if position.next_offset <= end and position.records != before_it:
            yield Violation(
                Kind.TORN, partition, f"{position}, and the source has {before_it} records before that offset"
            )
            return


def _torn(partition: Partition, ends: Sequence[int], counts: Sequence[int]) -> Iterator[Violation]:
    """The transactions, by the number of copied records at the end of each, and by the positions' counts."""
    for index, (copied, counted) in enumerate(itertools.zip_longest(ends, counts)):
        if copied != counted:
            detail = f"transaction {index} ended with record {copied}, and its position counts {counted}"
            yield Violation(Kind.TORN, partition, detail)
            return


def _ends(offsets: Sequence[int]) -> list[int]:
    """The number of records at the end of each transaction."""
    jumps = [index for index, (left, right) in enumerate(itertools.pairwise(offsets), 1) if right != left + 1]
    return [*jumps, len(offsets)] if offsets else []


def _counts(progress: Sequence[Progress]) -> list[int]:
    """The record counts of the positions, at each change."""
    return [count for count, _ in itertools.groupby(position.records for position in progress) if count > 0]
