"""The positions topic as the audit reads it, by one Fetch to each leader, and the rows of what is new in it.

Rows are made in a thread of their own, at most half of the time: the replicator's driver runs beside it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Mapping

from kio.schema.errors import ErrorCode

from appliance.audit.model.entries import ANY_DAY, DAY_MS, LogRange, log_range
from appliance.audit.model.files import Claim
from appliance.audit.model.rows import AuditRow
from appliance.audit.model.state import AuditState, LaneProgress
from appliance.audit.model.taking import take
from appliance.audit.store import in_thread
from appliance.clock import monotonic, now_ms
from appliance.errors import BrokerBusy
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.fetch import FetchLimits, WantedPartition, fetch
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition, Topic
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.naming import Naming

_LANE_BYTES = 1024 * 1024
_LIMITS = FetchLimits(4 * _LANE_BYTES, wait=0)


class PositionsLog:
    """The lanes' logs of a link; ``copy_of`` gives the name of a topic's copy."""

    def __init__(self, destination: KafkaCluster, naming: Naming) -> None:
        self.copy_of = naming.destination
        self._cluster = destination
        self._name = naming.positions_topic
        self._metadata = Metadata("", NOBODY, {}, {})

    async def topic(self) -> Topic | None:
        """The topic as it is now; None before the link is made."""
        self._metadata = await self._cluster.metadata([self._name])
        topic = self._metadata.topics.get(self._name)
        if topic is None:
            return None
        check(topic.error, f"look for {self._name}")
        if -1 in topic.leaders:
            raise BrokerBusy(f"a partition of {self._name} has no leader now", "LEADER_NOT_AVAILABLE")
        return topic if topic.leaders else None

    async def checkpoint(self, lane: int) -> LaneCheckpoint:
        """The lane's positions now."""
        checkpoint = LaneCheckpoint()
        await peek_checkpoint(self._cluster, self._name, lane, checkpoint)
        return checkpoint

    async def ranges(
        self, topic: Topic, lanes: Mapping[int, LaneProgress], behind: Collection[int]
    ) -> AsyncIterator[tuple[int, LogRange | None, bool]]:
        """The next range of each lane that is ``behind``, and True if its log ends there.

        None in its place: the log ends before the offset that was read last, or did, and holds other records there; or
        it begins after that offset.
        """
        partitions = {lane: Partition(topic.name, lane) for lane in sorted(behind)}
        unread = [partitions[lane] for lane in behind if lanes[lane].read_to < 0]
        starts = await list_offsets(self._cluster, self._metadata, unread, Bound.START) if unread else {}
        offsets = {lane: starts.get(partition, lanes[lane].read_to) for lane, partition in partitions.items()}
        for leader in sorted({topic.leaders[lane] for lane in behind}):
            connection = await self._cluster.broker(leader, "audit")
            wanted = [
                WantedPartition(
                    partition, topic.id, offsets[lane], _LANE_BYTES, lanes[lane].leader_epoch, topic.epochs[lane]
                )
                for lane, partition in partitions.items()
                if topic.leaders[lane] == leader
            ]
            for fetched in await fetch(connection, wanted, _LIMITS):
                lane = fetched.partition.number
                if fetched.error is ErrorCode.offset_out_of_range or fetched.diverges is not None:
                    yield lane, None, False
                    continue
                check(fetched.error, f"fetch {fetched.partition}")
                read = log_range(fetched.batches(), fetched.aborted, offsets[lane])
                yield lane, read, read.following >= fetched.stable_end


log = logging.getLogger("appliance.audit")

_ROWS_MAX = 50_000
"""Number of rows in a file, about: so many are written at once, however young they are."""
STEPS_WAITED = 60
"""Number of steps without progress after which a change of lanes is taken though a lane has no record of it: its log
was truncated."""


