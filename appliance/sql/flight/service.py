"""The lane's process: hands ranges to the Spark jobs that run the SQL, and takes their outcomes.

A job's source asks for ranges and waits until there are some: an idle job costs nothing, and the first record finds it
ready. Its sink confirms each range whose mark has arrived. The driver tells how the job has ended, and why the SQL
fails on a record.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from appliance.clock import monotonic
from appliance.engine.model.ranges import Failure, Outcome, Range
from appliance.engine.problem_log import Notice
from appliance.errors import ApplianceError, PeerError, ProcessFailed
from appliance.listing import some
from appliance.runtime.bind import short_path
from appliance.sql.flight.connection import read_message
from appliance.sql.flight.messages import Fields, decode_batches, encode, encode_bounds, encode_ranges
from appliance.sql.flight.rounds import Pending, Rounds
from appliance.sql.model.statement import NO_REASON

SUBJECT = "SQL in flight"
"""The subject under which its problems are logged."""


SILENCE_SECONDS = 60.0
"""Time in which Spark neither takes nor returns rows, after which a job is taken for one that hangs."""

_CHECK_SECONDS = 1.0
"""Interval of the checks of a job's progress, in seconds."""

_LATE_SECONDS = 5.0
"""Lateness of a check from which on this process has stood still, and with it, maybe, the job."""

_ENDED = OSError, asyncio.IncompleteReadError, PeerError
"""A job that ends at any point: what it has not confirmed is asked for again."""


@dataclass(slots=True)
class JobProgress:
    """The progress of the job that has ranges: the time of the ``newest``, by ``clock``; None while no job has any.

    It may be without progress for ``silence`` seconds.
    """

    clock: Callable[[], float]
    newest: float | None = None
    silence: float = field(default_factory=lambda: SILENCE_SECONDS)
    _checked: float = 0.0

    def begin(self) -> None:
        """Begin with a job that has got its ranges."""
        self.newest = self.clock()

    def note(self) -> None:
        """Note progress, unless the job has ended."""
        if self.newest is not None:
            self.newest = self.clock()

    def end(self) -> None:
        """End with the job."""
        self.newest = None

    def require(self, unconfirmed: Sequence[tuple[Range, Pending]], pending: Collection[Pending]) -> None:
        """Check that the job goes on; ProcessFailed if it has some of these ``pending``, and has long been silent."""
        now = self.clock()
        late, self._checked = now - self._checked - _CHECK_SECONDS, now
        if self.newest is None:
            return
        if late > _LATE_SECONDS:
            self.newest = min(now, self.newest + late)
        if now - self.newest < self.silence:
            return
        if not unconfirmed or any(each in pending for _, each in unconfirmed):
            where = some([each for each, _ in unconfirmed]) or "a job that has confirmed all"
            raise ProcessFailed(f"{SUBJECT}: no progress for {self.silence:g} s in {where}")


