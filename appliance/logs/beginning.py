"""The search for the first offset at which the comparison of a partition can begin.

Usually both logs begin with the same record. Otherwise one of them lacks its beginning: the source by its retention,
the destination by its own retention or by REPLICA_TOPICS_START, as the link's records say. Nothing else excuses
a missing record, and retention no more records than it can have taken. What another program has copied before the link
adopted the copy may hold doubles: then the comparison begins where the link began, as long as both logs hold that.
"""

from dataclasses import dataclass

from appliance.link.model.claims import AdoptedPartition
from appliance.listing import counted
from appliance.logs.model.span import CopyState
from appliance.logs.side import Side

_NOT_ASKED = "REPLICA_TOPICS_START did not ask for them"


@dataclass(frozen=True, slots=True)
class Beginning:
    """The result of comparing the beginnings of both logs.

    ``state`` is the partition's if all later records are equal. If it is a bad one, there is nothing to compare. If it
    ``holds_nothing_due``, it is good even if there are no later records.
    """

    state: CopyState = CopyState.EQUAL
    detail: str = ""
    differs_at: int | None = None
    holds_nothing_due: bool = False


async def begin(source: Side, destination: Side, asked_from: int, adopted: AdoptedPartition | None = None) -> Beginning:
    """Move both sides to the first offset to compare; the link was made to copy from a source offset on."""
    if adopted and source.log.start <= adopted.source and destination.log.start <= adopted.copy:
        return _where_adopted(source, destination, adopted)
    asked_from = max(asked_from, adopted.source if adopted else 0)
    is_known = 0 < asked_from >= source.log.start and not destination.log.start
    if is_known and (asked := await _where_asked(source, destination, asked_from)):
        return asked
    if not await source.more():
        return await _of_an_empty_source(source, destination)
    if not await destination.more():
        return _at_an_empty_destination(destination)
    ours, theirs = await source.anchor(), await destination.anchor()
    if ours.begins_like(theirs):
        if ours.complete or not source.log.start:
            return Beginning()
        last = (await destination.find(ours)).whole
        return Beginning() if last is None else await _source_begins_later(source, destination, last)
    # The side whose first record is older is likelier to hold the other's; a source that deleted nothing is the older.
    searches = [(source, theirs), (destination, ours)]
    if source.log.start and ours.timestamp >= theirs.timestamp:
        searches.reverse()
    finds = [(side, await side.find(anchor)) for side, anchor in searches]
    for side, place in [(side, each.whole) for side, each in finds] + [(side, each.begun) for side, each in finds]:
        if place is not None and side is source:
            return await _destination_begins_later(source, destination, place, asked_from)
        if place is not None:
            return await _source_begins_later(source, destination, place)
    if source.log.start and await destination.offset_at(ours.timestamp + 1) is None:
        return Beginning(
            CopyState.BEHIND,
            "the destination ends before the source's log begins; what lay between, if anything, was deleted before it "
            f"was copied (the log begins at {source.log.start})",
        )
    return Beginning(detail="neither side's first records were found on the other side")


def _where_adopted(source: Side, destination: Side, adopted: AdoptedPartition) -> Beginning:
    source.restart(adopted.source)
    destination.restart(adopted.copy)
    detail = f"source records before offset {adopted.source} were copied by another program, and are not compared"
    return Beginning(CopyState.EQUAL_IN_PART, detail, holds_nothing_due=True)


async def _where_asked(source: Side, destination: Side, asked_from: int) -> Beginning | None:
    """The beginning at the first record that the link was asked for; None if the copy begins with another one."""
    source.restart(asked_from)
    is_due = await source.more()
    is_there = await destination.more() if is_due else await destination.count() > 0
    if not is_there or (is_due and (await source.anchor()).begins_like(await destination.anchor())):
        return Beginning(CopyState.EQUAL_IN_PART, f"{_missing(asked_from)}: {_NOT_ASKED}", holds_nothing_due=not is_due)
    source.restart(source.log.start)
    destination.restart(destination.log.start)
    return None


async def _of_an_empty_source(source: Side, destination: Side) -> Beginning:
    there = await destination.count() if source.log.start else 0  # without patience, as nothing is on its way
    if not source.log.start or (not there and source.log.start <= destination.log.start):
        return Beginning()
    start, end = destination.log.start, destination.log.end
    rest = counted(there, "record")
    destination.restart(end)
    return Beginning(
        CopyState.NOT_COMPARED,
        f"retention has left the source none of its records before offset {source.log.start}: {rest} of the "
        f"destination, from its offset {start} to {end}, have no source any more",
    )


def _at_an_empty_destination(destination: Side) -> Beginning:
    if destination.log.start:
        return Beginning(
            CopyState.NOT_COMPARED,
            f"retention has left the destination no record before its offset {destination.log.end}",
        )
    return Beginning()


async def _source_begins_later(source: Side, destination: Side, place: int) -> Beginning:
    before, deleted = destination.stream.position, source.log.start
    older = await destination.count_between(before, place) if place - before > deleted else 0
    if older > deleted:
        return Beginning(
            CopyState.DIFFERS,
            f"the destination has {counted(older, 'record')}, from its offset {before} to {place}, that stand before "
            f"the source's first, which has deleted {counted(deleted, 'record')} at most: was the source topic made "
            "anew?",
            source.stream.position,
        )
    destination.restart(place)
    too_old = f"destination offsets {before} to {place}, up to {counted(place - before, 'record')}, were not compared"
    return Beginning(detail=f"{too_old}: the source's log begins at {deleted} now" if place > before else "")


async def _destination_begins_later(source: Side, destination: Side, place: int, asked_from: int) -> Beginning:
    first, deleted = max(asked_from, source.log.start), destination.log.start
    lost_count = await source.count_between(first, place) if place - first > deleted else 0
    if lost_count > deleted:
        most = f": of {counted(lost_count, 'record')}, its retention can have taken {deleted}" if deleted else ""
        return Beginning(CopyState.DIFFERS, _missing(place) + most, first)
    source.restart(place)
    cause = f"retention has moved the start of its log to {deleted}" if deleted else _NOT_ASKED
    return Beginning(CopyState.EQUAL_IN_PART, f"{_missing(place)}: {cause}")


def _missing(offset: int) -> str:
    return f"source records before offset {offset} are not at the destination"
