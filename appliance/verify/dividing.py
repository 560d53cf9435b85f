"""The division of long logs into parts, at places that both logs show; ``work`` says why any place will do."""

from collections.abc import Sequence

from appliance.errors import ApplianceError
from appliance.kafka.records.batch import Batch
from appliance.logs.model.span import Span
from appliance.logs.side import Side
from appliance.verify.checker import Checker
from appliance.verify.work import Job, divided, divisions

_PURPOSE = "verify-divide"


async def parts_of(checker: Checker, job: Job) -> list[Job]:
    """The parts of a job, in order; the job itself if it cannot be divided, or is not worth it."""
    places: list[tuple[int, int]] = []
    try:
        for offset in divisions(job):
            place = await _place(checker, job, offset)
            if place is None or (places and (place[0] <= places[-1][0] or place[1] <= places[-1][1])):
                break  # others would probably be looked for in vain, too
            places.append(place)
    except ApplianceError:
        places = []  # the verification meets it again, and says what it is
    return divided(job, places)


async def _place(checker: Checker, job: Job, offset: int) -> tuple[int, int] | None:
    """The offsets of a record of both sides, with which the first batch of the source from ``offset`` on begins."""
    found = _first(await checker.at_source(job, _PURPOSE, offset).read(), offset)
    if found is None or found >= job.source.end:
        return None
    ours = Side(checker.at_source(job, _PURPOSE, found), Span(found, job.source.end))
    if not await ours.more():
        return None
    anchor = await ours.anchor()
    place = (
        await Side(checker.at_destination(job, _PURPOSE, job.destination.start), job.destination).find(anchor)
    ).whole
    if place is None or not anchor.complete or not job.destination.start < place < job.destination.end:
        return None
    return found, place


def _first(batches: Sequence[Batch], offset: int) -> int | None:
    """The first offset of the first batch that begins at ``offset`` or later."""
    starts = [batch.header.base_offset for batch in batches if batch.header.records]
    return next((start for start in starts if start >= offset), None)