@dataclass(slots=True, eq=False)
class _Question:
    """A record that the SQL fails on, and the driver's reason."""

    alone: Range
    reason: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class TransformService:
    """The ranges of one task's lanes; with ``stops``, the first record that fails ends its range.

    With ``explains``, each outcome says why records failed. ``connections`` are those that it serves.
    """

    def __init__(
        self, stops: bool, tell: Notice, *, explains: bool = True, clock: Callable[[], float] = monotonic
    ) -> None:
        self.progress = JobProgress(clock)
        self._stops = stops
        self._tell = tell
        self._explains = explains
        self._rounds = Rounds()
        self._changed = asyncio.Condition()
        self._bounds: dict[int, asyncio.Future[bytes]] = {}
        self._newest = -1
        self._driver: asyncio.StreamWriter | None = None
        self.connections: set[asyncio.Task[None]] = set()
        self._questions: list[_Question] = []

    async def transform(self, ranges: Sequence[Range]) -> list[Outcome]:
        """The outcomes of ranges, in their order, after any time; may be cancelled. ProcessFailed without progress."""
        pending = [Pending(each, self._stops) for each in ranges]
        try:
            async with self._changed:
                self._rounds.add(pending)
                self._changed.notify_all()
                while any(each.open for each in pending):
                    self.progress.require(self._rounds.unconfirmed, pending)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_CHECK_SECONDS):
                            await self._changed.wait()
        except asyncio.CancelledError:
            self._rounds.forget(pending)
            raise
        return [await self._explained(each.range, each.outcome()) for each in pending]

    async def _explained(self, whole: Range, outcome: Outcome) -> Outcome:
        """The outcome with the reasons of its failures."""
        stop = await self._with_reason(whole, outcome.stop) if outcome.stop else None
        failures = [await self._with_reason(whole, each) for each in outcome.failures]
        return replace(outcome, failures=tuple(failures), stop=stop)

    async def _with_reason(self, whole: Range, failure: Failure) -> Failure:
        """Ask the driver why the SQL fails on a record."""
        if failure.reason or not self._explains:
            return failure
        _, rest = whole.divide(failure.offset)
        alone, _ = rest.divide(failure.offset + 1)
        question = _Question(alone)
        self._questions.append(question)
        try:
            if self._driver is not None:
                self._driver.write(encode_ranges([alone]))
            return replace(failure, reason=await question.reason)
        finally:
            self._questions.remove(question)

    @contextlib.asynccontextmanager
    async def serving(self, path: Path) -> AsyncIterator[None]:
        """Serve jobs and their driver at a Unix socket."""

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await self.serve(reader, writer)
            finally:
                writer.close()

        with short_path(path) as name:  # replaces that of an earlier try of the task
            server = await asyncio.start_unix_server(connected, name)
        try:
            yield
        finally:
            server.close()
            ending = list(self.connections)
            for connection in ending:
                connection.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection of a job or of the driver, until it ends."""
        serving = asyncio.create_task(self._serve(reader, writer), name="transform-connection")
        self.connections.add(serving)
        serving.add_done_callback(self.connections.discard)
        try:
            await asyncio.wait([serving])  # an error that is raised here would keep the job's records, by its frames
        finally:
            serving.cancel()
            await asyncio.wait([serving])
        error = None if serving.cancelled() else serving.exception()
        if error is not None and not isinstance(error, _ENDED):
            raise error

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello, _ = await read_message(reader)
        if hello["role"] == "source":
            await self._serve_source(hello["attempt"], reader, writer)
        elif hello["role"] == "sink":
            await self._serve_sink(hello["attempt"], reader, writer)
        else:
            await self._serve_driver(reader, writer)

    async def _serve_source(self, attempt: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.progress.end()  # the job before has ended
        hearing: asyncio.Task[Any] = asyncio.create_task(read_message(reader), name="transform-source")
        taking: asyncio.Task[Any] = asyncio.create_task(self._take(hearing, attempt), name="transform-take")
        try:
            await asyncio.wait([hearing, taking], return_when=asyncio.FIRST_COMPLETED)
            if hearing.done():
                return
            ranges = taking.result()
            self.progress.begin()
            weight = self._rounds.round_weight
            self._let_go_before(attempt)
            self._bounds_of(attempt).set_result(encode_bounds(ranges, stops=self._stops, weight=weight))
            writer.write(encode_ranges(ranges, weight))
            message, _ = await hearing
            while True:
                self._progressed(attempt)
                if message:
                    async with self._changed:
                        self._rounds.damaged(attempt, message["damaged"], message["offset"], message["reason"])
                        self._changed.notify_all()
                message, _ = await read_message(reader)
        finally:
            hearing.cancel()
            taking.cancel()
            await asyncio.gather(hearing, taking, return_exceptions=True)
            del hearing  # its error has this frame, which would keep the records until garbage is collected

    async def _take(self, hearing: asyncio.Task[object], attempt: int) -> list[Range]:
        """The ranges of the next round, unless the source has gone meanwhile."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._rounds.ready)
            return [] if hearing.done() else self._rounds.take(attempt)

    async def _serve_sink(self, attempt: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if attempt < self._newest:
            return
        hearing = asyncio.create_task(read_message(reader), name="transform-sink")
        try:
            bounds = self._bounds_of(attempt)
            waited: list[asyncio.Future[Any]] = [hearing, bounds]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not bounds.done() or bounds.cancelled():
                return
            writer.write(bounds.result())
            message, data = await hearing
            while True:
                self._progressed(attempt)
                async with self._changed:
                    if message.get("grown"):
                        self._rounds.grown(attempt, message["done"])
                    elif message:
                        batches, _ = decode_batches(message["batches"], data)
                        self._rounds.confirm(attempt, message["done"], batches, message["failed"])
                    self._changed.notify_all()
                message, data = await read_message(reader)
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
            self._bounds.pop(attempt, None)

    def _progressed(self, attempt: int) -> None:
        """Note progress of the job that has ranges: word of one that has ended may come late."""
        if attempt == self._newest:
            self.progress.note()

    def _bounds_of(self, attempt: int) -> asyncio.Future[bytes]:
        """The message for the sink of an attempt, which comes before or after its source."""
        return self._bounds.setdefault(attempt, asyncio.get_running_loop().create_future())

    def _let_go_before(self, attempt: int) -> None:
        """End the sinks of earlier attempts: a process before this one served their sources, or they are replaced."""
        self._newest = attempt
        for earlier in [each for each in self._bounds if each < attempt]:
            self._bounds.pop(earlier).cancel()

    async def _serve_driver(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._driver = writer
        for question in self._questions:
            writer.write(encode_ranges([question.alone]))
        try:
            while True:
                message, _ = await read_message(reader)
                if "ended" in message:
                    await self._end(message["ended"], message["of_record"])
                    writer.write(encode({}))
                else:
                    self._answer(message)
        finally:
            if self._driver is writer:  # between hosts it may have dialled again before this end is seen
                self._driver = None

    async def _end(self, reason: str, of_record: bool) -> None:
        self.progress.end()
        async with self._changed:
            self._rounds.end(reason, of_record)
            self._changed.notify_all()
        if not of_record:
            self._tell(SUBJECT, ApplianceError(f"{SUBJECT}: a Spark job failed: {reason}") if reason else None)

    def _answer(self, answer: Fields) -> None:
        place = answer["topic"], answer["partition"], answer["offset"]
        for question in self._questions:
            if (*question.alone.partition, question.alone.start) == place and not question.reason.done():
                question.reason.set_result(answer["reason"] or NO_REASON)
