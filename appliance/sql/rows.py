"""Records as Arrow's rows, as Spark takes and gives them.

Header keys pass as strings whose bytes nobody has checked: Kafka demands UTF-8 of them, and takes anything.
"""

from collections.abc import Sequence
from itertools import accumulate, chain

import pyarrow as pa

from appliance.sql.model.statement import END, OPAQUE, RANGE, ROOM, SALT, TEXTS

Headers = Sequence[tuple[bytes, bytes | None]]

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(_HEADER)),
        (END, pa.int64()),
        (SALT, pa.string()),
    ]
)
"""The columns of a record that a statement sees."""

_TYPES = {field.name: field.type for field in SCHEMA} | {RANGE: pa.int32(), OPAQUE: pa.binary(), ROOM: pa.int64()}
_TYPES |= dict.fromkeys(TEXTS.values(), pa.string())


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """The schema of rows of these columns."""
    return pa.schema([(name, _TYPES[name]) for name in columns])


def headers_array(headers: Sequence[Headers]) -> pa.ListArray:
    """The headers of each row."""
    flat = [*chain.from_iterable(headers)]
    names = pa.array([name for name, _ in flat], pa.binary()).view(pa.string())
    contents = pa.array([content for _, content in flat], pa.binary())
    structs = pa.StructArray.from_arrays([names, contents], fields=list(_HEADER))
    return pa.ListArray.from_arrays(pa.array([*accumulate(map(len, headers), initial=0)], pa.int32()), structs)


def headers_of(rows: pa.ListArray) -> list[Headers]:
    """The headers of each row; none where they are null."""
    flat = rows.flatten()
    if not len(flat):
        return [()] * len(rows)
    names = flat.field(0).cast(pa.binary()).to_pylist()
    contents = flat.field(1).to_pylist()
    pairs = list(zip(names, contents, strict=True))
    by_row: list[Headers] = []
    at = 0
    for length in rows.value_lengths().fill_null(0).to_pylist():
        by_row.append(pairs[at : at + length])
        at += length
    return by_row
