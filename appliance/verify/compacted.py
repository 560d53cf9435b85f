"""The verification of one partition of a compacted topic; ``newest`` defines the comparison."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

from appliance.clock import monotonic
from appliance.kafka.records.records import Record, unpack
from appliance.logs.model.newest import ALL_KEYS, NewestRecords, Tally
from appliance.logs.model.span import CopyState, Span, counted
from appliance.logs.reader import Reader
from appliance.verify.model.report import NEWEST_RECORDS, PartitionResult
from appliance.verify.partition import Reached, verdict_on
from appliance.verify.sql import CopiedBySql
from appliance.verify.work import Job

_PAUSE = 0.2


async def verify_newest_records(
    job: Job, source: Reader, destination: Reader, deadline: float, reached: Reached, sql: CopiedBySql | None = None
) -> PartitionResult:
    """Compare the newest record of each key, where the source's lies before the end of the job's span.

    Until ``deadline``, by ``monotonic``, the destination may catch up with these. Both readers stand at the start of
    their logs. If the link's ``sql`` has left out some of the records read, or changed their keys, compaction may have
    taken the only one of a key that was copied.

    Raises:
        PartitionStopped, BatchCorrupt: as ``Reader.read``.
    """
    tally, low = Tally(), 0
    theirs = destination
    while low < ALL_KEYS:
        ours, theirs = source.at(source.position), destination.at(destination.position)
        share = NewestRecords(low, ALL_KEYS)
        tally += await _compare(share, ours, theirs, job, deadline, reached)
        low = share.high
    state, detail = _outcome(
        tally, job, source.position, lacks_keys=sql is not None and sql.may_lack_keys(job.replica.source)
    )
    differences = [offset for offset in (tally.first_changed, tally.first_absent) if offset is not None]
    return replace(
        verdict_on(job.replica, state, detail),
        compared=NEWEST_RECORDS,
        records=tally.equal,
        source=Span(source.position, job.source.end),
        destination=Span(destination.position, theirs.position),
        digest=f"{tally.digest:032x}",
        behind=tally.changed + tally.absent if state is CopyState.BEHIND else 0,
        differs_at=min(differences, default=None) if state is CopyState.DIFFERS else None,
    )


async def _compare(
    share: NewestRecords, source: Reader, destination: Reader, job: Job, deadline: float, reached: Reached
) -> Tally:
    """The tally of a share, when it shows no difference or the deadline has passed.

    The destination is read first, each time: whatever it has, the source then has, or has had.
    """
    while True:
        late = monotonic() > deadline
        await _read_to_end(destination, 0, share.add_destination, lambda _: None)
        await _read_to_end(source, job.source.end, share.add_source, reached)
        tally = share.tally(job.source.end, job.asked_from)
        if late or not (tally.changed or tally.absent or tally.unknown):
            return tally
        await asyncio.sleep(_PAUSE)


async def _read_to_end(
    reader: Reader, known_end: int, add: Callable[[Iterable[Record]], None], reached: Reached
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
    deleted = job.destination.start
    taken = tally.absent <= deleted and (tally.first_equal is None or tally.last_absent < tally.first_equal)
    absent = 0 if taken else tally.absent
    left_out = tally.not_due + tally.absent - absent
    alone = f"the destination alone has {counted(tally.unknown, 'key')}, from its offset {tally.unknown_at} on"
    no_source = tally.unknown <= source_start and (tally.first_copy is None or tally.last_unknown < tally.first_copy)
    if not no_source and not lacks_keys:
        return CopyState.DIFFERS, alone
    amid = [first for first in (tally.first_changed, tally.first_absent if absent else None) if first is not None]
    if min(amid, default=tally.last_equal) < tally.last_equal:
        return CopyState.DIFFERS, f"the destination lacks the newest record of {counted(tally.changed + absent, 'key')}"
    if tally.unknown and lacks_keys:
        cause = "compaction may have taken them from the source, where the SQL leaves newer ones out or changes keys"
        return CopyState.NOT_COMPARED, f"{alone}: {cause}"
    if tally.changed or absent:
        return CopyState.BEHIND, ""
    if not tally.equal and (tally.unknown or source_start > max(job.asked_from, deleted)):
        left = f"{counted(tally.unknown, 'key')} of the destination have no source any more"
        return CopyState.NOT_COMPARED, f"{left}: the source's log begins at {source_start} now"
    if left_out:
        state = CopyState.EQUAL_IN_PART if tally.equal or not deleted else CopyState.NOT_COMPARED
        cause = "its retention" if deleted else "REPLICA_TOPICS_START"
        return state, f"{cause} has left {counted(left_out, 'key')} out of the destination"
    if tally.unknown:
        return CopyState.EQUAL, f"{counted(tally.unknown, 'key')} of the destination may be older than the source's log"
    return CopyState.EQUAL, ""
