"""The rows of the audit table, derived from the positions that lanes have committed. Pure.

A position counts everything that was ever copied. So a row is the difference of two positions of one source partition,
and rows lose nothing and double nothing, however many positions lie between the two, and whether compaction has removed
them or not: it only makes rows coarser.
"""

import enum
from typing import NamedTuple
from uuid import UUID

from appliance.audit.model.entries import Entry
from appliance.kafka.protocol.metadata import NOWHERE, Partition, is_another
from appliance.link.model.position import UNKNOWN, Position

_LOST = "the positions topic lost records: what was copied up to here has no rows, or not all"

_SAID = slice(2, 12)
"""The fields of a ``RowEnd`` that the position itself says."""


class Kind(enum.StrEnum):
    """The meaning of a row."""

    COPIED = "copied"
    GAP = "gap"
    MOVED = "moved"
    UNAUDITED = "unaudited"


class AuditRow(NamedTuple):
    """One row: a source partition's progress in one or more transactions of one producer. Columns: docs/run/audit.md.

    Offsets ``..._to`` are exclusive. ``committed`` is in milliseconds; None is unknown.
    """

    kind: Kind
    run: str | None
    lane: int
    topic: str
    partition: int
    copy: str
    source_from: int | None
    source_to: int | None
    copy_from: int | None
    copy_to: int | None
    records: int
    bytes: int
    rebuilt: int | None
    dropped: int
    filtered: int
    dead_letters: int
    transactions: int | None
    committed: int
    producer_id: int
    producer_epoch: int
    cause: str | None
    positions_offset: int


class RowEnd(NamedTuple):
    """The end of the last row of a source partition: the position that its lane's log holds at ``offset``.

    ``forgotten`` once the lane has deleted the position; ``cause`` is that of a gap which the next row has to name.
    ``layout`` is the number of the link's layout at that offset, as the lane's log has it. It ``is_sure`` unless
    compaction may have taken a later one: then it may be greater. It ``is_lost`` once that log was truncated: nobody
    knows what was copied from here to the next position.
    """

    lane: int
    offset: int
    source_id: UUID
    destination_id: UUID
    next_offset: int
    records: int
    bytes: int
    rebuilt: int | None
    dropped: int
    filtered: int
    dead_letters: int
    copy_to: int
    forgotten: bool = False
    cause: str = ""
    layout: int = 0
    is_sure: bool = True
    is_lost: bool = False


NOTHING = RowEnd(-1, -1, NOWHERE, NOWHERE, UNKNOWN, 0, 0, 0, 0, 0, 0, UNKNOWN, forgotten=True, layout=-1)
"""The end of no row."""


def row_end(position: Position, lane: int, offset: int, layout: int) -> RowEnd:
    """The end of a row that ends with this position."""
    ids, counts = (position.source_id, position.destination_id), (position.records, position.bytes)
    rebuilt = position.rebuilt if position.records or position.rebuilt is not None else 0
    copy_to = position.copy_end.offset if position.copy_end else UNKNOWN
    left_out = position.dropped, position.filtered, position.dead_letters
    return RowEnd(lane, offset, *ids, position.next_offset, *counts, rebuilt, *left_out, copy_to, layout=layout)


def is_old(before: RowEnd | None, now: RowEnd) -> bool:
    """True for a position that an earlier row covers already.

    After a change of lanes, a position of the old lane may be read after newer ones of the new lane. One that was
    deleted before the change, and comes back after it, is that of a topic which was removed and is copied again.
    """
    if before is None or before.is_lost:
        return False
    if before.lane == now.lane:
        return now.offset <= before.offset
    if before.is_sure and before.layout < now.layout:
        return False
    if now.records != before.records:
        return now.records < before.records
    return now.next_offset == before.next_offset or (now.next_offset < before.next_offset and not before.forgotten)


