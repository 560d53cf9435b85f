"""Records as Arrow's rows, as Spark takes and gives them.

Header keys pass as strings whose bytes nobody has checked: Kafka demands UTF-8 of them, and takes anything.
"""

from collections.abc import Sequence

import pyarrow as pa

from appliance.kafka.records.columns import Headers

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
        ("_end", pa.int64()),
        ("salt", pa.string()),
    ]
)


def headers_array(headers: Sequence[Headers | None]) -> pa.ListArray:
    """The headers of each row, null where they are None."""
    offsets: list[int | None] = [0]
    names: list[bytes] = []
    contents: list[bytes | None] = []
    for each in headers:
        for name, content in each or ():
            names.append(name)
            contents.append(content)
        offsets.append(len(names))
    keys = pa.array(names, pa.binary()).view(pa.string())
    structs = pa.StructArray.from_arrays([keys, pa.array(contents, pa.binary())], fields=list(_HEADER))
    ends: list[int | None] = [None if each is None else at for each, at in zip(headers, offsets, strict=False)]
    return pa.ListArray.from_arrays(pa.array([*ends, len(names)], pa.int32()), structs)


def headers_of(array: pa.ListArray) -> list[Headers]:
    """The headers of each row; none where they are null."""
    flat = array.flatten()
    if not len(flat):
        return [()] * len(array)
    names = flat.field(0).cast(pa.binary()).to_pylist()
    contents = flat.field(1).to_pylist()
    pairs = list(zip(names, contents, strict=True))
    found: list[Headers] = []
    at = 0
    for length in array.value_lengths().fill_null(0).to_pylist():
        found.append(pairs[at : at + length])
        at += length
    return found
