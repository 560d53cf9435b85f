"""The offset at which copying goes on in a partition that MirrorMaker 2 has copied, or the reason that it must not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from appliance.commands.adoption.model.alignment import Aligned, Originals
from appliance.commands.adoption.model.newest import KeyedRecord, NewestHeld
from appliance.link.model.replicas import Replica
from appliance.listing import some
from appliance.logs.model.comparison import Run
from appliance.logs.model.span import Span

_LOSS = "--allow-loss"
_DOUBLES = "--allow-doubles"
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Logs:
    """Both logs of a partition; ``committed`` is the source offset after MirrorMaker's last one, None if there is none.

    All offsets before ``committed`` were copied; perhaps more was.
    """

    replica: Replica
    source: Span
    copy: Span
    committed: int | None = None


@dataclass(frozen=True, slots=True)
class Allowed:
    """The faults of a copy that the operator accepts."""

    loss: bool = False
    doubles: bool = False


@dataclass(frozen=True, slots=True)
class Beginning:
    """The ``offset`` at which copying goes on, and how that was found; ``refusal`` is the reason that it must not.

    From source offset ``compared`` on, the records of both logs were compared; the first one that the copy holds is
    ``begins``; both are -1 if none was. ``doubles`` are records that the copy holds again; ``aborted`` counts those of
    transactions that the source has aborted, and ``unknown`` are the copy's offsets of those that the source does not
    have. ``missing`` are source offsets that are not copied, and never will be. ``again`` counts records that copying
    will double.
    """

    logs: Logs
    offset: int = -1
    how: str = ""
    refusal: str = ""
    compared: int = -1
    begins: int = -1
    doubles: tuple[Run, ...] = ()
    aborted: int = 0
    unknown: tuple[int, ...] = ()
    missing: tuple[Span, ...] = ()
    again: int = 0

    @property
    def doubled(self) -> int:
        """The number of records that the copy holds again."""
        return sum(run.length for run in self.doubles)


def without_reading(logs: Logs, allowed: Allowed) -> Beginning | None:
    """Decide where the bounds of both logs suffice; None where their records must be compared."""
    committed, source = logs.committed, logs.source
    if logs.copy.end == 0:
        return Beginning(logs, source.start, "the copy is empty")
    if committed is not None and committed > source.end:
        what = f"MirrorMaker 2 has copied up to offset {committed - 1}, and the source ends at {source.end}"
        return Beginning(logs, refusal=f"{what}: was the source topic made anew?")
    if logs.copy:
        return None
    if committed is None:
        return _unknown(
            logs, f"the copy's retention has left no record, and it ended at offset {logs.copy.end}", allowed
        )
    return _at_committed(logs, "committed, and the copy's retention has left no record", allowed)


def of_compared(logs: Logs, originals: Originals, aligned: Aligned, allowed: Allowed, first: int = 0) -> Beginning:
    """Decide by the aligned records; those before index ``first`` were not aligned."""
    offsets, committed = originals.offsets, logs.committed
    if not aligned.count:
        return _of_unrelated(logs, offsets, allowed)
    begins, last = offsets[aligned.begin], offsets[aligned.begin + aligned.count - 1]
    beginning = Beginning(
        logs,
        last + 1,
        f"the copy holds the source up to offset {last}",
        compared=offsets[0],
        begins=begins,
        doubles=aligned.doubles,
        aborted=aligned.aborted,
        unknown=aligned.unknown,
    )
    if committed is not None and not logs.copy.start:
        skipped = [each for each in offsets[first : aligned.begin] if each >= committed]
        if skipped:
            return _skipped(beginning, skipped, aligned.count, allowed)
    if aligned.missing:
        later = originals.before(aligned.ahead_to) - originals.before(last + 1) - len(aligned.missing)
        return _skipped(replace(beginning, offset=aligned.ahead_to), aligned.missing, later, allowed)
    if aligned.reordered:
        end, count = aligned.ahead_to, aligned.reordered
        how = f"the copy holds the source up to offset {end - 1}, {count} records in another order"
        return replace(beginning, offset=end, how=how)
    lost = [each for each in offsets[aligned.begin + aligned.count :] if committed is not None and each < committed]
    if lost:
        how = f"{beginning.how}; it has lost offsets {lost[0]} to {lost[-1]}, which were committed"
        return replace(beginning, how=how)
    return replace(beginning, offset=max(beginning.offset, committed or 0))


def of_newest(logs: Logs, originals: Sequence[KeyedRecord], newest: NewestHeld, allowed: Allowed) -> Beginning:
    """Decide for a compacted topic."""
    offsets = [each.offset for each in originals]
    if not newest.found:
        return _of_unrelated(logs, offsets, allowed)
    end = max(offsets[-1] + 1, logs.committed or 0)
    offset = offsets[newest.following] if newest.following < len(offsets) else end
    how = f"the copy holds the newest record of each key before offset {offset}"
    return Beginning(logs, offset, how, compared=offsets[0], begins=offsets[0], again=newest.again)


def _of_unrelated(logs: Logs, offsets: Sequence[int], allowed: Allowed) -> Beginning:
    """Decide where the copy holds none of the source's records with these offsets."""
    name = str(logs.replica.copy)
    if logs.committed is None:
        return _unknown(logs, f"nothing is committed, and {name} holds no record that the source has", allowed)
    if any(offset < logs.committed for offset in offsets):
        what = f"{name} holds none of the records from offset {offsets[0]} on"
        return _unknown(logs, f"{what}: does something change them on the way, or was a topic made anew?", allowed)
    return _at_committed(logs, "committed, and the copy holds nothing of what follows", allowed)


def _at_committed(logs: Logs, how: str, allowed: Allowed) -> Beginning:
    committed, start = logs.committed, logs.source.start
    assert committed is not None
    if committed >= start:
        return Beginning(logs, committed, how)
    what = f"the source has deleted offsets {committed} to {start - 1} before they were copied"
    if allowed.loss:
        return Beginning(logs, start, what, missing=(Span(committed, start),))
    return Beginning(logs, refusal=f"{what}: {_LOSS} goes on after them")


def _unknown(logs: Logs, what: str, allowed: Allowed) -> Beginning:
    if allowed.doubles:
        return Beginning(logs, logs.source.start, what)
    return Beginning(logs, refusal=f"{what}: {_DOUBLES} copies all that the source has")


def _skipped(beginning: Beginning, missing: Sequence[int], later: int, allowed: Allowed) -> Beginning:
    """Decide where records are missing before ``later`` ones that are in the copy."""
    lacking = tuple(_spans(missing))
    named = some([f"{span.start} to {span.end - 1}" for span in lacking], _NAMED)
    what = f"the copy lacks source offsets {named}, and holds {later} records after them"
    if allowed.loss:
        return replace(beginning, how=what, missing=lacking)
    if allowed.doubles:
        return replace(beginning, offset=missing[0], how=what, again=later)
    options = f"{_LOSS} leaves them out, {_DOUBLES} goes on from offset {missing[0]}"
    return Beginning(beginning.logs, refusal=f"{what}: {options}")


def _spans(offsets: Iterable[int]) -> list[Span]:
    """Offsets in ascending order, as spans."""
    spans: list[Span] = []
    for offset in offsets:
        if spans and spans[-1].end == offset:
            spans[-1] = Span(spans[-1].start, offset + 1)
        else:
            spans.append(Span(offset, offset + 1))
    return spans
