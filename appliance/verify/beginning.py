"""The search for the first offset at which the comparison of a partition can begin.

Usually both logs begin with the same record. Otherwise one of them lacks its beginning: the source by its retention,
the destination by its own retention or by REPLICA_TOPICS_START=latest. What another program has copied before the link
adopted the copy may hold doubles: then the comparison begins where the link began, as long as both logs hold that.
"""

from dataclasses import dataclass

from appliance.link.model.claims import Adopted
from appliance.verify.model.report import CopyState, counted
from appliance.verify.side import Side


@dataclass(frozen=True, slots=True)
class Beginning:
    """The result of comparing the beginnings of both logs.

    ``state`` is the partition's if all later records are equal. If it is a bad one, there is nothing to compare. With
    ``adopted`` it is good even if there are no later records.
    """

    state: CopyState = CopyState.EQUAL
    detail: str = ""
    differs_at: int | None = None
    adopted: bool = False


async def begin(source: Side, destination: Side, latest: bool, adopted: Adopted | None = None) -> Beginning:
    """Move both sides to the first offset to compare; ``latest`` is true with REPLICA_TOPICS_START=latest.

    Raises:
        PartitionStopped, BatchCorrupt, BrokerBusy, BrokerRefused, Unreachable, PeerError: as ``Reader.read``.
    """
    if adopted and source.log.start <= adopted.source and destination.log.start <= adopted.copy:
        return _where_adopted(source, destination, adopted)
    if not await source.more():
        return _of_an_empty_source(source, destination)
    if not await destination.more():
        return _at_an_empty_destination(destination, latest)
    ours, theirs = await source.anchor(), await destination.anchor()
    if ours.begins_like(theirs):
        if ours.complete or not source.log.start:
            return Beginning()
        last = (await destination.find(ours)).whole
        return Beginning() if last is None else _source_begins_later(source, destination, last)
    # The side whose first record is older is likelier to hold the other's; a source that deleted nothing is the older.
    searches = [(source, theirs), (destination, ours)]
    if source.log.start and ours.timestamp >= theirs.timestamp:
        searches.reverse()
    found = [(side, await side.find(anchor)) for side, anchor in searches]
    for side, place in [(side, places.whole) for side, places in found] + [(side, p.begun) for side, p in found]:
        if place is not None and side is source:
            return _destination_begins_later(source, destination, place, latest)
        if place is not None:
            return _source_begins_later(source, destination, place)
    if source.log.start and await destination.offset_at(ours.timestamp + 1) is None:
        return Beginning(CopyState.BEHIND, _behind_the_log(source))
    return Beginning(detail="neither side's first records were found on the other side")


def _where_adopted(source: Side, destination: Side, adopted: Adopted) -> Beginning:
    source.restart(adopted.source)
    destination.restart(adopted.copy)
    detail = f"source records before offset {adopted.source} were copied by another program, and are not compared"
    return Beginning(CopyState.EQUAL_IN_PART, detail, adopted=True)


def _of_an_empty_source(source: Side, destination: Side) -> Beginning:
    older = destination.log
    if not source.log.start or not older:
        return Beginning()
    destination.restart(older.end)
    return Beginning(detail=_too_old(source, older.start, older.end))


def _at_an_empty_destination(destination: Side, latest: bool) -> Beginning:
    if destination.log.start:
        return Beginning(
            CopyState.NOT_COMPARED,
            f"retention has left the destination no record before its offset {destination.log.end}",
        )
    if latest:
        return Beginning(
            CopyState.NOT_COMPARED,
            "the destination has no record: it is behind, or REPLICA_TOPICS_START=latest asked for none yet",
        )
    return Beginning()


def _behind_the_log(source: Side) -> str:
    return (
        "the destination ends before the source's log begins; what lay between, if anything, was deleted before it was "
        f"copied (the log begins at {source.log.start})"
    )


def _source_begins_later(source: Side, destination: Side, found: int) -> Beginning:
    before = destination.stream.position
    if found == before:
        return Beginning()
    if not source.log.start:
        return Beginning(
            CopyState.DIFFERS,
            f"the destination has records, from its offset {before} to {found}, that stand before the source's first, "
            "which never deleted any: was the source topic made anew?",
            source.stream.position,
        )
    destination.restart(found)
    return Beginning(detail=_too_old(source, before, found))


def _too_old(source: Side, first: int, end: int) -> str:
    return (
        f"destination offsets {first} to {end}, up to {counted(end - first, 'record')}, were not compared: "
        f"the source's log begins at {source.log.start} now"
    )


def _destination_begins_later(source: Side, destination: Side, found: int, latest: bool) -> Beginning:
    first = source.stream.position
    missing = f"source records before offset {found} are not at the destination"
    source.restart(found)
    if destination.log.start:
        return Beginning(
            CopyState.EQUAL_IN_PART, f"{missing}: retention has moved the start of its log to {destination.log.start}"
        )
    if latest:
        return Beginning(CopyState.EQUAL_IN_PART, f"{missing}: REPLICA_TOPICS_START=latest did not ask for them")
    return Beginning(CopyState.DIFFERS, missing, first)
