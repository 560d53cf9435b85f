"""The driver's end of the control connections: it assigns lanes to tasks, hears their reports, and ends the job."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import PeerError
from appliance.replicator.spark.assignment import STOP, Assignment, Hello, Report, decode_report, encode_assignment
from appliance.replicator.spark.control_connection import read_line
from appliance.replicator.spark.control_listener import HELLO_SECONDS, STRANGERS_MAX, ControlListener
from appliance.settings.target import Target

log = logging.getLogger("appliance.replicator")


@dataclass(slots=True)
class _Task:
    """A task that is connected, and its newest assignment."""

    attempt: int
    writer: asyncio.StreamWriter
    assignment: Assignment | None = None

    def assign(self, assignment: Assignment) -> None:
        if assignment != self.assignment:
            self.assignment = assignment
            self.writer.write(encode_assignment(assignment))


class ControlServer:
    """Gives each task that connects the assignment of its number, until a later try of it comes.

    Args:
        at: see ``ControlListener``.
        begun: called with the number of a task whenever a try of it begins.
        heard: called with the number of a task and its report.
        strangers_max: see ``ControlListener``.
        hello_seconds: see ``ControlListener``.
    """

    def __init__(
        self,
        at: Path | Target,
        begun: Callable[[int], None],
        heard: Callable[[int, Report], None],
        strangers_max: int = STRANGERS_MAX,
        hello_seconds: float = HELLO_SECONDS,
    ) -> None:
        self._strangers_max = strangers_max
        self._listener = ControlListener(at, self._serve, strangers_max, hello_seconds)
        self._begun = begun
        self._heard = heard
        self._assignments: tuple[Assignment, ...] | None = None
        self._tasks: dict[int, _Task] = {}

    @property
    def address(self) -> Path | Target:
        """The address that it listens on."""
        return self._listener.address

    @property
    def token(self) -> str:
        """With which a task proves on a port that it is this run's."""
        return self._listener.token

    def start(self) -> None:
        """Listen.

        Raises:
            SettingsError: the port cannot be had.
        """
        self._listener.open()

    async def close(self) -> None:
        """Say stop, and listen no more."""
        self.stop()
        await self._listener.close()

    def assign(self, assignments: Sequence[Assignment]) -> None:
        """Let the tasks of a job, by their numbers, do this from now on; those whose assignment stays are not told."""
        self._assignments = tuple(assignments)
        self._listener.strangers_max = max(self._strangers_max, 2 * len(assignments))
        for number, task in self._tasks.items():
            if number < len(assignments):
                task.assign(assignments[number])

    def stop(self) -> None:
        """End the job: the tasks finish what they have begun; whoever comes later is told to stop at once."""
        self._assignments = None
        for task in self._tasks.values():
            task.writer.write(STOP)

    async def _serve(self, hello: Hello, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._assignments is None:
            writer.write(STOP)
            return
        if not 0 <= hello.task < len(self._assignments):
            raise PeerError(f"there is no task {hello.task} in this job")
        task = self._tasks[hello.task] = self._admitted(hello, writer)
        try:
            self._begun(hello.task)
            task.assign(self._assignments[hello.task])
            while (line := await read_line(reader)) and self._tasks.get(hello.task) is task:
                self._heard(hello.task, decode_report(line))
        finally:
            if self._tasks.get(hello.task) is task:
                del self._tasks[hello.task]

    def _admitted(self, hello: Hello, writer: asyncio.StreamWriter) -> _Task:
        """A try of a task takes the place of an earlier one, which Spark has given up, and which may be silent.

        Raises:
            PeerError: a later try has its place.
        """
        before = self._tasks.get(hello.task)
        if before is not None:
            if before.attempt > hello.attempt:
                raise PeerError(f"task {hello.task} was started anew meanwhile")
            log.warning(f"task {hello.task} was started again by Spark: an earlier try of it is cut off")
            before.writer.transport.abort()
        return _Task(hello.attempt, writer)
