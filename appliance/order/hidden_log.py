"""Hidden logs, read in whole transactions: each has its records, and then the mark that says where they come from.

A mark is the last batch before a commit marker; its place tells it, never its content, which a user's record could
forge. A hidden log has one writer, so that whatever lies between two commit markers is one transaction.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from appliance.engine.model.chunk import Chunk
from appliance.engine.problem_log import ProblemLog
from appliance.engine.read.buffer import Buffer, Limits, unreadable
from appliance.engine.read.source_reader import SourceReader
from appliance.errors import BatchCorrupt, GapFound, PeerError
from appliance.kafka.client.fetch import FetchedPartition
from appliance.kafka.records.batch import CONTROL, Batch, verify
from appliance.kafka.records.committed import ABORT, marker
from appliance.kafka.records.legacy import convert
from appliance.kafka.records.outgoing import Outgoing, outgoing
from appliance.kafka.records.records import unpack
from appliance.link.model.order import NO_EPOCH, Digest, Epoch, SequenceMark
from appliance.link.model.order_records import decode_sequence_mark
from appliance.link.model.replicas import Replica
from appliance.order.arrivals import WakingQueue

_NO_MARK = SequenceMark(NO_EPOCH, 0, (), {}, Digest())


@dataclass(frozen=True, slots=True)
class HiddenTransaction(Chunk):
    """A transaction of a hidden log: the batches as they lie there, and its mark."""

    data: tuple[Batch, ...] = ()
    mark: SequenceMark = _NO_MARK

    def cut(self, limit: int) -> tuple[Chunk, Chunk | None]:  # noqa: ARG002
        """It is taken whole."""
        return self, None

    @property
    def bytes(self) -> int:
        """The size of its batches; at least 1, that of one with a mark alone."""
        return sum(len(each.data) for each in self.data) or 1

    def outgoing(self, skip: int, limit: int) -> Sequence[Outgoing]:
        """The batches to write, without the first ``skip`` records; ``limit`` is the largest batch in bytes."""
        return tuple(outgoing(self.data, self.data[0].header.base_offset + skip, limit)) if self.data else ()


@dataclass(slots=True, eq=False)
class HiddenBuffer(Buffer):
    """The buffer of a hidden log, with its transactions of one epoch of the order."""

    of_epoch: Epoch = NO_EPOCH
    _pending: list[Batch] = field(default_factory=list)

    def absorb(self, fetched: FetchedPartition) -> int:
        """Add the transactions that end in a Fetch; the growth of the waiting bytes."""
        size = 0
        try:
            for batch in fetched.batches(convert):
                header = batch.header
                if header.last_offset < self.position:
                    continue
                self.position, self.epoch = header.last_offset + 1, header.leader_epoch
                if header.attributes & CONTROL:
                    size += self._end(batch)
                else:
                    self._pending.append(batch)
        except (BatchCorrupt, PeerError) as error:
            self.stop(unreadable(self, error))
        return size

    def _end(self, control: Batch) -> int:
        pending, self._pending = self._pending, []
        if marker(control) == ABORT or not pending:
            return 0
        *data, last = pending
        for each in pending:
            verify(each)
        mark = decode_sequence_mark(unpack(last, 0)[-1])
        if sum(each.header.records for each in data) != mark.rank - mark.start:
            raise PeerError(f"{self} has records before offset {last.header.base_offset} that its mark does not name")
        if mark.epoch != self.of_epoch:
            return 0
        at = control.header.last_offset + 1
        taken = HiddenTransaction(self.replica, (), at, control.header.leader_epoch, data=tuple(data), mark=mark)
        self.chunks.append(taken)
        self.bytes += taken.bytes
        self.ready.has_more(self)
        return taken.bytes


@dataclass(eq=False)
class HiddenReading:
    """The reading of one hidden log at a time; ``tail`` is what a candidate has read.

    ``lacks``: the log begins past what is shown here, since it was trimmed. About ``size`` bytes are given at once.
    """

    readers: Mapping[str, SourceReader]
    wake: asyncio.Event
    size: int
    own: str
    problems: ProblemLog
    tail: list[HiddenTransaction] = field(init=False, default_factory=list)
    lacks: bool = field(init=False, default=False)
    _buffer: HiddenBuffer | None = field(init=False, default=None)

    @property
    def is_read(self) -> bool:
        """True while a log is read."""
        return self._buffer is not None

    def read(self, replica: Replica | None, epoch: Epoch, offset: int) -> None:
        """Read a hidden log from an offset on, unless that goes on already."""
        before = self._buffer
        if before is not None and before.replica == replica and before.of_epoch == epoch:
            return
        self.stop()
        if replica is not None:
            self._buffer = HiddenBuffer(replica, max(offset, 0), -1, WakingQueue(self.wake), Limits(), of_epoch=epoch)
            self.readers[replica.cluster].router.add(self._buffer)

    def stop(self) -> None:
        """Read nothing more."""
        self.tail.clear()
        self.lacks = False
        if self._buffer is not None:
            self.problems.over(self._buffer.subject)
            self.readers[self._buffer.replica.cluster].forget([self._buffer.replica])
            self._buffer = None

    def transactions(self, rank: int, bound: int) -> list[HiddenTransaction]:
        """The transactions that have arrived and follow ``rank``, or the tail, up to another rank."""
        taken, size, rank = list[HiddenTransaction](), 0, self.tail[-1].mark.rank if self.tail else rank
        while size < self.size and (each := self.next(rank, bound)) is not None:
            taken.append(each)
            size, rank = size + each.bytes, max(rank, each.mark.rank)
        return taken

    def next(self, rank: int, bound: int = 2**63) -> HiddenTransaction | None:
        """The next transaction, up to a rank, of what follows ``rank``.

        Raises:
            PartitionStopped: the log cannot be read further.
        """
        if self._buffer is None:
            return None
        if self._buffer.stopped and not self._buffer.chunks:
            self._go_on(self._buffer)
        first = self._buffer.chunks[0] if self._buffer.chunks else None
        if not isinstance(first, HiddenTransaction) or first.mark.rank > bound:
            return None
        self.lacks = first.mark.start > rank
        if self.lacks:  # a T-global has what is missing
            return None
        self.readers[self._buffer.replica.cluster].take(self._buffer.ready, 1)
        return first

    def _go_on(self, buffer: HiddenBuffer) -> None:
        """Go on at the beginning of a log that was trimmed."""
        for _, reason in buffer.ready.take_stops():
            if not isinstance(reason, GapFound) or reason.next < 0:
                if buffer.replica.cluster == self.own:
                    raise reason
                self.lacks = True  # the own logs are well, and T-globals may have it
                self.problems.tell(buffer.subject, reason)
                continue
            self.stop()
            self.read(buffer.replica, buffer.of_epoch, reason.next)
            self.lacks = True  # the next transaction may come late
