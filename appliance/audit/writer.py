"""The audit's writer: it follows the positions topic, and writes the rows of what was committed.

It keeps nothing that the files and the positions topic do not hold. After any failure it opens the table again, and
continues after the last file. It runs beside the replicator's driver, in which nothing waits for it: the store and the
rows are handled in a thread of their own, at most half of the time.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from appliance.audit.lanes import stretches
from appliance.audit.log import AuditLog
from appliance.audit.model.entries import ANY_DAY, DAY_MS, Stretch
from appliance.audit.model.files import Claim, DataFile, day_of
from appliance.audit.model.progress import AuditProgress
from appliance.audit.model.rows import AuditRow
from appliance.audit.model.state import AuditState, LaneKnown
from appliance.audit.model.taking import take
from appliance.audit.store import Store, store_of
from appliance.clock import monotonic, now_ms, utc_now
from appliance.errors import ApplianceError, BrokerBusy
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import Metadata, Topic
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.client.clusters import destination_cluster
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.naming import Naming
from appliance.settings.monitoring import AuditSettings
from appliance.settings.values import Settings
from appliance.spark.session import Spark

log = logging.getLogger("appliance.audit")

Result = TypeVar("Result")

_PAUSE, _RETRY, _RETRY_MAX = 1.0, 1.0, 60.0
_ROWS_MAX = 50_000
"""Number of rows in a file, about: so many are written at once, however young they are."""

_TIDY_SECONDS = 600.0
_STEPS_WAITED = 60
"""Number of steps without progress after which a change of lanes is taken though a lane has no record of it: its log
has lost its end."""


async def write_audit(settings: Settings, spark: Spark, progress: AuditProgress) -> None:
    """Write the audit table until it is cancelled, on a connection of its own."""
    store = store_of(settings.audit.path, spark.hadoop)
    async with destination_cluster(settings) as destination:
        await AuditWriter(destination, Naming.of(settings), store, settings.audit, progress).run()


class AuditWriter:
    """One writer of the audit table of a link."""

    def __init__(
        self, destination: KafkaCluster, naming: Naming, store: Store, settings: AuditSettings, progress: AuditProgress
    ) -> None:
        self._cluster = destination
        self._naming = naming
        self._log = AuditLog(store)
        self._settings = settings
        self.progress = progress
        self._state: AuditState | None = None
        self._number = 0
        self._rows: list[AuditRow] = []
        self._day = ANY_DAY
        self._since = 0.0
        self._behind: list[int] = []
        self._another_day = False
        self._waited = 0
        self._tidied = -_TIDY_SECONDS

    async def run(self) -> None:
        """Write until it is cancelled; each kind of failure is logged once, and tried again."""
        failures = 0
        self.progress.written_to = now_ms()  # the lag of a table that cannot be written grows from here
        while True:
            try:
                await self.step()
                failures, pause = 0, 0.0 if self._behind and not self._waited else _PAUSE
            except ApplianceError as error:
                self._failed(error)
                pause, failures = min(_RETRY * 2**failures, _RETRY_MAX), failures + 1
            except Exception as error:  # a defect of ours must not end the replicator's other work
                log.debug("the audit's writer failed", exc_info=error)
                self._failed(ApplianceError(f"unexpected {type(error).__name__}: {error}"))
                pause, failures = _RETRY_MAX, failures + 1
            await asyncio.sleep(pause)

    async def step(self, flush: bool = False) -> None:
        """Read what was committed since the last step, and write it if it is time to, or with ``flush``.

        After a cancel at any await, or a failure, another writer continues where the files end.
        """
        try:
            metadata, topic = await self._topic()
            if topic is None:
                return
            if self._state is None:
                await self._open(metadata, topic)
            assert self._state is not None
            if self._rows and self._state.topic_id != topic.id:
                await self._write()
                return
            self._state.of_topic(topic.id)
            began = now_ms()
            await self._read(metadata, topic)
            await self._write_if_due(flush)
            if not self._rows and not self._behind:
                self.progress.written_to = began
                self._over()
            await self._tidy()
        except BaseException:
            self._forget()
            raise

    async def _topic(self) -> tuple[Metadata, Topic | None]:
        name = self._naming.positions_topic
        metadata = await self._cluster.metadata([name])
        topic = metadata.topics.get(name)
        if topic is not None:
            check(topic.error, f"look for {name}")
            if -1 in topic.leaders:
                raise BrokerBusy(f"a partition of {name} has no leader now", "LEADER_NOT_AVAILABLE")
        return metadata, topic if topic is not None and topic.leaders else None

    async def _open(self, metadata: Metadata, topic: Topic) -> None:
        """Continue after the last file; the file of a claim without one is written first."""
        opened = await in_thread(self._log.open)
        state = opened.state
        if (claim := opened.unfinished) is not None:
            if claim.topic_id == topic.id.hex:
                rows = await self._rows_of(claim, state, metadata, topic)
            else:
                rows = []
                fields = {"write": claim.number}
                log.warning("rows of the audit are lost: the positions topic was deleted", extra={"fields": fields})
            written = state.copy()
            await in_thread(lambda: self._log.write(claim, rows, written))
        self._state, self._number = state, opened.number

    async def _rows_of(self, claim: Claim, state: AuditState, metadata: Metadata, topic: Topic) -> list[AuditRow]:
        """The rows of a claim whose writer was killed, or suspended: up to the same offsets, from the state before.

        A log that was truncated is left as it was: the next step says so, in a write of its own.
        """
        state.of_topic(topic.id)
        rows: list[AuditRow] = []
        behind = {lane for lane, to in claim.lanes.items() if state.lanes.setdefault(lane, LaneKnown()).read_to < to}
        waits = True
        while behind:
            ends = {lane: state.lanes[lane].read_to for lane in behind}
            async for lane, read, _ in stretches(self._cluster, metadata, topic, state.lanes, sorted(behind)):
                to = claim.lanes[lane]
                if read is None or read.following <= state.lanes[lane].read_to:
                    behind.discard(lane)  # the log is shorter than it was
                    continue
                rows += await self._taken(state, lane, read.before(to), ANY_DAY, waits)
                if state.lanes[lane].read_to >= to:
                    behind.discard(lane)
            waits = any(state.lanes[lane].read_to != end for lane, end in ends.items())
        return rows

    async def _taken(self, state: AuditState, lane: int, read: Stretch, day: int, waits: bool) -> list[AuditRow]:
        row_ms = round(self._settings.row_seconds * 1000)
        return await in_thread(lambda: take(state, lane, read, day, row_ms, self._naming.destination, waits))

    async def _read(self, metadata: Metadata, topic: Topic) -> None:
        """Read each lane once; those that are not at their end, or at another day, come first the next time."""
        assert self._state is not None
        lanes = self._state.lanes
        for lane in range(len(topic.leaders)):
            lanes.setdefault(lane, LaneKnown())
        first = [lane for lane in self._behind if lane < len(topic.leaders)]
        order = [*first, *(lane for lane in range(len(topic.leaders)) if lane not in first)]
        behind: list[int] = []
        self._another_day = False
        waited = {lane: known.read_to for lane, known in lanes.items() if known.waits_for}
        found = [each async for each in stretches(self._cluster, metadata, topic, lanes, order)]
        truncated = [lane for lane, read, _ in found if read is None]
        if truncated:  # before others are read: partitions may have gone to them since
            await self._after_truncation(topic, truncated)
            return
        for lane, read, is_all in found:
            assert read is not None
            await self._take(lane, read)
            waits = lanes[lane].waits_for > 0
            another_day = lanes[lane].read_to < read.following and not waits
            self._another_day |= another_day
            if not is_all or another_day or waits:
                behind.append(lane)
        self._behind = behind
        stays = {lane: lanes[lane].read_to for lane in behind if lanes[lane].waits_for}
        self._waited = self._waited + 1 if behind and stays == waited and len(stays) == len(behind) else 0

    async def _after_truncation(self, topic: Topic, lanes: list[int]) -> None:
        """Write the rows that say what is unknown since these lanes' logs were truncated, once the others are written.

        If they are written twice, by a writer that was suspended, no count is doubled: they have none.
        """
        assert self._state is not None
        self._behind = lanes
        for lane in lanes if not self._rows else ():
            log.warning("the positions topic lost records, and the audit rows", extra={"fields": {"lane": lane}})
            present = LaneCheckpoint()
            await peek_checkpoint(self._cluster, topic.name, lane, present)
            now = now_ms()
            self._rows += self._state.after_truncation(lane, present, topic.epochs[lane], now, self._naming.destination)
            self._day = now // DAY_MS
        if self._rows:
            await self._write()

    async def _take(self, lane: int, read: Stretch) -> None:
        state = self._state
        assert state is not None
        if read.following == state.lanes[lane].read_to:
            return
        began = monotonic()
        day = self._day if self._rows else read.first_day
        rows = await self._taken(state, lane, read, day, self._waited < _STEPS_WAITED)
        if rows and not self._rows:
            self._since, self._day = began, day
        self._rows += rows
        await asyncio.sleep(monotonic() - began)

    async def _write_if_due(self, flush: bool) -> None:
        if not self._rows:
            return
        old = monotonic() - self._since >= self._settings.flush_seconds
        if flush or old or self._another_day or len(self._rows) >= _ROWS_MAX:
            await self._write()

    async def _write(self) -> None:
        """Claim the next write, then write its file."""
        state, rows = self._state, self._rows
        assert state is not None
        number = self._number + 1
        day = day_of(self._day)
        ends = {lane: known.read_to for lane, known in state.lanes.items()}
        claim = Claim(number, DataFile(day, number, number).name, state.topic_id.hex, ends)
        if not await in_thread(lambda: self._log.claim(claim)):
            self._forget()  # another writer has it: continue after its write
            return
        await in_thread(lambda: self._log.write(claim, rows, state))
        self._number, self._rows = number, []
        self._over()

    async def _tidy(self) -> None:
        now = monotonic()
        if now - self._tidied >= _TIDY_SECONDS:
            self._tidied = now
            today = utc_now().date()
            await in_thread(lambda: self._log.tidy(today, self._settings.retention_days))

    def _forget(self) -> None:
        self._state, self._rows, self._behind, self._waited = None, [], [], 0

    def _failed(self, error: ApplianceError) -> None:
        if str(error) != self.progress.problem:
            log.warning("the audit table is not written", extra={"fields": {"cause": str(error)}})
        self.progress.problem = str(error)

    def _over(self) -> None:
        if self.progress.problem:
            log.info("the audit table is written again")
        self.progress.problem = ""


async def in_thread(work: Callable[[], Result]) -> Result:
    """Do the work in a thread of its own. A store that hangs delays neither the replicator's end nor its other work."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def settle(set_it: Callable[[], None]) -> None:
        if not done.done():
            set_it()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            failure = error
            tell = lambda: done.set_exception(failure)  # noqa: E731
        else:
            tell = lambda: done.set_result(result)  # noqa: E731
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, tell)

    threading.Thread(target=run, name="audit", daemon=True).start()
    return await done
