"""The jobs that run the SQL: for each task one after the other, each waiting for records before they come."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from appliance.engine.control.connection import Stream
from appliance.engine.model.ranges import Range
from appliance.errors import ProcessFailed
from appliance.sql.flight.connection import read_message
from appliance.sql.flight.messages import decode_ranges, encode

log = logging.getLogger("appliance.replicator")

_DIAL_PAUSE = 0.1
_PAUSE, _PAUSE_MAX = 0.5, 5.0
"""Pause after a job that failed for another reason than a record, in seconds; it doubles each time."""

_OF_RECORD = re.compile(
    r"(?!Python)\w+: .*\[(?!UNABLE_TO_ACQUIRE_MEMORY|PYTHON)[A-Z][A-Z0-9_.]+\] "
    r"|(Arithmetic|NumberFormat|DateTime)Exception: "
)
"""Spark's words for a failure that only the SQL can have: with a condition of Spark's own, or as Java calls it."""

_OF_JAVA = re.compile(r"java\.lang\.(StackOverflowError|OutOfMemoryError: (Java heap|Requested array|GC overhead).*)")
"""Java's words, where a record needs more of its stack or its heap than there is, in each of Spark's four tries."""

_REASON_MAX = 500


class JobFailed(ProcessFailed):
    """A job that failed; ``of_record``: for a ``reason`` of the SQL and its records alone, in place of Spark's line."""

    def __init__(self, kind: str, line: str, reason: str) -> None:
        of_java = _OF_JAVA.search(line)
        self.of_record = bool(of_java or _OF_RECORD.match(f"{kind}: {line}"))
        super().__init__((of_java[0] if of_java else reason if self.of_record else line)[:_REASON_MAX])


class Sql(Protocol):
    """The prepared SQL of all tasks; its methods are for threads of their own."""

    def run(self, task: int) -> None:
        """Run one job of a task: it waits for records, and returns once they have passed."""

    def reason(self, record: Range) -> str:
        """The reason for which the SQL fails on a record alone; empty if there is none."""


Dial = Callable[[], Awaitable[Stream]]
"""Connects to a task's process, or raises OSError."""


async def run_jobs(sql: Sql, task: int, dial: Dial, threads: ThreadPoolExecutor) -> None:
    """Run the jobs of a task until cancelled, as long as its process listens.

    ``threads`` are two for each task: one waits in a job, one looks for reasons.
    """
    while True:
        try:
            reader, writer = await dial()
        except OSError:
            await asyncio.sleep(_DIAL_PAUSE)
            continue
        try:
            await _Driver(sql, task, reader, writer, threads).run()
        finally:
            writer.close()


class _Driver:
    """The connection to a task's process."""

    def __init__(
        self,
        sql: Sql,
        task: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        threads: ThreadPoolExecutor,
    ) -> None:
        self._sql, self._task, self._threads = sql, task, threads
        self._reader, self._writer = reader, writer
        self._taken_in = asyncio.Event()

    async def run(self) -> None:
        """Run jobs, and answer, until the process ends the connection."""
        self._writer.write(encode({"role": "driver"}))
        running = asyncio.create_task(self._run_jobs(), name="sql-jobs")
        try:
            while True:
                message, data = await read_message(self._reader)
                if "ranges" in message:
                    await self._answer(*decode_ranges(message, data))
                else:
                    self._taken_in.set()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the task is being restarted, or has ended
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _run_jobs(self) -> None:
        loop, pause = asyncio.get_running_loop(), _PAUSE
        while True:
            reason, of_record = "", False
            try:
                await loop.run_in_executor(self._threads, self._sql.run, self._task)
            except JobFailed as error:
                reason, of_record = str(error), error.of_record
            except Exception as error:  # a defect of ours: the lanes would wait for ever
                reason = _unexpected(error)
            self._taken_in.clear()
            self._writer.write(encode({"ended": reason[:_REASON_MAX], "of_record": of_record}))
            await self._taken_in.wait()
            if reason and not of_record:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _PAUSE_MAX)
            else:
                pause = _PAUSE

    async def _answer(self, record: Range) -> None:
        topic, partition = record.partition
        try:
            reason = await asyncio.get_running_loop().run_in_executor(self._threads, self._sql.reason, record)
        except Exception as error:  # as above
            reason = _unexpected(error)
        place = {"topic": topic, "partition": partition, "offset": record.start}
        self._writer.write(encode({**place, "reason": reason[:_REASON_MAX]}))


def _unexpected(error: Exception) -> str:
    log.debug("the SQL failed unexpectedly", exc_info=error)
    return f"unexpected {type(error).__name__}: {error}"[:_REASON_MAX]
