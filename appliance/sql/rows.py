"""Records as Arrow's rows, as Spark takes and gives them.

Header keys pass as strings whose bytes nobody has checked: Kafka demands UTF-8 of them, and takes anything.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

import pyarrow as pa

from appliance.sql.model.statement import COLUMNS, HEADERS_TYPE, SALT, TYPES

Headers = Sequence[tuple[bytes, bytes | None]]

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_ARROW = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "BINARY": pa.binary(),
    HEADERS_TYPE: pa.list_(_HEADER),
}
"""Arrow's types by those of SQL."""


def schema_of(columns: Iterable[str]) -> pa.Schema:
    """The schema of rows of these columns."""
    return pa.schema([(name, _ARROW[TYPES[name]]) for name in columns])


SCHEMA = schema_of([*COLUMNS, SALT])
"""The columns of a record that a statement sees."""


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
