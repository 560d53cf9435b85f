"""The jobs that run the SQL: for each task one after the other, each waiting for records before they come."""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from appliance.errors import ProcessFailed
from appliance.replicator.transform.messages import LEAD, encode
from appliance.runtime.bind import short_path

_DIAL_PAUSE = 0.1
_PAUSE, _PAUSE_MAX = 0.5, 5.0
"""Pause after a job that failed for another reason than a record, in seconds; it doubles each time."""

_OF_RECORD = re.compile(
    r"(?!Python)\w+: .*\[(?!UNABLE_TO_ACQUIRE_MEMORY|PYTHON)[A-Z][A-Z0-9_.]+\] "
    r"|(Arithmetic|NumberFormat|DateTime)Exception: "
)
"""Spark's words for a failure that only the SQL can have: with a condition of Spark's own, or as Java calls it."""

_REASON_MAX = 500


class JobFailed(ProcessFailed):
    """A job that failed; ``of_record``: for a reason that only the SQL and its records can have."""

    def __init__(self, kind: str, line: str) -> None:
        super().__init__(line[:_REASON_MAX])
        self.of_record = _OF_RECORD.match(f"{kind}: {line}") is not None


async def run_jobs(run: Callable[[int], None], task: int, socket: Path, threads: ThreadPoolExecutor) -> None:
    """Run jobs of a task until cancelled, as long as its process listens.

    Args:
        run: runs one job; raises ``JobFailed``.
        task: the task's number.
        socket: the socket of its process.
        threads: where jobs wait.
    """
    loop = asyncio.get_running_loop()
    while True:
        try:
            with short_path(socket) as name:
                reader, writer = await asyncio.open_unix_connection(name)
        except OSError:
            await asyncio.sleep(_DIAL_PAUSE)
            continue
        writer.write(encode({"role": "driver"}))
        pause = _PAUSE
        try:
            while True:
                reason, of_record = "", False
                try:
                    await loop.run_in_executor(threads, run, task)
                except JobFailed as error:
                    reason, of_record = str(error), error.of_record
                writer.write(encode({"ended": reason, "of_record": of_record}))
                await reader.readexactly(LEAD.size + len(b"{}"))
                if reason and not of_record:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _PAUSE_MAX)
                else:
                    pause = _PAUSE
        except (OSError, asyncio.IncompleteReadError):
            pass  # the task is being restarted
        finally:
            writer.close()
