"""The lane's process: hands ranges to the Spark jobs that run the SQL, and takes their outcomes.

A job's source asks for ranges and waits until there are some: an idle job costs nothing, and the first record finds it
ready. Its sink confirms each range whose mark has arrived. The driver tells how the job has ended, and why the SQL
fails on a record.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Sequence
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
from appliance.sql.flight.messages import (
    Fields,
    decode_batches,
    encode,
    encode_bounds,
    encode_ranges,
)
from appliance.sql.flight.rounds import Pending, Rounds
from appliance.sql.model.statement import NO_REASON

SUBJECT = "SQL in flight"
"""The subject under which its problems are logged."""


SILENCE_SECONDS = 60.0
"""Time in which Spark neither takes nor returns rows, after which a job is taken for one that hangs."""

_LOOK_SECONDS = 1.0
"""Interval of the looks at a job's progress, in seconds."""

_LATE_SECONDS = 5.0
"""Lateness of a look from which on this process has stood still, and with it, maybe, the job."""

_ENDED = OSError, asyncio.IncompleteReadError, PeerError
"""A job that ends at any point: what it has not confirmed is asked for again."""


@dataclass(slots=True, eq=False)
class _Question:
    """A record that the SQL fails on, and the driver's reason."""

    alone: Range
    reason: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class TransformService:
    """The ranges of one task's lanes; with ``stops``, the first record that fails ends its range.

    With ``explains``, each outcome says why records failed. A job may be without progress for ``silence`` seconds.
    """

    def __init__(self, stops: bool, tell: Notice, *, explains: bool = True) -> None:
        self._stops = stops
        self._tell = tell
        self._explains = explains
        self._rounds = Rounds()
        self._changed = asyncio.Condition()
        self._bounds: dict[int, asyncio.Future[bytes]] = {}
        self._newest = -1
        self._driver: asyncio.StreamWriter | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._questions: list[_Question] = []
        self.silence, self.clock = SILENCE_SECONDS, monotonic
        self._looked = 0.0
        self._progress: float | None = None
        """The time of the last progress of the job that has ranges; None if none has."""

    async def transform(self, ranges: Sequence[Range]) -> list[Outcome]:
        """The outcomes of ranges, in their order, after any time; may be cancelled. ProcessFailed without progress."""
        pending = [Pending(each, self._stops) for each in ranges]
        try:
            async with self._changed:
                self._rounds.add(pending)
                self._changed.notify_all()
                while any(each.open for each in pending):
                    self._look(pending)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_SECONDS):
                            await self._changed.wait()
        except asyncio.CancelledError:
            self._rounds.forget(pending)
            raise
        return [await self._explained(each.wanted, each.outcome()) for each in pending]

    def _look(self, pending: Collection[Pending]) -> None:
        """Raise the error of a job that has had some of these for long without progress."""
        unconfirmed, now = self._rounds.given, self.clock()
        late, self._looked = now - self._looked - _LOOK_SECONDS, now
        if self._progress is None:
            return
        if late > _LATE_SECONDS:
            self._progress = min(now, self._progress + late)
        if now - self._progress < self.silence:
            return
        if not unconfirmed or any(each in pending for _, each in unconfirmed):
            where = some([each for each, _ in unconfirmed]) or "a job that has confirmed all"
            raise ProcessFailed(f"{SUBJECT}: no progress for {self.silence:g} s in {where}")

    async def _explained(self, whole: Range, outcome: Outcome) -> Outcome:
        """The outcome with the reasons of its failures."""
        stop = await self._with_reason(whole, outcome.stop) if outcome.stop else None
        failures = [await self._with_reason(whole, each) for each in outcome.failures]
        return replace(outcome, failures=tuple(failures), stop=stop)

    async def _with_reason(self, whole: Range, failure: Failure) -> Failure:
        """Ask the driver why the SQL fails on a record."""
        if failure.reason or not self._explains:
            return failure
        _, rest = whole.divided(failure.offset)
        alone, _ = rest.divided(failure.offset + 1)
        asked = _Question(alone)
        self._questions.append(asked)
        try:
            if self._driver is not None:
                self._driver.write(encode_ranges([alone]))
            return replace(failure, reason=await asked.reason)
        finally:
            self._questions.remove(asked)

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
            ending = list(self._connections)
            for connection in ending:
                connection.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection of a job or of the driver, until it ends."""
        serving = asyncio.create_task(self._serve(reader, writer), name="transform-connection")
        self._connections.add(serving)
        serving.add_done_callback(self._connections.discard)
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
        self._progress = None  # the job before has ended
        hearing: asyncio.Task[Any] = asyncio.create_task(read_message(reader), name="transform-source")
        taking: asyncio.Task[Any] = asyncio.create_task(self._take(hearing, attempt), name="transform-take")
        try:
            await asyncio.wait([hearing, taking], return_when=asyncio.FIRST_COMPLETED)
            if hearing.done():
                return
            ranges = taking.result()
            self._progress = self.clock()
            weight = self._rounds.given_weight
            self._let_go_before(attempt)
            self._bounds_of(attempt).set_result(encode_bounds(ranges, stops=self._stops, weight=weight))
            writer.write(encode_ranges(ranges, weight))
            said, _ = await hearing
            while True:
                self._progressed(attempt)
                if said:
                    async with self._changed:
                        self._rounds.damaged(attempt, said["damaged"], said["offset"], said["reason"])
                        self._changed.notify_all()
                said, _ = await read_message(reader)
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
            said, data = await hearing
            while True:
                self._progressed(attempt)
                async with self._changed:
                    if said.get("grown"):
                        self._rounds.grown(attempt, said["done"])
                    elif said:
                        batches, _ = decode_batches(said["batches"], data)
                        self._rounds.confirm(attempt, said["done"], batches, said["failed"])
                    self._changed.notify_all()
                said, data = await read_message(reader)
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
            self._bounds.pop(attempt, None)

    def _progressed(self, attempt: int) -> None:
        """Note progress of the job that has ranges: word of one that has ended may come late."""
        if attempt == self._newest and self._progress is not None:
            self._progress = self.clock()

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
        for asked in self._questions:
            writer.write(encode_ranges([asked.alone]))
        try:
            while True:
                said, _ = await read_message(reader)
                if "ended" in said:
                    await self._end(said["ended"], said["of_record"])
                    writer.write(encode({}))
                else:
                    self._answer(said)
        finally:
            if self._driver is writer:  # between hosts it may have dialled again before this end is seen
                self._driver = None

    async def _end(self, reason: str, of_record: bool) -> None:
        self._progress = None
        async with self._changed:
            self._rounds.end(reason, of_record)
            self._changed.notify_all()
        if not of_record:
            self._tell(SUBJECT, ApplianceError(f"{SUBJECT}: a Spark job failed: {reason}") if reason else None)

    def _answer(self, said: Fields) -> None:
        for asked in self._questions:
            topic, partition = asked.alone.partition
            place = said["topic"], said["partition"], said["offset"]
            if (topic, partition, asked.alone.start) == place and not asked.reason.done():
                asked.reason.set_result(said["reason"] or NO_REASON)
