"""The link's SQL as its record: which statement has made the copies of which records.

Each lane writes a change into its own partition of the positions topic, after it has fenced its predecessor and before
it copies, with the offset from which on it holds for each partition. So no record is copied by a statement that is not
written down. A lane that finds the change of a newer run copies nothing. A partition that goes back, or begins anew, is
named again, in the transaction that moves its position.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.link.model.position import UNKNOWN, Position


@dataclass(frozen=True, slots=True)
class LinkSql:
    """The SQL of a run of the replicator.

    ``number`` counts the link's changes, 0 as long as there was none. ``text`` is empty if records are copied as they
    are. ``salt`` is a digest of the salt, empty if there is none.
    """

    number: int = 0
    text: str = ""
    salt: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal; empty if records are copied as they are."""
        return hashlib.sha256(self.text.encode()).hexdigest() if self.text else ""

    def is_that_of(self, other: "LinkSql") -> bool:
        """True if both make the same of every record."""
        return (self.text, self.salt) == (other.text, other.salt)


@dataclass(frozen=True, slots=True)
class SqlChange:
    """A change of the link's SQL in one lane, by a run of a generation; ``since`` in milliseconds.

    ``offsets`` are the next offsets of the lane's partitions at that time, and of those that have begun, or gone back,
    since. A partition that is not among them had no position, so that the change, or a later one, holds for all of it.
    """

    sql: LinkSql
    run: str
    generation: int
    since: int
    offsets: Mapping[Partition, int] = field(default_factory=dict)

    @property
    def order(self) -> tuple[int, int, str]:
        """The greatest holds; of simultaneous starts that of the run that stays."""
        return self.sql.number, self.generation, self.run


def newest_change(changes: Iterable[SqlChange]) -> SqlChange | None:
    """The change that holds."""
    return max(changes, key=lambda change: change.order, default=None)


def link_sql(changes: Iterable[SqlChange], text: str, salt: str) -> LinkSql:
    """The SQL of a run that starts with this text and this digest of a salt."""
    newest = newest_change(changes)
    current = newest.sql if newest else LinkSql()
    sql = LinkSql(current.number, text, salt)
    return sql if sql.is_that_of(current) else LinkSql(current.number + 1, text, salt)


def history(changes: Iterable[SqlChange], partition: Partition) -> list[tuple[int, LinkSql]]:
    """The SQL of a partition's copy, each with the source offset from which on it holds; the first holds from 0.

    ``changes`` are those of all lanes, because a partition may have moved from one to another: then both may name it,
    and the lower offset counts. An offset below that of an earlier change is that of a partition which was reset.
    """
    # Of one change's records only that of the partition's lane names it: the others say nothing of it.
    ordered = sorted(changes, key=lambda change: (change.sql.number, partition not in change.offsets, change.order))
    before = LinkSql()
    later: list[tuple[int, LinkSql]] = []
    for change in ordered:
        if partition in change.offsets:
            offset = min([change.offsets[partition], *(first for first, sql in later if sql == change.sql)])
            later = [*((first, sql) for first, sql in later if first < offset), (offset, change.sql)]
        elif not later:
            before = change.sql
    return later if later and later[0][0] <= 0 else [(0, before), *later]


def restatement(
    changes: Iterable[SqlChange], before: Mapping[Partition, Position], after: Mapping[Partition, Position]
) -> SqlChange | None:
    """The newest of a lane's changes, with the partitions that begin, or go back, by these positions ``after``.

    Their records are copied by it from there on, whatever has copied the same offsets before. None: there are none.
    """
    newest = newest_change(changes)
    begun = {key: each.next_offset for key, each in after.items() if _begins(before.get(key), each)}
    if newest is None or not begun:
        return None
    lower = {key: min(offset, newest.offsets.get(key, offset)) for key, offset in begun.items()}
    return replace(newest, offsets={**newest.offsets, **lower})


def _begins(before: Position | None, after: Position) -> bool:
    if after.next_offset == UNKNOWN:
        return False
    if before is None or before.next_offset == UNKNOWN or is_another(before.source_id, after.source_id):
        return True
    return after.next_offset < before.next_offset


def salt_digest(salt: str) -> str:
    """The digest by which a record tells one salt from another; a salt is too strong to be found by it."""
    return hashlib.sha256(b"kafka-cloud-replicator salt\0" + salt.encode()).hexdigest()[:16] if salt else ""
