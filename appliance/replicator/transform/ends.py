"""The two ends of a job that runs the SQL, in Spark's Python workers; neither decides anything.

The source asks the lane's process for ranges, and gives their records to the SQL, each range ended by its mark. The
sink makes batches of what comes back, and confirms each range whose mark arrives: never because its input has ended,
since Spark ends it just so when the source, the SQL or Spark itself has failed.
"""

import gc
import itertools
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from appliance.errors import BatchCorrupt
from appliance.replicator.transform.messages import LEAD, Fields, decode, decode_ranges, encode, encode_done
from appliance.replicator.transform.rows import RowReader, RowWriter
from appliance.runtime.bind import short_path
from appliance.settings.secret import Secret

_jobs = itertools.count()


def source(path: str, attempt: int, columns: Sequence[str], salt: Secret) -> Iterator[pa.RecordBatch]:
    """The rows of the ranges that the lane's process at ``path`` gives to an attempt; none once it has gone."""
    _leave_garbage()
    try:
        lane = _connected(path)
    except EOFError:
        return
    with lane:
        lane.sendall(encode({"role": "source", "attempt": attempt}))
        try:
            fields, data = _read(lane)
        except (EOFError, ConnectionError):
            return
        rows = RowWriter(columns, salt.reveal(), fields["weight"])
        for number, each in enumerate(decode_ranges(fields, data)):
            for batch in each.batches:
                try:
                    yield from rows.add(number, each, batch)
                except BatchCorrupt as error:
                    lane.sendall(encode({"damaged": number, "offset": batch.first_offset, "reason": str(error)}))
                    raise
            yield from rows.mark(number, each)
        yield from rows.rest()


def sink(path: str, attempt: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Confirm the ranges whose marks arrive to the lane's process at ``path``; returns nothing to Spark."""
    _leave_garbage()
    try:
        lane = _connected(path)
    except EOFError:
        for _ in batches:
            """A process with input left over is not used again."""
        return
    with lane:
        lane.sendall(encode({"role": "sink", "attempt": attempt}))
        rows: RowReader | None = None
        for batch in batches:
            if rows is None:
                bounds, _ = _read(lane)
                rows = RowReader(bounds["ranges"], stops=bounds["stops"], weight=bounds["weight"])
            for confirmed in rows.read(batch):
                lane.sendall(encode_done(*confirmed))
    yield from ()


def _leave_garbage() -> None:
    """Leave the garbage to PySpark, which collects it after each job.

    That takes 11 ms and more among all that a process has loaded by the end of its first job, and 1 ms without. Python
    itself would take a fifth of the source's time for it.
    """
    gc.disable()
    if next(_jobs) == 1:
        gc.freeze()


def _connected(path: str) -> socket.socket:
    """The connection to the lane's process.

    Raises:
        EOFError: it has gone.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        with short_path(Path(path)) as name:
            connection.connect(name)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        raise EOFError from None
    except OSError:
        connection.close()
        raise
    return connection


def _read(connection: socket.socket) -> tuple[Fields, memoryview]:
    head, size = LEAD.unpack(_exactly(connection, LEAD.size))
    return decode(bytes(_exactly(connection, head))), _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> memoryview:
    data = memoryview(bytearray(size))
    at = 0
    while at < size:
        count = connection.recv_into(data[at:])
        if not count:
            raise EOFError
        at += count
    return data