class LaneReading:
    """The state after the last file, with the ``rows`` since, which are all of one ``day``.

    Lanes that are ``behind`` have more to read. ``waited`` counts the steps in which all of them only waited for other
    lanes at a change of the layout.
    """

    def __init__(self, positions: PositionsLog, state: AuditState, row_seconds: float) -> None:
        self.state = state
        self.rows: list[AuditRow] = []
        self.day = ANY_DAY
        self.behind: list[int] = []
        self.waited = 0
        self._positions = positions
        self._row_ms = round(row_seconds * 1000)
        self._since = 0.0
        self._must_write = False

    def is_due(self, flush_seconds: float) -> bool:
        """True if the rows have to be written now."""
        return self._must_write or monotonic() - self._since >= flush_seconds or len(self.rows) >= _ROWS_MAX

    async def advance(self, topic: Topic) -> None:
        """Read each lane once; those that are not at their end, or at another day, come first the next time."""
        lanes = self.state.lanes
        for lane in range(len(topic.leaders)):
            lanes.setdefault(lane, LaneProgress())
        first = [lane for lane in self.behind if lane < len(topic.leaders)]
        order = [*first, *(lane for lane in range(len(topic.leaders)) if lane not in first)]
        waited = {lane: progress.read_to for lane, progress in lanes.items() if progress.waits_for}
        answers = [each async for each in self._positions.ranges(topic, lanes, order)]
        truncated = [lane for lane, read, _ in answers if read is None]
        if truncated:  # before others are read: partitions may have gone to them since
            await self._after_truncation(topic, truncated)
            return
        self.behind, self._must_write = [], False
        for lane, read, is_all in answers:
            assert read is not None
            await self._take(lane, read)
            waits = lanes[lane].waits_for > 0
            another_day = lanes[lane].read_to < read.following and not waits
            self._must_write |= another_day
            if not is_all or another_day or waits:
                self.behind.append(lane)
        stays = {lane: lanes[lane].read_to for lane in self.behind if lanes[lane].waits_for}
        self.waited = self.waited + 1 if self.behind and stays == waited and len(stays) == len(self.behind) else 0

    async def rows_of(self, claim: Claim, topic: Topic) -> list[AuditRow]:
        """The rows of a claim whose writer was killed, or suspended: up to the same offsets, from the state before.

        A log that was truncated is left as it was: the next step says so, in a write of its own.
        """
        lanes, rows, waits = self.state.lanes, list[AuditRow](), True
        behind = {lane for lane, to in claim.lanes.items() if lanes.setdefault(lane, LaneProgress()).read_to < to}
        while behind:
            ends = {lane: lanes[lane].read_to for lane in behind}
            async for lane, read, _ in self._positions.ranges(topic, lanes, sorted(behind)):
                to = claim.lanes[lane]
                if read is None or read.following <= lanes[lane].read_to:
                    behind.discard(lane)  # the log is shorter than it was
                    continue
                rows += await self._rows(lane, read.before(to), ANY_DAY, waits=waits)
                if lanes[lane].read_to >= to:
                    behind.discard(lane)
            waits = any(lanes[lane].read_to != end for lane, end in ends.items())
        return rows

    async def _after_truncation(self, topic: Topic, lanes: list[int]) -> None:
        """Add the rows that say what is unknown since these lanes' logs were truncated, once the others are written.

        If they are written twice, by a writer that was suspended, no count is doubled: they have none.
        """
        self.behind, self._must_write = lanes, True
        for lane in lanes if not self.rows else ():
            log.warning("the positions topic lost records, and the audit rows", extra={"fields": {"lane": lane}})
            present, now = await self._positions.checkpoint(lane), now_ms()
            copy_of = self._positions.copy_of
            self.rows += self.state.after_truncation(lane, present, topic.epochs[lane], now, copy_of)
            self.day = now // DAY_MS

    async def _take(self, lane: int, read: LogRange) -> None:
        if read.following == self.state.lanes[lane].read_to:
            return
        began = monotonic()
        day = self.day if self.rows else read.first_day
        rows = await self._rows(lane, read, day, waits=self.waited < STEPS_WAITED)
        if rows and not self.rows:
            self._since, self.day = began, day
        self.rows += rows
        await asyncio.sleep(monotonic() - began)

    async def _rows(self, lane: int, read: LogRange, day: int, *, waits: bool) -> list[AuditRow]:
        copy_of = self._positions.copy_of
        return await in_thread(lambda: take(self.state, lane, read, day, self._row_ms, copy_of, waits))
