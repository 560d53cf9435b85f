"""The driver's end of the control connections: it assigns lanes to tasks, receives their reports, and ends the job.

It also knows where the tasks serve the SQL's jobs of other hosts.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from appliance.engine.control.assignment import (
    STOP,
    Assignment,
    Hello,
    Question,
    Report,
    decode_hello,
    decode_report,
    encode_answer,
    encode_assignment,
    encode_message,
)
from appliance.engine.control.connection import DIAL_SECONDS, Stream, dialled, read_line
from appliance.engine.control.listener import HELLO_SECONDS, STRANGERS_MAX, ControlListener
from appliance.errors import PeerError
from appliance.settings.target import Target

log = logging.getLogger("appliance.replicator")


_TAKE_SECONDS = 30.0
"""Timeout of sending an assignment, in seconds; after it the task is given up, and Spark restarts it."""


@dataclass(slots=True)
class _Task:
    """A connected task, and its newest assignment."""

    attempt: int
    writer: asyncio.StreamWriter
    assignment: Assignment | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def assign(self, assignment: Assignment) -> None:
        if assignment != self.assignment:
            self.assignment = assignment
            self.changed.set()

    def stop(self) -> None:
        self.changed.clear()
        self.writer.write(STOP)

    async def send_assignments(self) -> None:
        """Send the newest assignment when the one before is sent: none pile up for a task that does not read."""
        while await self.changed.wait():
            self.changed.clear()
            assert self.assignment is not None
            self.writer.write(encode_assignment(self.assignment))
            try:
                async with asyncio.timeout(_TAKE_SECONDS):
                    await self.writer.drain()
            except OSError as error:
                cause = str(error) or f"not read for {_TAKE_SECONDS:g} s"
                log.warning("a task does not take its assignment", extra={"fields": {"cause": cause}})
                self.writer.transport.abort()
                return


class TransformAddresses:
    """The address of each task, from its report until its control connection ends.

    A job belongs to the process that its first question has found: both of its ends have to reach the same one. Once
    that process is gone, every further question of the job finds nothing, and the job ends.
    """

    def __init__(self) -> None:
        self._serving: dict[int, Target] = {}
        self._answers: dict[int, tuple[int, Target | None]] = {}
        """For each task the newest stage that has asked, and its answer."""
        self._dialled: dict[int, asyncio.StreamWriter] = {}

    def serves(self, task: int, serving: Target) -> None:
        """A task serves jobs there from now on."""
        self.end_task(task)
        self._serving[task] = serving

    def end_task(self, task: int) -> None:
        """The task's process is gone, or given up: if it is silent, our connection to it would not end by itself."""
        self._serving.pop(task, None)
        if writer := self._dialled.pop(task, None):
            writer.transport.abort()

    def clear(self) -> None:
        """No task serves jobs any more: those that run have ended, or may be silent for ever."""
        for task in list(self._serving):
            self.end_task(task)

    def find(self, question: Question) -> Target | None:
        """The address for a job; None if the job has to end."""
        stage, address = self._answers.get(question.task, (-1, None))
        now = self._serving.get(question.task)
        if question.stage > stage:
            stage, address = self._answers[question.task] = question.stage, now
        # Another process may have the same address later.
        return address if question.stage == stage and address is now else None

    async def answer(self, question: Question, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer an end's questions, of one job after the other, until it ends the connection.

        Raises:
            PeerError, OSError: its line is invalid, or it is gone.
        """
        message: Hello | Question = question
        while isinstance(message, Question):
            writer.write(encode_answer(self.find(message)))
            if not (line := await read_line(reader)):
                return
            message = decode_hello(line)
        raise PeerError("not a question")

    async def dial(self, task: int, token: str) -> Stream:
        """The driver's own connection to a task; it ends when the task is gone.

        Raises:
            OSError: it serves nobody now, or does not answer.
        """
        serving = self._serving.get(task)
        if serving is None:
            raise ConnectionError(f"task {task} does not serve yet")
        async with asyncio.timeout(DIAL_SECONDS):
            reader, writer = await dialled(serving, token)
        if self._serving.get(task) is not serving:
            writer.transport.abort()
            raise ConnectionError(f"task {task} is gone")
        self._dialled[task] = writer
        writer.write(encode_message(Hello(task, 0)))
        return reader, writer


class ControlServer(ControlListener):
    """Gives each connecting task the assignment of its number, until a later try of the task connects.

    ``addresses`` are those at which the tasks serve the SQL's jobs; it answers their questions too. ``begun`` is called
    with a task's number when a try of it begins, ``heard`` with its number and its report.
    """

    def __init__(
        self,
        at: Path | Target,
        begun: Callable[[int], None],
        heard: Callable[[int, Report], None],
        strangers_max: int = STRANGERS_MAX,
        hello_seconds: float = HELLO_SECONDS,
    ) -> None:
        super().__init__(at, strangers_max, hello_seconds)
        self.addresses = TransformAddresses()
        self._strangers_at_least = strangers_max
        self._begun = begun
        self._heard = heard
        self._assignments: tuple[Assignment, ...] | None = None
        self._tasks: dict[int, _Task] = {}

    async def close(self) -> None:
        """Send a stop, and close the listener."""
        self.stop()
        await super().close()

    def assign(self, assignments: Sequence[Assignment]) -> None:
        """Assign this to the tasks of a job, by their numbers; unchanged assignments are not sent again."""
        self._assignments = tuple(assignments)
        self.strangers_max = max(self._strangers_at_least, 2 * len(assignments))
        for number, task in self._tasks.items():
            if number < len(assignments):
                task.assign(assignments[number])

    def stop(self) -> None:
        """End the job: the tasks finish their transactions; later tasks are stopped at once."""
        self._assignments = None
        self.addresses.clear()
        for task in self._tasks.values():
            task.stop()

    async def serve(self, hello: Hello | Question, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """See ``ControlListener``."""
        if isinstance(hello, Question):
            await self.addresses.answer(hello, reader, writer)
            return
        if self._assignments is None:
            writer.write(STOP)
            return
        if not 0 <= hello.task < len(self._assignments):
            raise PeerError(f"there is no task {hello.task} in this job")
        task = self._tasks[hello.task] = self._admitted(hello, writer)
        sending = asyncio.create_task(task.send_assignments(), name=f"assignments {hello.task}")
        try:
            self._begun(hello.task)
            task.assign(self._assignments[hello.task])
            while (line := await read_line(reader)) and self._tasks.get(hello.task) is task:
                self._hear(hello.task, decode_report(line))
        finally:
            sending.cancel()
            if self._tasks.get(hello.task) is task:
                del self._tasks[hello.task]
                self.addresses.end_task(hello.task)

    def _hear(self, task: int, report: Report | Target) -> None:
        if isinstance(report, Target):
            if self._assignments is not None:
                self.addresses.serves(task, report)
        else:
            self._heard(task, report)

    def _admitted(self, hello: Hello, writer: asyncio.StreamWriter) -> _Task:
        """Let a try of a task replace an earlier one, which Spark has given up and which may be silent."""
        before = self._tasks.get(hello.task)
        if before is not None:
            if before.attempt > hello.attempt:
                raise PeerError(f"task {hello.task} was started anew meanwhile")
            log.warning(f"task {hello.task} was started again by Spark: an earlier try of it is cut off")
            before.writer.transport.abort()
            self.addresses.end_task(hello.task)
        return _Task(hello.attempt, writer)
