"""The verification of one partition of a compacted topic; ``newest`` defines the comparison."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

from appliance.clock import monotonic
from appliance.kafka.records.records import Record, unpack
from appliance.listing import counted
from appliance.logs.model.newest import ALL_KEYS, Keys, NewestRecords, Tally
from appliance.logs.model.span import CopyState, Span
from appliance.logs.reader import LogReader
from appliance.verify.model.report import NEWEST_RECORDS, PartitionResult
from appliance.verify.partition import Reached, verdict_on
from appliance.verify.sql import CopiedBySql
from appliance.verify.work import Job

_PAUSE = 0.2


async def verify_newest_records(
    job: Job,
    source: LogReader,
    destination: LogReader,
    deadline: float,
    reached: Reached,
    sql: CopiedBySql | None = None,
) -> PartitionResult:
    """Compare the newest record of each key, where the source's lies before the end of the job's span.

    Until ``deadline``, by ``monotonic``, the destination may catch up with these. Both readers stand at the start of
    their logs. If the link's ``sql`` has left out some of the records read, or changed their keys, compaction may have
    taken the only one of a key that was copied.
    """
    tally, low = Tally(), 0
    theirs = destination
    while low < ALL_KEYS:
        ours, theirs = source.at(source.position), destination.at(destination.position)
        share = NewestRecords(low, ALL_KEYS)
        tally = tally.plus(await _compare(share, ours, theirs, job, deadline, reached))
        low = share.high
    state, detail = _outcome(
        tally, job, source.position, lacks_keys=sql is not None and sql.may_lack_keys(job.replica.source)
    )
    differences = [offset for offset in (tally.changed.first, tally.absent.first) if offset is not None]
    return replace(
        verdict_on(job.replica, state, detail),
        compared=NEWEST_RECORDS,
        records=tally.equal.count,
        source=Span(source.position, job.source.end),
        destination=Span(destination.position, theirs.position),
        digest=f"{tally.digest:032x}",
        behind=tally.changed.count + tally.absent.count if state is CopyState.BEHIND else 0,
        differs_at=min(differences, default=None) if state is CopyState.DIFFERS else None,
    )


async def _compare(
    share: NewestRecords, source: LogReader, destination: LogReader, job: Job, deadline: float, reached: Reached
) -> Tally:
    """The tally of a share, when it shows no difference or the deadline has passed.

    The destination is read first, each time: whatever it has, the source then has, or has had.
    """
    while True:
        late = monotonic() > deadline
        await _read_to_end(destination, 0, share.add_destination, lambda _: None)
        await _read_to_end(source, job.source.end, share.add_source, reached)
        tally = share.tally(job.source.end, job.asked_from)
        if late or not (tally.changed.count or tally.absent.count or tally.unknown.count):
            return tally
        await asyncio.sleep(_PAUSE)


async def _read_to_end(
    reader: LogReader, known_end: int, add: Callable[[Iterable[Record]], None], reached: Reached
) -> None:
    """Read up to the end that the first answer shows, at least the known one."""
    start, end = reader.position, None
    while end is None or reader.position < end:
        for batch in await reader.read(known_end=known_end if end is None else end):
            add(unpack(batch, start))
        reached(reader.position)
        end = max(reader.stable_end, known_end) if end is None else end


def _outcome(tally: Tally, job: Job, source_start: int, *, lacks_keys: bool) -> tuple[CopyState, str]:
    """The state and its detail.

    The destination copies in the source's order. So it is behind if all differing records are newer than all equal
    ones; otherwise it differs. Retention takes the oldest of that order on each side, and no more than its log has
    lost: a key of one side alone is excused only if it is older than every equal one.
    """
    deleted, unknown = job.destination.start, counted(tally.unknown.count, "key")
    absent = 0 if _may_be_deleted(tally.absent, deleted, tally.equal) else tally.absent.count
    left_out = tally.not_due + tally.absent.count - absent
    alone = f"the destination alone has {unknown}, from its offset {tally.unknown.first} on"
    if not _may_be_deleted(tally.unknown, source_start, tally.copies) and not lacks_keys:
        return CopyState.DIFFERS, alone
    amid = [first for first in (tally.changed.first, tally.absent.first if absent else None) if first is not None]
    if min(amid, default=tally.equal.last) < tally.equal.last:
        lacking = counted(tally.changed.count + absent, "key")
        return CopyState.DIFFERS, f"the destination lacks the newest record of {lacking}"
    if tally.unknown.count and lacks_keys:
        cause = "compaction may have taken them from the source, where the SQL leaves newer ones out or changes keys"
        return CopyState.NOT_COMPARED, f"{alone}: {cause}"
    if tally.changed.count or absent:
        return CopyState.BEHIND, ""
    if not tally.equal.count and (tally.unknown.count or source_start > max(job.asked_from, deleted)):
        orphans = f"{unknown} of the destination have no source any more"
        return CopyState.NOT_COMPARED, f"{orphans}: the source's log begins at {source_start} now"
    if left_out:
        state = CopyState.EQUAL_IN_PART if tally.equal.count or not deleted else CopyState.NOT_COMPARED
        cause = "its retention" if deleted else "REPLICA_TOPICS_START"
        return state, f"{cause} has left {counted(left_out, 'key')} out of the destination"
    if tally.unknown.count:
        return CopyState.EQUAL, f"{unknown} of the destination may be older than the source's log"
    return CopyState.EQUAL, ""


def _may_be_deleted(keys: Keys, deleted: int, equal: Keys) -> bool:
    """True if the other log, which has lost so many offsets, may have lost these keys: only the oldest."""
    return keys.count <= deleted and (equal.first is None or keys.last < equal.first)
