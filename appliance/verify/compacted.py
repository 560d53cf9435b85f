"""The verification of one partition of a compacted topic; ``newest`` defines the comparison."""

import asyncio
import time
from collections.abc import Callable, Iterable

from appliance.kafka.records.records import Record, unpack
from appliance.link.model.replicas import Replica
from appliance.verify.model.newest import ALL_KEYS, NewestRecords, Tally
from appliance.verify.model.report import NEWEST_RECORDS, CopyState, PartitionResult, Span, counted
from appliance.verify.partition import Reached, Terms
from appliance.verify.reader import Reader

_PAUSE = 0.2


async def verify_newest_records(
    replica: Replica,
    source: Reader,
    destination: Reader,
    due: int,
    terms: Terms,
    reached: Reached,
    may_lack_keys: Callable[[], bool] = lambda: False,
) -> PartitionResult:
    """Compare the newest record of each key, where the source's lies before offset ``due``.

    Both readers stand at the start of their logs. ``may_lack_keys`` is true if the link's SQL has left out some of the
    records read, or changed their keys: then compaction may have taken the only one of a key that was copied.

    Raises:
        PartitionStopped, BatchCorrupt, BrokerBusy, BrokerRefused, Unreachable, PeerError: as ``Reader.read``.
    """
    tally, low = Tally(), 0
    theirs = destination
    while low < ALL_KEYS:
        ours, theirs = source.at(source.position), destination.at(destination.position)
        share = NewestRecords(low, ALL_KEYS)
        tally += await _compare(share, ours, theirs, due, terms, reached)
        low = share.high
    state, detail = _outcome(tally, source.position, destination.position, terms.latest, may_lack_keys())
    differences = [offset for offset in (tally.first_changed, tally.first_absent) if offset is not None]
    return PartitionResult(
        replica.source_topic,
        replica.destination_topic,
        replica.partition,
        state,
        detail,
        compared=NEWEST_RECORDS,
        records=tally.equal,
        source=Span(source.position, due),
        destination=Span(destination.position, theirs.position),
        digest=f"{tally.digest:032x}",
        behind=tally.changed + tally.absent if state is CopyState.BEHIND else 0,
        differs_at=min(differences, default=None) if state is CopyState.DIFFERS else None,
    )


async def _compare(
    share: NewestRecords, source: Reader, destination: Reader, due: int, terms: Terms, reached: Reached
) -> Tally:
    """The tally of a share, when it shows no difference or the deadline has passed.

    The destination is read first, each time: whatever it has, the source then has, or has had.
    """
    while True:
        late = time.monotonic() > terms.deadline
        await _read_to_end(destination, share.add_destination, lambda _: None)
        await _read_to_end(source, share.add_source, reached)
        tally = share.tally(due)
        if late or not (tally.changed or tally.absent or tally.unknown):
            return tally
        await asyncio.sleep(_PAUSE)


async def _read_to_end(reader: Reader, add: Callable[[Iterable[Record]], None], reached: Reached) -> None:
    """Read up to the end that the first answer shows."""
    start, end = reader.position, None
    while end is None or reader.position < end:
        for batch in await reader.read():
            add(unpack(batch, start))
        reached(reader.position)
        end = reader.stable_end if end is None else end


def _outcome(
    tally: Tally, source_start: int, destination_start: int, latest: bool, lacks_keys: bool
) -> tuple[CopyState, str]:
    """The state and its detail; the starts are the offsets at which the logs begin.

    The destination copies in the source's order. So it is behind if all differing records are newer than all equal
    ones; otherwise it differs. Keys that it has no record of may be older than its log, or than its link.
    """
    unasked = tally.absent > 0 and (destination_start > 0 or latest)
    absent = 0 if unasked and tally.last_absent < tally.last_equal else tally.absent
    changed_amid = tally.first_changed is not None and tally.first_changed < tally.last_equal
    absent_amid = tally.first_absent is not None and tally.first_absent < tally.last_equal and not unasked
    alone = counted(tally.unknown, "key")
    if tally.unknown and not source_start and not lacks_keys:
        return CopyState.DIFFERS, f"the destination alone has {alone}, from its offset {tally.unknown_at} on"
    if changed_amid or absent_amid:
        return CopyState.DIFFERS, f"the destination lacks the newest record of {counted(tally.changed + absent, 'key')}"
    if tally.unknown and lacks_keys:
        cause = "compaction may have taken their records from the source"
        cause += ", where the SQL leaves newer ones out or gives them other keys"
        return (
            CopyState.NOT_COMPARED,
            f"the destination alone has {alone}, from its offset {tally.unknown_at} on: {cause}",
        )
    if unasked and not tally.equal and not tally.changed:
        return (
            CopyState.NOT_COMPARED,
            "the destination has none of the source's keys: it is behind, or was asked for none",
        )
    if tally.changed or absent:
        return CopyState.BEHIND, ""
    if tally.absent:
        cause = "its retention" if destination_start else "REPLICA_TOPICS_START=latest"
        return CopyState.EQUAL_IN_PART, f"{cause} has left {counted(tally.absent, 'key')} out of the destination"
    if tally.unknown:
        return CopyState.EQUAL, f"{alone} of the destination may be older than the source's log"
    return CopyState.EQUAL, ""
