"""The verification of a total order: each T-global is compared with the longest one, and that one with T everywhere.

All T-global have the same records in the same order, as far as both keep them. Of each origin, T's records up to the
vector are in T-global exactly once and in their order: by the maps of offsets, which say whose each record is, the
records of one origin are compared with its log. What no map knows is no record of the order.
"""

import argparse
import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.clock import epoch_seconds, monotonic
from appliance.errors import ApplianceError, PartitionStopped, Unreachable
from appliance.kafka.client.configs import cleanup_policy
from appliance.kafka.protocol.metadata import NOWHERE, Partition, is_another
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.records import placed, unpack
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.offset_map import Segment, run_at
from appliance.link.model.order import OrderRecord
from appliance.link.model.replicas import Replica
from appliance.link.model.topic_choice import among
from appliance.listing import counted
from appliance.logs.model.comparison import digest
from appliance.logs.model.span import CopyState, Span
from appliance.logs.reader import LogReader
from appliance.logs.side import Side
from appliance.order.handle import OrderHandle
from appliance.order.model.cluster_facts import ClusterFacts
from appliance.settings.order_values import OrderSettings
from appliance.timestamps import utc
from appliance.verify.compacted import verify_newest_records
from appliance.verify.model.report import PartitionResult, VerificationReport
from appliance.verify.partition import verdict_on, verify_every_record
from appliance.verify.work import Job


async def verify_order(settings: OrderSettings, parsed: argparse.Namespace) -> VerificationReport:
    """Verify all T-global, or those of some topics, of all clusters that answer."""
    began, deadline = utc(epoch_seconds()), monotonic() + parsed.wait
    async with OrderHandle.open(settings) as order:
        facts = await order.facts()
        read = {name: each for name, each in facts.items() if isinstance(each, ClusterFacts)}
        unread = {name: each for name, each in facts.items() if isinstance(each, str)}
        ordered = {key for each in read.values() for key in each.orders}
        chosen = among(parsed.topic, {key.topic for key in ordered}, "no such topic is in the order")
        keys = sorted(key for key in ordered if key.topic in chosen)
        results = [
            PartitionResult("", name, None, CopyState.NOT_COMPARED, f"{name} was not looked at: {reason}")
            for name, reason in unread.items()
        ]
        for key in sorted(keys):
            results += await _Partition(order, read, key, deadline).results()
    names = ", ".join(read)
    return VerificationReport(f"T of {names}", f"T-global of {names}", began, utc(epoch_seconds()), results)


@dataclass(frozen=True, slots=True)
class _OfOrigin:
    """Chooses the records of T-global that came from one origin."""

    segments: Sequence[Segment]

    async def __call__(self, batches: list[Batch]) -> list[Batch]:
        return [part for batch in batches if (part := self._part(batch)) is not None]

    def _part(self, batch: Batch) -> Batch | None:
        found = run_at(self.segments, batch.header.base_offset)
        if found and found[1] >= batch.header.records:
            return batch
        records = [record for record in unpack(batch, 0) if run_at(self.segments, record.offset)]
        return placed(records) if records else None


