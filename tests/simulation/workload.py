"""Producers at the source: plain ones and transactional ones, whose transactions commit and abort, mixed."""

import random
import struct
from dataclasses import dataclass, field

from appliance.kafka.records.batch import ATTRIBUTES_AT, restamp, stamp_crc
from appliance.kafka.records.records import Record, body, pack
from tests.simulation.brokers import Brokers
from tests.simulation.log import Log

_PRODUCER_AT = 43
_NOBODY = struct.pack(">qhi", -1, -1, -1)
_KEYS = (3, 60)
_DELETIONS = 0.1


@dataclass(slots=True)
class Writer:
    """A transactional producer at the source."""

    producer: int
    logs: dict[Log, int] = field(default_factory=dict)


@dataclass(slots=True)
class Workload:
    """Writes when it is told to; each record is one of its kind."""

    source: Brokers
    chance: random.Random
    written: int = 0
    writers: list[Writer] = field(default_factory=list)
    _sequences: dict[tuple[int, Log], int] = field(default_factory=dict)

    def write(self, log: Log) -> None:
        """A batch, by nobody in particular or within a transaction."""
        count = 40 if self.chance.random() < 0.05 else self.chance.randint(1, 4)
        is_compacted = self.source.is_compacted(log)
        records = []
        for _ in range(count):
            self.written += 1
            record = self._keyed() if is_compacted else body(None, b"%d" % self.written)
            records.append(self._record(record))
        self._append(log, records, transactional=self.chance.random() < 0.5)

    def overwrite(self, log: Log) -> None:
        """A record by nobody in particular, of a key that is often written to."""
        self.written += 1
        self._append(log, [self._record(body(b"0", b"%d" % self.written))], transactional=False)

    def forge(self, log: Log, content: bytes) -> None:
        """A record with the key and value of another one."""
        self.written += 1
        self._append(log, [self._record(content)], transactional=self.chance.random() < 0.5)

    def _record(self, record: bytes) -> Record:
        return Record(0, 1_700_000_000_000 + self.written, record)

    def _append(self, log: Log, records: list[Record], transactional: bool) -> None:
        data = bytearray(pack(records, 0))
        contents = [(record.timestamp, record.body) for record in records]
        if transactional:
            writer = self._writer()
            sequence = self._sequences.get((writer.producer, log), 0)
            self._sequences[writer.producer, log] = sequence + len(records)
            restamp(data, writer.producer, 0, sequence)
            writer.logs[log] = 1
        else:
            data[_PRODUCER_AT : _PRODUCER_AT + len(_NOBODY)] = _NOBODY
            assert data[ATTRIBUTES_AT + 1] == 0
            stamp_crc(data)
        log.append(data, contents)
        self.source.changed(log)

    def decide(self) -> bool:
        """Commit or abort a transaction, all of its partitions at once; False when none is open."""
        open_now = [writer for writer in self.writers if writer.logs]
        if not open_now:
            return False
        writer = self.chance.choice(open_now)
        committed = self.chance.random() < 0.6
        for log in writer.logs:
            log.mark(writer.producer, 0, committed)
            self.source.changed(log)
        writer.logs.clear()
        return True

    def truncated(self, log: Log) -> None:
        """A log has lost its end: its producers go on where it knows them, and end what it holds open again."""
        for writer in self.writers:
            known = log.producers.get(writer.producer)
            self._sequences[writer.producer, log] = known.next if known is not None else 0
            if writer.producer in log.open:
                writer.logs[log] = 1
            else:
                writer.logs.pop(log, None)

    def _keyed(self) -> bytes:
        """A record of a key that comes again soon, or late; some delete what the key had."""
        key = b"%d" % self.chance.randrange(self.chance.choice(_KEYS))
        return body(key, None if self.chance.random() < _DELETIONS else b"%d" % self.written)

    def _writer(self) -> Writer:
        if not self.writers:
            self.writers = [Writer(1), Writer(2)]
        return self.chance.choice(self.writers)
