"""The audit's writer: it follows the positions topic, and writes the rows of what was committed.

It keeps nothing that the files and the positions topic do not hold. After any failure it opens the table again, and
continues after the last file. It runs beside the replicator's driver, in which nothing waits for it: the store and the
rows are handled in a thread of their own.
"""

import asyncio
import logging

from appliance.audit.log import AuditLog
from appliance.audit.model.files import Claim, DataFile, day_of
from appliance.audit.model.progress import AuditProgress
from appliance.audit.reading import LaneReading, PositionsLog
from appliance.audit.store import Store, in_thread, store_of
from appliance.clock import monotonic, now_ms, utc_now
from appliance.errors import ApplianceError
from appliance.kafka.protocol.metadata import Topic
from appliance.link.client.clusters import destination_cluster
from appliance.link.model.naming import Naming
from appliance.settings.monitoring import AuditSettings
from appliance.settings.values import Settings
from appliance.spark.session import Spark

log = logging.getLogger("appliance.audit")

_PAUSE, _RETRY, _RETRY_MAX = 1.0, 1.0, 60.0
_TIDY_SECONDS = 600.0


async def write_audit(settings: Settings, spark: Spark, progress: AuditProgress) -> None:
    """Write the audit table until it is cancelled, on a connection of its own."""
    store = store_of(settings.audit.path, spark.hadoop)
    async with destination_cluster(settings) as destination:
        positions = PositionsLog(destination, Naming.of(settings))
        await AuditWriter(positions, store, settings.audit, progress).run()


class AuditWriter:
    """One writer of the audit table of a link."""

    def __init__(self, positions: PositionsLog, store: Store, settings: AuditSettings, progress: AuditProgress) -> None:
        self.progress = progress
        self._positions = positions
        self._log = AuditLog(store)
        self._settings = settings
        self._reading: LaneReading | None = None
        self._number = 0
        self._tidied = -_TIDY_SECONDS

    async def run(self) -> None:
        """Write until it is cancelled; each kind of failure is logged once, and tried again."""
        failures = 0
        self.progress.written_to = now_ms()  # the lag of a table that cannot be written grows from here
        while True:
            try:
                await self.step()
                failures, reading = 0, self._reading
                pause = 0.0 if reading and reading.behind and not reading.waited else _PAUSE
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
            if topic := await self._positions.topic():
                await self._step(topic, flush)
        except BaseException:
            self._reading = None
            raise

    async def _step(self, topic: Topic, flush: bool) -> None:
        reading = self._reading = self._reading or await self._opened(topic)
        if reading.rows and reading.state.topic_id != topic.id:
            await self._write(reading)
            return
        reading.state.of_topic(topic.id)
        began = now_ms()
        await reading.advance(topic)
        if reading.rows and (flush or reading.is_due(self._settings.flush_seconds)):
            await self._write(reading)
        if not reading.rows and not reading.behind:
            self.progress.written_to = began
            self._over()
        await self._tidy()

    async def _opened(self, topic: Topic) -> LaneReading:
        """Continue after the last file; the file of a claim without one is written first."""
        opened = await in_thread(self._log.open)
        reading = LaneReading(self._positions, opened.state, self._settings.row_seconds)
        if (claim := opened.unfinished) is not None:
            rows = []
            if claim.topic_id == topic.id.hex:
                opened.state.of_topic(topic.id)
                rows = await reading.rows_of(claim, topic)
            else:
                fields = {"write": claim.number}
                log.warning("rows of the audit are lost: the positions topic was deleted", extra={"fields": fields})
            written = opened.state.copy()
            await in_thread(lambda: self._log.write(claim, rows, written))
        self._number = opened.number
        return reading

    async def _write(self, reading: LaneReading) -> None:
        """Claim the next write, then write its file; if another writer has it, continue after its write."""
        state, rows, number = reading.state, reading.rows, self._number + 1
        ends = {lane: progress.read_to for lane, progress in state.lanes.items()}
        claim = Claim(number, DataFile(day_of(reading.day), number, number).name, state.topic_id.hex, ends)
        if not await in_thread(lambda: self._log.claim(claim)):
            self._reading = None
            return
        await in_thread(lambda: self._log.write(claim, rows, state))
        self._number, reading.rows = number, []
        self._over()

    async def _tidy(self) -> None:
        now = monotonic()
        if now - self._tidied >= _TIDY_SECONDS:
            self._tidied = now
            today = utc_now().date()
            await in_thread(lambda: self._log.tidy(today, self._settings.retention_days))

    def _failed(self, error: ApplianceError) -> None:
        if str(error) != self.progress.problem:
            log.warning("the audit table is not written", extra={"fields": {"cause": str(error)}})
        self.progress.problem = str(error)

    def _over(self) -> None:
        if self.progress.problem:
            log.info("the audit table is written again")
        self.progress.problem = ""