def is_moved(before: RowEnd | None, now: RowEnd) -> bool:
    """True for the position by which another lane takes the partition."""
    if (
        before is None
        or before.is_lost
        or before.lane == now.lane
        or not (before.forgotten or (before.is_sure and before.layout < now.layout))
    ):
        return False
    return (now.records, now.next_offset) == (before.records, before.next_offset)


def is_news(before: RowEnd, lane: int, source_id: UUID, following: int) -> bool:
    """True for a gap of this source topic up to an offset which no earlier row covers.

    UNKNOWN is that of a position that goes back, or on in another log: it is named in the lane where that happened, and
    not in those to which the partition goes later.
    """
    stays = before.lane == lane and not before.forgotten
    news = stays if following == UNKNOWN else following > before.next_offset
    return news and not is_another(before.source_id, source_id)


def row_of(
    partition: Partition, copy: str, before: RowEnd | None, now: RowEnd, entry: Entry, transactions: int | None
) -> AuditRow | None:
    """The row between two positions, without its run; None if nothing was copied or moved.

    ``transactions`` is None if compaction has removed some.
    """
    if before is not None and before.is_lost:
        return unknown_row(partition, copy, before, now, entry)
    # A deleted position came back in the same lane, after two changes of lanes, unless its counts begin again.
    if before is None or now.records < before.records or (before.forgotten and not now.records):
        if not now.records:
            return None  # copying begins here
        return _row(Kind.UNAUDITED, partition, copy, NOTHING, now, entry, None, before.cause if before else "")
    kind = _kind(before, now)
    return None if kind is None else _row(kind, partition, copy, before, now, entry, transactions, before.cause)


def unknown_row(partition: Partition, copy: str, before: RowEnd, now: RowEnd, entry: Entry) -> AuditRow | None:
    """The row between two positions where nobody knows what was copied: it counts nothing; None if they are alike."""
    if before[_SAID] == now[_SAID] or (before is NOTHING and not now.records):
        return None
    start = now._replace(next_offset=before.next_offset, copy_to=before.copy_to, rebuilt=None)
    start = start._replace(destination_id=before.destination_id)
    cause = "; ".join(filter(None, [before.cause, _LOST]))
    return _row(Kind.UNAUDITED, partition, copy, start, now, entry, None, cause)


def _kind(before: RowEnd, now: RowEnd) -> Kind | None:
    """The kind of the row between two positions of the same counts."""
    same_source = not is_another(before.source_id, now.source_id)
    if UNKNOWN in (before.next_offset, now.next_offset):
        return Kind.MOVED if (before.next_offset, before.records) != (now.next_offset, now.records) else None
    if not same_source or now.next_offset < before.next_offset:
        return Kind.MOVED
    if before.cause:
        return Kind.COPIED if now.records > before.records else Kind.GAP
    return Kind.COPIED if (now.next_offset, now.records) != (before.next_offset, before.records) else None


def _row(
    kind: Kind,
    partition: Partition,
    copy: str,
    before: RowEnd,
    now: RowEnd,
    entry: Entry,
    transactions: int | None,
    cause: str,
) -> AuditRow:
    same_copy = not is_another(before.destination_id, now.destination_id) and 0 <= before.copy_to <= now.copy_to
    known_rebuilt = before.rebuilt is not None and now.rebuilt is not None and before.rebuilt <= now.rebuilt
    return AuditRow(
        kind,
        None,
        now.lane,
        *partition,
        copy,
        _offset(before.next_offset),
        _offset(now.next_offset),
        before.copy_to if same_copy else None,
        _offset(now.copy_to),
        now.records - before.records,
        now.bytes - before.bytes,
        (now.rebuilt or 0) - (before.rebuilt or 0) if known_rebuilt else None,
        now.dropped - before.dropped,
        now.filtered - before.filtered,
        now.dead_letters - before.dead_letters,
        transactions,
        entry.committed,
        entry.producer_id,
        entry.producer_epoch,
        cause or None,
        now.offset,
    )


def _offset(offset: int) -> int | None:
    return None if offset == UNKNOWN else offset
