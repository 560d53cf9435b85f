"""What reads from one leader: one Fetch in flight, in a session, into the buffers of the partitions that it leads.

A Fetch costs by the partitions that have news: the session knows the others, and nobody looks at them.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

from kio.schema.errors import ErrorCode

from appliance.errors import ApplianceError, BrokerBusy, GapFound, PartitionStopped
from appliance.kafka.answer import failure
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.connection import BrokerConnection
from appliance.kafka.fetch import Fetched, FetchLimits, offers_ids
from appliance.kafka.fetch_session import LOST, FetchSession
from appliance.kafka.offsets import Bound, Partition, list_offsets
from appliance.replicator.buffer import Buffer
from appliance.replicator.failing import Failing
from appliance.replicator.pace import Pace
from appliance.replicator.read_ahead import ReadAhead

_IDLE_WAIT = 0.5
_HURRIED_WAIT = 0.01
"""How long a Fetch waits while a full buffer is left out, which may have room long before new records come to others;
twice as long each time, as long as nothing is taken."""

_SMALL = 64 * 1024
_COLLECTING = 0.005
"""How long at least one Fetch is sent after the other while they bring little: what comes in one answer is written in
one batch. The first record after a silence does not wait."""

Release = Callable[[Iterable[Buffer]], None]
"""Gives buffers back, whose leader is another one, or none, or does not answer."""


class Fetcher:
    """The reading from one leader, as long as ``run`` runs."""

    def __init__(
        self, node: int, source: KafkaCluster, read_ahead: ReadAhead, failing: Failing, release: Release
    ) -> None:
        self._node = node
        self._cluster = source
        self._read_ahead = read_ahead
        self._failing = failing
        self._release = release
        self._session = FetchSession()
        self._pace = Pace()
        self._connection: BrokerConnection | None = None
        self._buffers: dict[Partition, Buffer] = {}
        self._unsettled: dict[Buffer, None] = {}
        """The buffers of which the next Fetch has something else to say: so the one in flight says nothing of them."""
        self._news = asyncio.Event()
        self._wait = _IDLE_WAIT

    def add(self, buffer: Buffer) -> None:
        """Read into this buffer."""
        self._buffers[buffer.key] = buffer
        self._unsettled[buffer] = None
        self._news.set()

    def drop(self, buffer: Buffer) -> None:
        """Read into it no more; what is on its way to it counts no more."""
        if self._buffers.get(buffer.key) is buffer:
            del self._buffers[buffer.key]
            self._unsettled.pop(buffer, None)
            self._session.drop(buffer.key)

    def look_again(self) -> None:
        """Full buffers may have room."""
        self._wait = _HURRIED_WAIT
        self._news.set()

    async def run(self) -> None:
        """Fetch until cancelled."""
        while True:
            self._news.clear()
            self._settle()
            if not len(self._session):
                await self._news.wait()
                continue
            try:
                await self._fetch()
            except ApplianceError as error:
                if isinstance(error, BrokerBusy) and error.code in LOST and not self._session.full:
                    continue
                self._lose(error)
            else:
                self._failing.over(self._subject)

    @property
    def _subject(self) -> str:
        return f"source broker {self._node}"

    def _settle(self) -> None:
        """Tell the session where buffers have to be filled now, and leave out the full ones until they have room."""
        for buffer in list(self._unsettled):
            room = self._read_ahead.room(buffer)
            if room:
                self._session.want(buffer.wanted(min(room, self._pace.partition_bytes)))
                del self._unsettled[buffer]
            else:
                self._session.drop(buffer.key)

    def _lose(self, error: ApplianceError) -> None:
        """The leader is gone, or cannot be read from."""
        self._failing.tell(self._subject, error)
        lost = list(self._buffers.values())
        for buffer in lost:
            self.drop(buffer)
        self._release(lost)

    async def _fetch(self) -> None:
        connection = await self._cluster.broker(self._node, "fetch")
        if connection is not self._connection:
            self._session.begin_anew()
            self._connection, self._pace = connection, Pace()
        size = await self._read_ahead.allowance.left(min(self._pace.response_bytes, self._read_ahead.left))
        limits = FetchLimits(size, self._wait if self._unsettled else _IDLE_WAIT)
        self._wait = min(2 * self._wait, _IDLE_WAIT)
        sent = time.monotonic()
        answer = await connection.ask(self._session.ask(limits, offers_ids(connection)))
        self._read_ahead.allowance.spend(sum(len(fetched.records) for fetched in answer.partitions))
        self._session.answered(answer.session_id)
        self._pace.answered(sent, connection.newest, sum(bool(fetched.records) for fetched in answer.partitions))
        if self._pace.far:
            self._read_ahead.stretch(self._pace.response_bytes)
        await self._absorb_all(answer.partitions)
        if connection.newest.bytes < _SMALL:
            await asyncio.sleep(sent + _COLLECTING - time.monotonic())

    async def _absorb_all(self, partitions: Iterable[Fetched]) -> None:
        for fetched in partitions:
            buffer = self._buffers.get(fetched.partition)
            if buffer is None or buffer in self._unsettled:
                continue
            if fetched.error is not ErrorCode.none:
                await self._failed(buffer, fetched)
            elif fetched.diverges_at is not None:
                self._stop(buffer, _truncated(buffer, fetched.diverges_at))
            elif fetched.records:
                self._absorb(buffer, fetched)

    def _absorb(self, buffer: Buffer, fetched: Fetched) -> None:
        self._read_ahead.bytes += buffer.absorb(fetched)
        self._failing.over(f"{buffer} at its leader")
        if buffer.stopped:
            self.drop(buffer)
        else:
            self._unsettled[buffer] = None

    async def _failed(self, buffer: Buffer, fetched: Fetched) -> None:
        error = failure(fetched.error, f"fetch {buffer} from offset {buffer.position}")
        if fetched.error is ErrorCode.offset_out_of_range:
            self._stop(buffer, await self._out_of_range(buffer))
        elif isinstance(error, BrokerBusy):
            self._failing.tell(f"{buffer} at its leader", error)
            self.drop(buffer)
            self._release([buffer])
        else:
            self._stop(buffer, PartitionStopped(str(error)))

    def _stop(self, buffer: Buffer, reason: PartitionStopped) -> None:
        if self._buffers.get(buffer.key) is buffer:
            self.drop(buffer)
            buffer.stop(reason)

    async def _out_of_range(self, buffer: Buffer) -> PartitionStopped:
        """Which end of the log the position lies beyond."""
        position, key = buffer.position, buffer.key
        metadata = await self._cluster.metadata([key[0]])
        start = (await list_offsets(self._cluster, metadata, [key], Bound.START))[key]
        if position < start:
            what = f"offsets {position} to {start - 1} were deleted at the source before they were copied"
            return GapFound(f"{buffer}: {what}", position, start, "deleted at the source")
        return _truncated(buffer, (await list_offsets(self._cluster, metadata, [key], Bound.END))[key])


def _truncated(buffer: Buffer, offset: int) -> PartitionStopped:
    return PartitionStopped(
        f"{buffer}: the source's log was truncated: from offset {offset} on it does not hold what was copied up to "
        f"{buffer.position}"
    )
