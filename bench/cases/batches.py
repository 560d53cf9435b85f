"""The processor time from fetched bytes to the bytes of a Produce, in one thread and without a broker.

Records in batches of four become large batches. Their rate is measured for the rebuild alone, and with the work before
it: splitting, checksums, and leaving out aborted batches. Batches of 128 KiB are copied raw, from a Fetch's bytes to a
Produce's. Their rate is measured alternately with that of code without rebuilding and joining.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

from appliance.kafka.client.produce import Copy, ProduceExchange
from appliance.kafka.client.transactions import Producer
from appliance.kafka.records.batch import NO_END, restamp, split, verify
from appliance.kafka.records.committed import committed
from appliance.kafka.records.outgoing import Outgoing, outgoing
from appliance.kafka.records.rebuild import rebuild
from appliance.kafka.records.records import Record, body, pack
from bench.lib.events import events
from bench.lib.row import Row

_RECORDS = 100_000
_TINY, _LARGE = 4, 256
_EVENT_BYTES = 500
_TINY_VALUE = b"v" * 64
_TOGETHER = 400
_LZ4 = 3
_TURNS = 15
_PRODUCER = Producer("replicator-orange.lane-0", 4000, 1)
_GOAL = 1_000_000.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no options."""


async def run(_: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    tiny, large = _log(_TINY, 0), _log(_LARGE, _LZ4)
    checked, ours, plain = _seconds(
        lambda: _drain(outgoing(committed(split(tiny), ()), 0)),
        lambda: _frame(outgoing(committed(split(large), ()), 0)),
        lambda: _frame(_raw_only(large)),
    )
    parts = list(split(tiny))
    runs = [parts[at : at + _TOGETHER] for at in range(0, len(parts), _TOGETHER)]
    (rebuilding,) = _seconds(lambda: [rebuild(each, range(NO_END)) for each in runs])
    return [
        Row("rebuild of batches of 4", "records/CPU-s", _RECORDS / rebuilding, "goal", _GOAL),
        Row("the same with splitting and checking", "records/CPU-s", _RECORDS / checked, "goal", _GOAL),
        Row("raw path", "records/CPU-s", _RECORDS / ours, "without rebuild", _RECORDS / plain),
    ]


def _log(size: int, codec: int) -> bytes:
    """A partition's records in batches of ``size`` records."""
    values = events(_LARGE, _EVENT_BYTES) if codec else [_TINY_VALUE]
    records = [Record(at, 1_790_000_000_000 + at, body(b"%d" % at, values[at % len(values)])) for at in range(_RECORDS)]
    log = bytearray()
    for first in range(0, _RECORDS, size):
        batch = bytearray(pack(records[first : first + size], codec))
        restamp(batch, 1, 0, 0)
        log += first.to_bytes(8, "big") + batch[8:]
    return bytes(log)


def _raw_only(log: bytes) -> Iterator[Outgoing]:
    for batch in committed(split(log), ()):
        verify(batch)
        header = batch.header
        last = header.last_offset + 1
        yield Outgoing(batch.data, header.records, header.base_offset, last, header.max_timestamp, raw=True)


def _drain(written: Iterator[Outgoing]) -> None:
    for _ in written:
        pass


def _frame(written: Iterator[Outgoing]) -> None:
    for each in written:
        ProduceExchange(_PRODUCER, [Copy(("orders.copy", 0), each.data, each.first_offset)], 30).frame(0, "bench")


def _seconds(*measured: Callable[[], object]) -> list[float]:
    """The median processor time of each, measured alternately."""
    taken: list[list[float]] = [[] for _ in measured]
    for _ in range(_TURNS):
        for number, work in enumerate(measured):
            began = time.thread_time()
            work()
            taken[number].append(time.thread_time() - began)
    return [statistics.median(each) for each in taken]
