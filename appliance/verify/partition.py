"""The verification of one partition, every record of it."""

from collections.abc import Callable
from dataclasses import replace

from appliance.link.model.replicas import Replica
from appliance.listing import counted
from appliance.logs.beginning import Beginning, begin
from appliance.logs.model.comparison import Comparison, Difference, digest
from appliance.logs.model.span import CopyState, Span
from appliance.logs.side import Side
from appliance.verify.model.report import PartitionResult
from appliance.verify.work import Job, digest_of_part

Reached = Callable[[int], None]
"""Receives the source offset up to which a partition has been compared."""


async def verify_every_record(job: Job, source: Side, destination: Side, reached: Reached) -> PartitionResult:
    """Compare the partition from the offset where both logs meet, or where the link has adopted it; or a part of it.

    The destination's log was measured before the source's, so all its records must be in the source's log.
    """
    beginning = await begin(source, destination, job.asked_from, job.adopted) if job.first else Beginning()
    if beginning.state is CopyState.BEHIND:
        return replace(verdict_on(job.replica, CopyState.BEHIND, beginning.detail), behind=await source.count())
    if not beginning.state.well:
        return replace(verdict_on(job.replica, beginning.state, beginning.detail), differs_at=beginning.differs_at)
    return await _Run(job, source, destination, beginning).verdict(reached)


def verdict_on(replica: Replica, state: CopyState, detail: str) -> PartitionResult:
    """The result of a partition of which nothing is compared yet."""
    return PartitionResult(replica.source_topic, replica.destination_topic, replica.partition, state, detail)


class _Run:
    """The comparison from the beginning on."""

    def __init__(self, job: Job, source: Side, destination: Side, beginning: Beginning) -> None:
        self._job = job
        self._source = source
        self._destination = destination
        self._beginning = beginning
        self._started = (source.stream.start, destination.stream.start)
        self._comparison = Comparison(source.stream, destination.stream)

    async def verdict(self, reached: Reached) -> PartitionResult:
        while await self._source.more():
            if not await self._destination.more():
                return await self._behind()
            if difference := self._comparison.advance():
                return self._differs(difference)
            reached(self._source.reader.position)
        return await self._ended()

    async def _ended(self) -> PartitionResult:
        verdict = self._compared(self._beginning.state, self._beginning.detail)
        verdict = replace(verdict, source=Span(self._started[0], self._source.log.end))
        first = self._destination.stream.position
        surplus = await self._destination.count()
        if surplus:
            detail = f"the destination has {counted(surplus, 'record')} more at its end, from its offset {first} on"
            return replace(verdict, state=CopyState.DIFFERS, detail=detail, differs_at=self._source.log.end)
        if verdict.state is CopyState.EQUAL_IN_PART and not verdict.records and not self._beginning.holds_nothing_due:
            return replace(verdict, state=CopyState.NOT_COMPARED)
        return verdict

    async def _behind(self) -> PartitionResult:
        verdict = self._compared(CopyState.BEHIND, self._beginning.detail)
        return replace(verdict, behind=await self._source.count())

    def _differs(self, difference: Difference) -> PartitionResult:
        detail = "; ".join(filter(None, (difference.what, self._beginning.detail)))
        return replace(self._compared(CopyState.DIFFERS, detail), differs_at=difference.source_offset)

    def _compared(self, state: CopyState, detail: str) -> PartitionResult:
        """The verdict at this point of the comparison."""
        ours, theirs = self._started
        blocks = self._comparison.blocks
        return replace(
            verdict_on(self._job.replica, state, detail),
            records=self._comparison.records,
            source=Span(ours, self._source.stream.position),
            destination=Span(theirs, self._destination.stream.position),
            digest=digest(blocks) if self._job.is_whole else digest_of_part(blocks),
        )
