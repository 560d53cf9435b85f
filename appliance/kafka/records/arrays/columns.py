"""The records of batches as columns, and columns as a batch with each record at its own offset."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from appliance.errors import BatchCorrupt
from appliance.kafka.records.arrays.decoding import RecordMisfit, binary, fields, misfit, uncompressed
from appliance.kafka.records.arrays.encoding import Columns, payload
from appliance.kafka.records.arrays.headers import check_headers, opaque_headers
from appliance.kafka.records.arrays.varints import Integers
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.outgoing import Outgoing
from appliance.kafka.records.records import batch_at


def offsets_of(batch: Outgoing) -> Integers:
    """The source offset of each record of a batch."""
    firsts, sizes = np.array(batch.runs or ((batch.first_offset, batch.records),), np.int64).T
    return np.repeat(firsts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())


def columns_of(batches: Sequence[Outgoing]) -> Columns:
    """The records of batches in a row."""
    parts = [uncompressed(batch.data, batch.first_offset) for batch in batches]
    if not parts:
        return joined([])
    try:
        every = fields(parts)
        rows = np.arange(len(every.timestamps))
        check_headers(every)
    except RecordMisfit as error:
        number = int(np.searchsorted(np.cumsum([len(part.ends) for part in parts]), error.at, side="right"))
        raise misfit(batches[number].first_offset) from error
    offsets = np.concatenate([offsets_of(batch) for batch in batches])
    if len(offsets) != len(rows):
        raise BatchCorrupt(f"the batches from offset {batches[0].first_offset} on do not hold their records")
    keys, values = (binary(every.data, places, rows) for places in (every.keys, every.values))
    return Columns(offsets, every.timestamps, keys, values, opaque_headers(every, rows))


def joined(parts: Sequence[Columns]) -> Columns:
    """The records of some columns, one after the other."""
    nothing, numbers = pa.array([], pa.binary()), np.zeros(0, np.int64)
    every = [Columns(numbers, numbers, nothing, nothing, nothing), *parts]
    return Columns(
        np.concatenate([each.offsets for each in every]),
        np.concatenate([each.timestamps for each in every]),
        pa.concat_arrays([each.keys for each in every]),
        pa.concat_arrays([each.values for each in every]),
        pa.concat_arrays([each.headers for each in every]),
    )


def placed(columns: Columns) -> Batch:
    """The same as ``records.placed``: a batch that is not compressed, with each record at its own offset."""
    offsets, timestamps = columns.offsets, columns.timestamps
    deltas = offsets - offsets[0]
    data = payload(columns, timestamps - timestamps[0], deltas)
    return batch_at(int(offsets[0]), data, deltas.tolist(), (int(timestamps[0]), int(timestamps.max())))
