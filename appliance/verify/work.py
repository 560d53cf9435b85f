"""The work of a verification in parts: a partition, or a range of its offsets; as values, and as JSON for another host.

A long log is divided where a batch of the source begins, and the destination has its records. The parts follow each
other without a gap on both sides, so if each is equal, all is, wherever they were divided. If one is not, the partition
is verified again in one piece, so that the result is the same as without parts.
"""

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from appliance.link.model.claims import AdoptedPartition
from appliance.link.model.replicas import Replica
from appliance.logs.model.comparison import BLOCK_OFFSETS, digest
from appliance.logs.model.span import CopyState, Span
from appliance.verify.model.report import PartitionResult

PARTS = 64
"""Most parts of one partition: each costs a search for the place where it begins."""

_BUNDLE_OFFSETS, _BUNDLE_OFFSETS_OF_SQL = BLOCK_OFFSETS, BLOCK_OFFSETS // 8
_BUNDLE_JOBS = 64
"""Small partitions are verified by one task up to these sums: a task costs connections to both clusters."""

_BLOCKS = ","


@dataclass(frozen=True, slots=True)
class Job:
    """A partition with the spans of its logs, and whether a key may have lost older records on either side.

    ``adopted`` says where the link began, if another program has filled the copy before. A part is ``first`` if it
    begins where the partition does, and ``last`` if it ends there; the spans of the others are exact on both sides. The
    link was made to copy from source offset ``asked_from`` on.
    """

    replica: Replica
    source: Span
    destination: Span
    compacted: bool
    adopted: AdoptedPartition | None = None
    first: bool = True
    last: bool = True
    asked_from: int = 0

    @property
    def is_whole(self) -> bool:
        """True if it is no part."""
        return self.first and self.last


def divisions(job: Job) -> list[int]:
    """The source offsets from which on a part may begin: ends of blocks, evenly spread."""
    if job.compacted or not job.is_whole:
        return []
    first, last = job.source.start // BLOCK_OFFSETS + 1, (job.source.end - 1) // BLOCK_OFFSETS
    step = max(1, -(-(last - first + 2) // PARTS))
    return [block * BLOCK_OFFSETS for block in range(first + step - 1, last + 1, step)]


def divided(job: Job, places: Sequence[tuple[int, int]]) -> list[Job]:
    """The parts that begin at these offsets of the source and the destination, in order, and the one before."""
    starts = [(job.source.start, job.destination.start), *places]
    ends = [*places, (job.source.end, job.destination.end)]
    return [
        replace(
            job,
            source=Span(ours, our_end),
            destination=Span(theirs, their_end),
            adopted=job.adopted if number == 0 else None,
            first=number == 0,
            last=number == len(places),
        )
        for number, ((ours, theirs), (our_end, their_end)) in enumerate(zip(starts, ends, strict=True))
    ]


def joined(results: Sequence[PartitionResult]) -> PartitionResult | None:
    """The result of a partition from those of its parts, in order; None if it has to be verified in one piece."""
    *before, last = results
    if any(not result.state.well or result.source is None for result in before) or last.source is None:
        return None
    first = results[0]
    if first.source is None or first.destination is None or last.destination is None:
        return None
    blocks = [block for result in results if result.digest for block in result.digest.split(_BLOCKS)]
    return replace(
        last,
        state=first.state if last.state is CopyState.EQUAL else last.state,
        detail="; ".join(filter(None, (last.detail, first.detail))),
        records=sum(result.records for result in results),
        source=Span(first.source.start, last.source.end),
        destination=Span(first.destination.start, last.destination.end),
        digest=digest(blocks),
        failed_at=max((each.failed_at for each in results if each.failed_at is not None), default=None),
    )


def digest_of_part(blocks: Sequence[str]) -> str:
    """The digest of a part, until ``joined`` makes one of all."""
    return _BLOCKS.join(blocks)


def bundles(jobs: Iterable[Job], *, has_sql: bool = False) -> list[list[Job]]:
    """The jobs of each task: long ones alone and first, so that none is left at the end; short ones together.

    With SQL, a task takes about ten times as long for each record.
    """
    most = _BUNDLE_OFFSETS_OF_SQL if has_sql else _BUNDLE_OFFSETS
    tasks: list[list[Job]] = []
    size = 0
    for job in sorted(jobs, key=lambda job: -len(job.source)):
        if not tasks or size + len(job.source) > most or len(tasks[-1]) >= _BUNDLE_JOBS:
            tasks.append([])
            size = 0
        tasks[-1].append(job)
        size += len(job.source)
    return tasks


def encode_job(job: Job) -> dict[str, Any]:
    """The job as JSON."""
    replica = {**asdict(job.replica), "source_id": job.replica.source_id.hex}
    replica["destination_id"] = job.replica.destination_id.hex
    return {**asdict(job), "replica": replica, "adopted": list(job.adopted) if job.adopted else None}


def decode_job(fields: dict[str, Any]) -> Job:
    """The job of ``encode_job``."""
    ids = {name: uuid.UUID(fields["replica"][name]) for name in ("source_id", "destination_id")}
    spans = {name: Span(**fields[name]) for name in ("source", "destination")}
    adopted = AdoptedPartition(*fields["adopted"]) if fields["adopted"] else None
    return Job(**{**fields, **spans, "replica": Replica(**{**fields["replica"], **ids}), "adopted": adopted})


def decode_result(fields: dict[str, Any]) -> PartitionResult:
    """The result of which these are the fields, as JSON."""
    spans = {name: Span(**fields[name]) if fields[name] else None for name in ("source", "destination")}
    return PartitionResult(**{**fields, **spans, "state": CopyState(fields["state"])})


def offsets_of(jobs: Collection[Job]) -> int:
    """Number of source offsets of all of them."""
    return sum(len(job.source) for job in jobs)
