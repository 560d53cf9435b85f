"""The two ends of a job that runs the SQL, in Spark's Python workers; neither decides anything.

The source asks the lane's process for ranges, and gives their records to the SQL, each range ended by its mark. The
sink makes batches of what comes back, and confirms each range whose mark arrives: never because its input has ended,
since Spark ends it just so when the source, the SQL or Spark itself has failed.
"""

import gc
import itertools
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from appliance.settings.secret import Secret
from appliance.sql.flight.connection import Connection
from appliance.sql.flight.messages import decode_ranges, encode, encode_done
from appliance.sql.flight.row_reader import RowReader
from appliance.sql.flight.row_writer import RangeDamaged, RowWriter

_jobs = itertools.count()


Connect = Callable[[], Connection]
"""Connects to the lane's process, or raises EOFError if it has gone."""


def source(connect: Connect, attempt: int, columns: Sequence[str], salt: Secret) -> Iterator[pa.RecordBatch]:
    """The rows of the ranges that the lane's process gives to an attempt; none once it has gone."""
    _leave_garbage()
    try:
        lane = connect()
    except EOFError:
        return
    with lane:
        lane.send(encode({"role": "source", "attempt": attempt}))
        try:
            fields, data = lane.read()
        except (EOFError, ConnectionError):
            return
        rows = RowWriter(columns, salt.reveal(), fields["weight"])
        try:
            for number, each in enumerate(decode_ranges(fields, data)):
                for batch in each.batches:
                    yield from _pulled(lane, rows.add(number, each, batch))
                yield from _pulled(lane, rows.mark(number, each))
            yield from _pulled(lane, rows.rest())
        except RangeDamaged as error:
            lane.send(encode({"damaged": error.number, "offset": error.offset, "reason": str(error)}))
            raise


def _pulled(lane: Connection, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same; tells the lane's process of each that Spark asks on after: a ``WHERE`` may keep none of its rows."""
    for batch in batches:
        yield batch
        lane.send(encode({}))


def sink(connect: Connect, attempt: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Confirm the ranges whose marks arrive to the lane's process; returns nothing to Spark."""
    _leave_garbage()
    try:
        lane = connect()
    except EOFError:
        for _ in batches:
            """A process with input left over is not used again."""
        return
    with lane:
        lane.send(encode({"role": "sink", "attempt": attempt}))
        rows: RowReader | None = None
        for batch in batches:
            if rows is None:
                bounds, _ = lane.read()
                rows = RowReader(bounds["ranges"], stops=bounds["stops"], weight=bounds["weight"])
            for message in [encode_done(*each) for each in rows.read(batch)] or [encode({})]:
                lane.send(message)
    yield from ()


def _leave_garbage() -> None:
    """Leave the garbage to PySpark, which collects it after each job.

    That takes 11 ms and more among all that a process has loaded by the end of its first job, and 1 ms without. Python
    itself would take a fifth of the source's time for it.
    """
    gc.disable()
    if next(_jobs) == 1:
        gc.freeze()
