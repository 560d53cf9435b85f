"""The fetcher of one leader: one Fetch in flight, in a session, into the buffers of the partitions that it leads.

A Fetch costs by the partitions with news: the session knows the idle ones, which take no work.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kio.schema.errors import ErrorCode

from appliance.clock import loop_seconds
from appliance.engine.problem_log import ProblemLog, log_defect
from appliance.engine.read.buffer import Buffer, unreadable
from appliance.engine.read.buffer_budget import BufferBudget, FetchSizer
from appliance.engine.read.leaders import at_divergence
from appliance.errors import ApplianceError, BatchCorrupt, BrokerBusy, BrokerRefused, PartitionStopped, Unreachable
from appliance.kafka.client.fetch import EpochEnd, FetchedPartition, FetchLimits, offers_ids
from appliance.kafka.client.fetch_session import LOST, FetchSession
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.protocol.answer import OF_THE_RECORDS, failure
from appliance.kafka.protocol.metadata import UNKNOWN_EPOCH, Partition
from appliance.kafka.records.batch import Header
from appliance.kafka.records.legacy import convert
from appliance.link.client.origins import Origins
from appliance.link.model.stops import StopKind
from appliance.listing import some

_IDLE_WAIT = 0.5
_HURRIED_WAIT = 0.01
"""Wait of a Fetch that leaves out a full buffer, in seconds: the buffer may have room long before others have records.
It doubles as long as nothing is taken."""

_SMALL = 64 * 1024
_COLLECTING = 0.005
"""Minimum spacing of Fetches that bring little, in seconds: the records of one answer are written in one batch. The
first record after a silence does not wait."""


class Keeper(Protocol):
    """Takes back the buffers that a leader cannot fill."""

    def release(self, buffers: Iterable[Buffer]) -> None:
        """Their leader has changed, is gone, or does not answer."""

    def refuse(self, buffer: Buffer, error: BrokerRefused) -> None:
        """The leader will not or cannot serve this one now, or does not have its position."""


@dataclass(eq=False)
class Fetcher:
    """The reading from one leader, while ``run`` runs."""

    node: int
    cluster: Cluster
    budget: BufferBudget
    problems: ProblemLog
    keeper: Keeper
    origins: Origins | None = None
    session: FetchSession = field(init=False, default_factory=FetchSession)
    _sizer: FetchSizer = field(init=False, default_factory=FetchSizer)
    _connection: Connection | None = field(init=False, default=None)
    _buffers: dict[Partition, Buffer] = field(init=False, default_factory=dict)
    _pending: dict[Partition, None] = field(init=False, default_factory=dict)
    """The buffers that the session does not ask for now: filled or added since the last Fetch, or full. What the
    Fetch in flight says of them is out of date."""
    _doubted: set[Buffer] = field(init=False, default_factory=set)
    """Buffers that a leader has refused and the session asks for: an answer that names no error ends the doubt."""
    _returned_buffers: set[Buffer] = field(init=False, default_factory=set)
    """The buffers that were given back last."""
    _news: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _wait: float = field(init=False, default=_IDLE_WAIT)

    def add(self, buffer: Buffer) -> None:
        """Read into this buffer."""
        self._buffers[buffer.key] = buffer
        self._pending[buffer.key] = None
        self._news.set()

    def drop(self, buffer: Buffer) -> None:
        """Stop reading into it, and ignore the answer in flight."""
        self._buffers.pop(buffer.key, None)
        self._pending.pop(buffer.key, None)
        self._doubted.discard(buffer)
        self.session.drop(buffer.key)

    def lose(self, error: ApplianceError) -> None:
        """The leader is gone, or cannot be read from: give all buffers back."""
        buffers = list(self._buffers.values())
        self._returned_buffers = {*buffers}
        self.problems.tell(self._subject, _with_names(error, buffers))
        for buffer in buffers:
            self.drop(buffer)
        self.keeper.release(buffers)

    def has_room(self) -> None:
        """Full buffers may have room."""
        self._wait = _HURRIED_WAIT
        self._news.set()

    def restart(self, error: ApplianceError) -> None:
        """Give all buffers back after a defect, and use nothing of what was known."""
        self.lose(error)
        self._doubted.clear()
        self._connection = None

    def rest(self, unplaced: Iterable[Buffer]) -> None:
        """End the problem of a broker once others lead all that it has given back; ``unplaced`` have no leader yet."""
        if not self._buffers and self._returned_buffers.isdisjoint(unplaced):
            self.problems.over(self._subject)

    async def run(self) -> None:
        """Fetch until cancelled."""
        while True:
            self._news.clear()
            self._ask_for_pending()
            if len(self._pending) == len(self._buffers):
                await self._news.wait()
                continue
            try:
                await self._fetch()
            except ApplianceError as error:
                if isinstance(error, BrokerBusy) and error.code in LOST and not self.session.full:
                    continue
                self.lose(error)
            else:
                self.problems.over(self._subject)

    @property
    def _subject(self) -> str:
        return f"source broker {self.node}"

    def _ask_for_pending(self) -> None:
        """Make the next Fetch ask for the buffers with room alone."""
        for buffer in [self._buffers[key] for key in self._pending]:
            if room := self.budget.room(buffer):
                del self._pending[buffer.key]
                self.session.want(buffer.fetch_entry(min(room, self._sizer.partition_bytes)))
                if buffer.doubted:
                    self._doubted.add(buffer)
            else:
                self.session.drop(buffer.key)

    async def _fetch(self) -> None:
        connection = await self.cluster.broker(self.node, "fetch")
        if connection is not self._connection:
            self.session.restart()
            self._connection, self._sizer = connection, FetchSizer()
        size = await self.budget.allowance.remaining(min(self._sizer.response_bytes, self.budget.remaining))
        limits = FetchLimits(size, self._wait if self._pending else _IDLE_WAIT)
        self._wait = min(2 * self._wait, _IDLE_WAIT)
        sent = loop_seconds()
        answer = await connection.ask(self.session.ask(limits, offers_ids(connection)))
        self.budget.allowance.spend(sum(len(fetched.records) for fetched in answer.partitions))
        self.session.note_answer(answer.session_id)
        self._sizer.note_answer(sent, connection.newest, sum(bool(fetched.records) for fetched in answer.partitions))
        if self._sizer.far:
            self.budget.make_room(self._sizer.response_bytes)
        if self.origins is not None:
            await self.learn(self.origins, answer.partitions)
        self._absorb_all(answer.partitions)
        if connection.newest.bytes < _SMALL:
            await asyncio.sleep(sent + _COLLECTING - loop_seconds())

    async def learn(self, origins: Origins, partitions: Iterable[FetchedPartition]) -> None:
        """Find out which of the fetched batches a link wrote; partitions for which that is unknown are given back."""
        headers = {fetched.partition: _headers(fetched) for fetched in partitions if fetched.records}
        try:
            await origins.learn([header for each in headers.values() for header in each])
        except ApplianceError as error:
            for partition, own in headers.items():
                if (buffer := self._buffers.get(partition)) and origins.producers.unknown(own):
                    self._leave(buffer, error)

    def _leave(self, buffer: Buffer, error: ApplianceError) -> None:
        if isinstance(error, PartitionStopped):
            self._stop(buffer, unreadable(buffer, error))
        else:
            self._refuse(buffer, BrokerBusy(f"{buffer}: {StopKind.WRITERS_UNKNOWN.words}: {error}", "UNKNOWN_WRITER"))

    def _absorb_all(self, partitions: Iterable[FetchedPartition]) -> None:
        for fetched in partitions:
            buffer = self._buffers.get(fetched.partition)
            if buffer is not None and buffer.key not in self._pending:
                self._take_in(buffer, fetched)
        for buffer in self._doubted:
            buffer.doubted = False
            self.problems.over(buffer.subject)
        self._doubted.clear()

    def _take_in(self, buffer: Buffer, fetched: FetchedPartition) -> None:
        if fetched.error is not ErrorCode.none:
            self._failed(buffer, fetched.error)
        elif fetched.diverges is not None:
            self._diverged(buffer, fetched.diverges)
        elif fetched.records:
            self._absorb(buffer, fetched)

    def _absorb(self, buffer: Buffer, fetched: FetchedPartition) -> None:
        try:
            self.budget.bytes += buffer.absorb(fetched)
        except MemoryError:
            raise
        except Exception as error:  # any fault in one partition's bytes: the others are still read
            self._stop(buffer, unreadable(buffer, log_defect(error)))
        if buffer.stopped:
            self.drop(buffer)
        else:
            self._pending[buffer.key] = None  # the next Fetch asks for it with its new values

    def _diverged(self, buffer: Buffer, end: EpochEnd) -> None:
        try:
            reason = at_divergence(buffer, end)
        except BrokerBusy as error:
            self._refuse(buffer, error)
            return
        if reason is not None:
            self._stop(buffer, reason)
        else:
            buffer.epoch = end.epoch if end.epoch < buffer.epoch else UNKNOWN_EPOCH
            self._pending[buffer.key] = None  # the next Fetch asks for it with its new values

    def _failed(self, buffer: Buffer, code: ErrorCode) -> None:
        error = failure(code, f"fetch {buffer} from offset {buffer.position}")
        if isinstance(error, BrokerRefused) and error.code not in OF_THE_RECORDS:
            self._refuse(buffer, error)
        else:
            self._stop(buffer, PartitionStopped(str(error)))

    def _refuse(self, buffer: Buffer, error: BrokerRefused) -> None:
        self.drop(buffer)
        self.keeper.refuse(buffer, error)

    def _stop(self, buffer: Buffer, reason: PartitionStopped) -> None:
        self.drop(buffer)
        buffer.stop(reason)


def _headers(fetched: FetchedPartition) -> list[Header]:
    """The headers of its batches, up to damaged bytes."""
    headers: list[Header] = []
    with contextlib.suppress(BatchCorrupt):
        headers.extend(each.header for each in fetched.batches(convert))
    return headers


def _with_names(error: ApplianceError, waiting: Sequence[Buffer]) -> ApplianceError:
    """The error, and some of the waiting partitions."""
    names = sorted(waiting, key=lambda buffer: buffer.key)
    kind = Unreachable if isinstance(error, Unreachable) else ApplianceError
    return kind(f"{error}; not read meanwhile: {some(names)}") if names else error
