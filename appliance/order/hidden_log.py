"""Hidden logs, read in whole transactions: each has its records, and then the mark that says where they come from.

A mark is the last batch before a commit marker; its place tells it, never its content, which a user's record could
forge. A hidden log has one writer, so that whatever lies between two commit markers is one transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from appliance.engine.model.chunk import Chunk
from appliance.engine.read.buffer import Buffer, unreadable
from appliance.errors import BatchCorrupt, PeerError
from appliance.kafka.client.fetch import FetchedPartition
from appliance.kafka.records.batch import CONTROL, Batch, verify
from appliance.kafka.records.committed import ABORT, marker
from appliance.kafka.records.legacy import convert
from appliance.kafka.records.outgoing import Outgoing, outgoing
from appliance.kafka.records.records import unpack
from appliance.link.model.order import NO_EPOCH, Digest, Epoch, SequenceMark
from appliance.link.model.order_records import decode_sequence_mark

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