@dataclass(slots=True)
class _Partition:
    """The order of one partition of T in the clusters that were read; ``longest`` is the one with most records."""

    order: OrderHandle
    read: Mapping[str, ClusterFacts]
    key: Partition
    deadline: float
    longest: str = field(init=False)
    log: Partition = field(init=False)

    def __post_init__(self) -> None:
        self.longest = max(self.read, key=lambda name: self._record(name).rank)
        self.log = Partition(self.order.naming.destination(self.key.topic), self.key.number)

    async def results(self) -> list[PartitionResult]:
        """The result of the longest T-global, of each other one, and of each origin."""
        maps, sources = await self.order.maps(self.longest, *self.key)
        work = {
            self._replica("", self.longest): self._whole(maps, sources),
            **{self._replica(self.longest, name): self._compared(name) for name in self.read if name != self.longest},
            **{self._replica(*source): self._of_origin(maps, source) for source in sources},
        }
        return [*await asyncio.gather(*(_tried(replica, each) for replica, each in work.items()))]

    async def _compared(self, name: str) -> PartitionResult:
        """Another T-global, which may catch up with the longest one; from the first rank on that both still have."""
        firsts = {each: await self._first_rank(each) for each in (self.longest, name)}
        rank, replica = max(firsts.values()), self._replica(self.longest, name)
        if rank > self._record(name).rank:
            raise PartitionStopped(
                f"its rank is {self._record(name).rank}, and the longest one begins at rank {rank} now"
            )
        starts = {each: await self._offset_after(each, rank - first) for each, first in firsts.items()}
        ours = self._side(self.longest, self.log, Span(starts[self.longest], self._span(self.longest).end), name)
        theirs = self._side(name, self.log, Span(starts[name], self._span(name).end), name, self.deadline)
        kept = f"records before rank {rank} were not compared: retention has deleted them" if rank else ""
        result = await _verified(replica, ours, theirs, kept)
        if result.differs_at is None:
            return result
        rank = self._record(self.longest).rank - await ours.count_between(result.differs_at, ours.log.end)
        return replace(result, detail=f"at rank {rank}: {result.detail}")

    async def _of_origin(self, maps: OffsetMaps, source: Partition) -> PartitionResult:
        """The records of one origin up to the vector, in T and in the longest T-global."""
        (cluster, _, topic), number = source.topic.partition(":"), source.number
        position, log, segments = maps.position(source), Partition(topic, number), maps.segments(source)
        facts = self.read.get(cluster)
        if facts is None or position is None or log not in facts.spans:
            raise Unreachable(f"{source} was not looked at")
        there = (await self.order.clusters[cluster].metadata([topic])).topics[topic]
        if is_another(there.id, position.source_id):
            raise PartitionStopped(f"{source} was made anew: nobody has the records before that to compare")
        end, end_there = position.next_offset, _end(maps, [source])
        start, start_there = facts.spans[log].start, self._span(self.longest).start
        if start:
            places = (each.index.at_source(max(start, each.range.source_from)) for each in segments)
            start_there = max(
                start_there, next((place[1] for place in places if place and place[0] >= start), end_there)
            )
        if start_there or self._record(self.longest).first_rank:
            places = (each.index.at_copy(max(start_there, each.range.copy_from)) for each in segments)
            start = max(start, next((place[0] for place in places if place and place[1] >= start_there), end))
        kept = f"offsets before {start} were not compared: retention has deleted them" if start else ""
        ours = self._side(cluster, log, Span(start, max(start, end)), str(source))
        theirs = self._side(self.longest, self.log, Span(start_there, max(start_there, end_there)), str(source))
        theirs.reader.choose = _OfOrigin(segments)
        if "compact" in await cleanup_policy(self.order.clusters[cluster], topic):
            job = Job(self._replica(*source), ours.log, theirs.log, compacted=True)
            return await verify_newest_records(job, ours.reader, theirs.reader, self.deadline, _ignored)
        return await _verified(self._replica(*source), ours, theirs, kept)

    async def _whole(self, maps: OffsetMaps, sources: Sequence[Partition]) -> PartitionResult:
        """The longest T-global: it has as many records as it says, each from a known origin."""
        span, own = self._span(self.longest), self._record(self.longest)
        segments, mapped, records = [maps.all_segments(source) for source in sources], _end(maps, sources), 0
        result = verdict_on(self._replica("", self.longest), CopyState.EQUAL, "")
        async for batches in self._reader(self.longest, self.log, "whole", span.start).until(span.end):
            for header in (batch.header for batch in batches if batch.header.base_offset < span.end):
                records += header.records
                offset = header.base_offset
                while offset <= header.last_offset and offset < mapped:
                    found = next(filter(None, (run_at(each, offset) for each in segments)), None)
                    if found is None:
                        detail = f"nobody knows where the record at offset {offset} came from"
                        return replace(result, state=CopyState.DIFFERS, detail=detail, differs_at=offset)
                    offset += found[1]
        result = replace(result, records=records, destination=span)
        expected = own.rank - own.first_rank
        if expected == records or (span.start > own.first and records < expected):
            return result
        detail = f"it has {counted(records, 'record')}, and its lane has written {own.rank}"
        return replace(result, state=CopyState.DIFFERS, detail=detail)

    def _record(self, name: str) -> OrderRecord:
        return self.read[name].orders.get(self.key, OrderRecord())

    def _span(self, name: str) -> Span:
        """T-global as its lane has committed it: its rank is that of the end; without what lies before a gap."""
        record, there = self._record(name), self.read[name].spans.get(self.log, Span(0, 0))
        start = max(there.start, record.first)
        return Span(start, max(start, record.end.offset if record.end else 0))

    def _reader(self, name: str, log: Partition, purpose: str, start: int) -> LogReader:
        return LogReader(self.order.clusters[name], log, f"verify-{purpose}", start)

    def _side(self, name: str, log: Partition, span: Span, purpose: str, deadline: float | None = None) -> Side:
        return Side(self._reader(name, log, purpose, span.start), span, deadline)

    async def _first_rank(self, name: str) -> int:
        """The rank of the first record that a T-global still has."""
        span, record = self._span(name), self._record(name)
        if span.start == record.first:
            return record.first_rank
        return record.rank - await self._side(name, self.log, span, name).count()

    async def _offset_after(self, name: str, records: int) -> int:
        """The offset of a T-global after so many of its first records."""
        span = self._span(name)
        async for batches in self._reader(name, self.log, name, span.start).until(span.end if records else span.start):
            for header in (batch.header for batch in batches):
                if records <= header.records:
                    return header.base_offset + records
                records -= header.records
        return span.start

    def _replica(self, source: str, copy: str | int) -> Replica:
        """The name of a result: two T-global, or a partition of T and the longest one."""
        if isinstance(copy, int):
            return Replica(source, copy, f"{self.longest}:{self.log.topic}", NOWHERE, NOWHERE)
        topic = f"{source}:{self.log.topic}" if source else ""
        return Replica(topic, self.log.number, f"{copy}:{self.log.topic}", NOWHERE, NOWHERE)


async def _verified(replica: Replica, ours: Side, theirs: Side, kept: str) -> PartitionResult:
    """Compare two sides that begin at the same record; ``kept`` says what lies before it."""
    job = Job(replica, ours.log, theirs.log, compacted=False, first=False)
    result = await verify_every_record(job, ours, theirs, _ignored)
    state = CopyState.EQUAL_IN_PART if kept and result.state is CopyState.EQUAL else result.state
    detail = "; ".join(filter(None, (result.detail, kept)))
    return replace(
        result, state=state, detail=detail, digest=digest(result.digest.split(",")) if result.digest else None
    )


async def _tried(replica: Replica, work: Awaitable[PartitionResult]) -> PartitionResult:
    try:
        return await work
    except ApplianceError as error:
        return verdict_on(replica, CopyState.NOT_COMPARED, str(error))


def _end(maps: OffsetMaps, sources: Iterable[Partition]) -> int:
    """The end of T-global as these positions have it: what lies below has been mapped."""
    ends = [position.copy_end for source in sources if (position := maps.position(source))]
    return max((end.offset for end in ends if end), default=0)


def _ignored(_: int) -> None:
    pass
