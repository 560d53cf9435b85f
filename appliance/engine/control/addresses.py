"""Where the tasks serve the SQL's jobs of other hosts, as the driver knows it."""

import asyncio

from appliance.engine.control.assignment import Hello, Question, decode_hello, encode_answer, encode_message
from appliance.engine.control.connection import DIAL_SECONDS, Stream, dialled, read_line
from appliance.errors import PeerError
from appliance.settings.target import Target


class TransformAddresses:
    """The address of each task, from its report until its control connection ends.

    A job belongs to the process that its first question has found: both of its ends have to reach the same one. Once
    that process is gone, every further question of the job finds nothing, and the job ends.
    """

    def __init__(self) -> None:
        self._serving: dict[int, Target] = {}
        self._found: dict[int, tuple[int, Target | None]] = {}
        """For each task the newest stage that has asked, and what it has found."""
        self._dialled: dict[int, asyncio.StreamWriter] = {}

    def serves(self, task: int, serving: Target) -> None:
        """A task serves jobs there from now on."""
        self.gone(task)
        self._serving[task] = serving

    def gone(self, task: int) -> None:
        """The task's process is gone, or given up: if it is silent, our connection to it would not end by itself."""
        self._serving.pop(task, None)
        if writer := self._dialled.pop(task, None):
            writer.transport.abort()

    def clear(self) -> None:
        """No task serves jobs any more: those that run have ended, or may be silent for ever."""
        for task in list(self._serving):
            self.gone(task)

    def find(self, question: Question) -> Target | None:
        """The address for a job; None if the job has to end."""
        stage, found = self._found.get(question.task, (-1, None))
        now = self._serving.get(question.task)
        if question.stage > stage:
            stage, found = self._found[question.task] = question.stage, now
        # Another process may have the same address later.
        return found if question.stage == stage and found is now else None

    async def answer(self, question: Question, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer an end's questions, of one job after the other, until it ends the connection.

        Raises:
            PeerError, OSError: its line is invalid, or it is gone.
        """
        asked: Hello | Question = question
        while isinstance(asked, Question):
            writer.write(encode_answer(self.find(asked)))
            if not (line := await read_line(reader)):
                return
            asked = decode_hello(line)
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
