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
        records = []
        for _ in range(count):
            self.written += 1
            records.append(Record(0, 1_700_000_000_000 + self.written, body(None, b"%d" % self.written)))
        data = bytearray(pack(records, 0))
        contents = [(record.timestamp, record.body) for record in records]
        if self.chance.random() < 0.5:
            writer = self._writer()
            sequence = self._sequences.get((writer.producer, log), 0)
            self._sequences[writer.producer, log] = sequence + count
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

    def _writer(self) -> Writer:
        if not self.writers:
            self.writers = [Writer(1), Writer(2)]
        return self.chance.choice(self.writers)
