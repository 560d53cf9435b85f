"""The rows that follow from what lanes have committed since the last file, lane by lane.

Rows are made in a thread of their own, at most half of the time: the replicator's driver runs beside it.
"""

import asyncio
import logging

from appliance.audit.model.entries import ANY_DAY, DAY_MS, LogRange
from appliance.audit.model.files import Claim
from appliance.audit.model.rows import AuditRow
from appliance.audit.model.state import AuditState, LaneProgress
from appliance.audit.model.taking import take
from appliance.audit.positions_log import PositionsLog
from appliance.audit.store import in_thread
from appliance.clock import monotonic, now_ms
from appliance.kafka.protocol.metadata import Topic

log = logging.getLogger("appliance.audit")

_ROWS_MAX = 50_000
"""Number of rows in a file, about: so many are written at once, however young they are."""
_STEPS_WAITED = 60
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
        rows = await self._rows(lane, read, day, waits=self.waited < _STEPS_WAITED)
        if rows and not self.rows:
            self._since, self.day = began, day
        self.rows += rows
        await asyncio.sleep(monotonic() - began)

    async def _rows(self, lane: int, read: LogRange, day: int, *, waits: bool) -> list[AuditRow]:
        copy_of = self._positions.copy_of
        return await in_thread(lambda: take(self.state, lane, read, day, self._row_ms, copy_of, waits))
