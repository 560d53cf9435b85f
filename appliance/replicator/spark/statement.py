"""The statement of ``REPLICA_TRANSFORM_SQL_FILE`` over rows of records."""

import re
from typing import Any

from appliance.errors import SettingsError

_FORM = re.compile(
    r"SELECT\s+(?P<columns>.*?)\s+FROM\s+records(\s+WHERE\s+(?P<condition>.*))?", re.DOTALL | re.IGNORECASE
)
_KEPT = "topic, partition, offset, timestamp, timestamp_type"


def transformed(session: Any, statement: str, records: Any) -> Any:
    """The records as the statement returns them; end marks pass every filter."""
    found = _FORM.fullmatch(statement.strip().rstrip(";"))
    if found is None:
        raise SettingsError(["REPLICA_TRANSFORM_SQL_FILE: expected SELECT key, value, headers FROM records WHERE ..."])
    records.createOrReplaceTempView("records")
    renamed = ", ".join(f"{name} AS _{name}" for name in _KEPT.split(", "))
    passes = f"_end IS NOT NULL OR ({found['condition'] or 'true'})"
    inner = f"SELECT {found['columns']}, {renamed}, _end FROM records WHERE {passes}"
    kept = ", ".join(f"_{name} AS {name}" for name in _KEPT.split(", "))
    fields = "CAST(key AS BINARY) AS key, CAST(value AS BINARY) AS value, headers"
    return session.sql(f"SELECT {kept}, {fields}, _end FROM ({inner})")
