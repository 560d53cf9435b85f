"""Headers of many records at once. In a record they are::

count varint | name length varint, name, value length varint (-1: null), value | ...
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from appliance.errors import BatchCorrupt
from appliance.kafka.records.arrays import varints
from appliance.kafka.records.arrays.decoding import Fields, Places, RecordMisfit, binary, nullable, read, require
from appliance.kafka.records.arrays.encoding import bounds, integers, joined, or_empty, written_sizes
from appliance.kafka.records.arrays.varints import Booleans, Bytes, Integers
from appliance.kafka.records.varint import read_varint

_MANY = 32
"""Headers of a record from which on they are read one by one."""

_HEADER_BYTES = 2
"""A header takes at least so many."""

_RECORD_MAX, _MOST = 2**18, 2**22
"""Most headers of a record, and of all records at once: each takes much more memory than its bytes."""


def header_lists(fields: Fields, rows: Integers) -> pa.ListArray:
    """The headers of each record, for ``rows`` that have each record once, in order; empty in other rows."""
    counts, names, values = _headers(fields)
    flat = np.arange(len(names.begins))
    keys = binary(fields.data, Places(names.begins, names.ends, np.zeros(len(flat), np.bool_)), flat)
    structs = pa.StructArray.from_arrays(
        [keys.view(pa.string()), binary(fields.data, values, flat)], names=["key", "value"]
    )
    lengths = np.zeros(len(rows), np.int64)
    lengths[rows >= 0] = counts
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32()), structs)


def opaque_headers(fields: Fields, rows: Integers) -> pa.BinaryArray:
    """The bytes of each record's headers, as in the record; null for a record that has none, as in ``binary``."""
    return binary(fields.data, Places(fields.headers.begins, fields.headers.ends, _are_none(fields)), rows)


def check_headers(fields: Fields) -> None:
    """Check what ``header_lists`` checks while it reads headers."""
    if not _are_none(fields).all():
        _headers(fields)


def _are_none(fields: Fields) -> Booleans:
    """True for each record without headers."""
    begins, ends = fields.headers.begins, fields.headers.ends
    none: Booleans = (ends - begins == 1) & (fields.data[begins] == 0)
    return none


def _headers(fields: Fields) -> tuple[Integers, Places, Places]:
    """The number of each record's headers, and the places of all names and values."""
    data, ends = fields.data, fields.headers.ends
    counts, at = read(data, fields.headers.begins)
    require((counts >= 0) & (at <= ends) & (counts <= np.minimum((ends - at) // _HEADER_BYTES, _RECORD_MAX)))
    require(np.cumsum(counts) <= _MOST)
    first, total = np.cumsum(counts) - counts, int(counts.sum())
    names, values = ([np.zeros(total, np.int64), np.zeros(total, np.int64)] for _ in range(2))
    nulls = np.zeros(total, np.bool_)
    for record in np.flatnonzero(counts >= _MANY).tolist():
        try:
            places = _one_by_one(data, int(at[record]), int(ends[record]), int(counts[record]), record)
        except BatchCorrupt as error:
            raise RecordMisfit(record) from error
        columns = np.array(places)
        own = slice(first[record], first[record] + counts[record])
        names[0][own], names[1][own], values[0][own], values[1][own], nulls[own] = columns.T
        at[record] = columns[-1][3]
    number, left = 0, np.flatnonzero((counts > 0) & (counts < _MANY))
    while len(left):
        try:
            name = nullable(data, at[left], ends[left])
            value = nullable(data, name.ends, ends[left])
        except RecordMisfit as error:
            raise RecordMisfit(int(left[error.at])) from error
        to = first[left] + number
        names[0][to], names[1][to], values[0][to], values[1][to] = name.begins, name.ends, value.begins, value.ends
        nulls[to], at[left] = value.nulls, value.ends
        number += 1
        left = left[counts[left] > number]
    require(at == ends)
    return counts, Places(names[0], names[1], np.zeros(total, np.bool_)), Places(values[0], values[1], nulls)


def _one_by_one(data: Bytes, at: int, end: int, count: int, record: int) -> list[tuple[int, int, int, int, bool]]:
    """The places of one record's names and values."""
    view, places = data.data, []
    for _ in range(count):
        size, begin = read_varint(view, at)
        name_end = begin + max(size, 0)
        if size < -1 or name_end > end:
            raise RecordMisfit(record)
        size, value_begin = read_varint(view, name_end)
        at = value_begin + max(size, 0)
        if size < -1 or at > end:
            raise RecordMisfit(record)
        places.append((begin, name_end, value_begin, at, size < 0))
    return places


def header_bytes(lists: pa.ListArray) -> pa.BinaryArray:
    """Headers as in a record, for lists of a name and a value each; null where a list is null or empty."""
    counts = integers(pc.list_value_length(lists).fill_null(0))
    flat = lists.flatten()
    names, values = flat.field(0).cast(pa.binary()), flat.field(1)
    headers = joined(
        varints.written(written_sizes(names)), or_empty(names), varints.written(written_sizes(values)), or_empty(values)
    )
    begins = np.array(bounds(headers) if len(headers) else [0], np.int32)
    ends = begins[np.concatenate([[0], np.cumsum(counts)])]
    lists_joined = pa.BinaryArray.from_buffers(
        pa.binary(),
        len(counts),
        [None, pa.py_buffer(ends), headers.buffers()[2] or pa.py_buffer(b"")],
    )
    whole = joined(varints.written(counts), lists_joined)
    return pc.if_else(pa.array(counts > 0), whole, pa.scalar(None, pa.binary()))
