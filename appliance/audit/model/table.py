"""The audit table's files as bytes: Parquet, with the audit's state in the metadata of each."""

import io
from collections.abc import Container, Sequence
from types import NoneType
from typing import Any, get_args, get_type_hints

import pyarrow as pa
from pyarrow import parquet

from appliance.audit.model.rows import AuditRow
from appliance.audit.model.state import AuditState, decode_state, encode_state
from appliance.errors import PeerError

_STATE = b"appliance.audit.state"

_INT32 = frozenset({"lane", "partition", "producer_epoch"})


def _field(name: str, hint: Any) -> pa.Field:
    """The column of a field of ``AuditRow``; one that may be None is nullable."""
    kinds = set(get_args(hint)) or {hint}
    if name == "committed":
        column = pa.timestamp("ms", tz="UTC")
    elif int in kinds:
        column = pa.int32() if name in _INT32 else pa.int64()
    else:
        column = pa.string()
    return pa.field(name, column, nullable=NoneType in kinds)


SCHEMA = pa.schema([_field(name, hint) for name, hint in get_type_hints(AuditRow).items()])


def encode_rows(rows: Sequence[AuditRow], state: AuditState) -> bytes:
    """A file of these rows, and of the state after them."""
    values = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    columns = [pa.array(column, field.type) for column, field in zip(values, SCHEMA, strict=True)]
    return _encoded(pa.Table.from_arrays(columns, schema=SCHEMA.with_metadata({_STATE: encode_state(state)})))


def merged(files: Sequence[bytes]) -> bytes:
    """The rows of several files as one, with the state of the last. A column that some lack is null in their rows."""
    tables = [_table(data) for data in files]
    everywhere = set.intersection(*(set(table.column_names) for table in tables))
    whole = pa.concat_tables([_nullable(table, everywhere) for table in tables], promote_options="default")
    return _encoded(whole.replace_schema_metadata(tables[-1].schema.metadata))


def _nullable(table: pa.Table, but: Container[str]) -> pa.Table:
    """The table without metadata, its columns nullable but for these."""
    return table.cast(pa.schema(each if each.name in but else each.with_nullable(True) for each in table.schema))


def state_of(data: bytes) -> AuditState:
    """The state in a file; PeerError if it is damaged, or a newer release's."""
    try:
        metadata = parquet.read_schema(io.BytesIO(data)).metadata or {}
    except pa.ArrowException as error:
        raise _damaged(error) from error
    if _STATE not in metadata:
        raise PeerError("a file of the audit table has no state: another program has rewritten it")
    return decode_state(metadata[_STATE])


def _table(data: bytes) -> pa.Table:
    try:
        return parquet.read_table(io.BytesIO(data))
    except pa.ArrowException as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> PeerError:
    return PeerError(f"a file of the audit table is damaged: {error}")


def _encoded(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()
