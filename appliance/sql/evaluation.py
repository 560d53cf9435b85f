"""A statement over records that are at hand, outside of any copying: for a report, and for the reason of a failure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from appliance.errors import ProcessFailed
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, body_of, fields_of
from appliance.settings.secret import Secret
from appliance.sql.catalyst import SPARK_ERRORS, record_reason
from appliance.sql.model.statement import KEPT, NO_REASON, SALT, Statement
from appliance.sql.plan import check, failure, outcomes
from appliance.sql.rows import SCHEMA, headers_array, headers_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """A record after a statement, None if that leaves it out; ``failed`` if it fails on it."""

    record: Record | None
    failed: bool = False


class Evaluation:
    """A statement in a session of Spark's, for one caller at a time."""

    def __init__(self, session: Any, statement: Statement, salt: Secret) -> None:
        """Check the statement."""
        self._session = session
        self._statement = statement
        self._salt = salt
        check(session, statement, bool(salt))

    def outcomes(self, partition: Partition, records: Sequence[Record], timestamp_type: int) -> list[Outcome]:
        """The outcome of each record of a source partition, in their order."""
        try:
            rows = self._rows(partition, records, timestamp_type)
            table = outcomes(self._session, self._statement, rows).toArrow().combine_chunks()
        except SPARK_ERRORS as error:
            raise ProcessFailed(f"Spark failed: {record_reason(error, self._statement.text)}") from error
        keys, values, kept = (table.column(name).to_pylist() for name in ("key", "value", KEPT))
        headers = [each for chunk in table.column("headers").chunks for each in headers_of(chunk)]
        results = zip(records, kept, keys, values, headers, strict=True)
        return [_outcome(record, keep, body_of(key, value, own)) for record, keep, key, value, own in results]

    def reason(self, partition: Partition, record: Record, timestamp_type: int) -> str:
        """The reason that the statement fails on a record, in a line."""
        rows = self._rows(partition, [record], timestamp_type)
        return failure(self._session, self._statement, rows) or NO_REASON

    def _rows(self, partition: Partition, records: Sequence[Record], timestamp_type: int) -> Any:
        count, fields = len(records), [fields_of(record.body) for record in records]
        arrays = [
            pa.array([partition[0]] * count, pa.string()),
            pa.array([partition[1]] * count, pa.int32()),
            pa.array([record.offset for record in records], pa.int64()),
            pa.array([record.timestamp for record in records], pa.int64()),
            pa.array([timestamp_type] * count, pa.int32()),
            pa.array([key for key, _, _ in fields], pa.binary()),
            pa.array([value for _, value, _ in fields], pa.binary()),
            headers_array([headers for _, _, headers in fields]),
            pa.nulls(count, pa.int64()),
            pa.array([self._salt.reveal()] * count, pa.string()),
        ]
        frame = self._session.createDataFrame(pa.Table.from_arrays(arrays, schema=SCHEMA))
        return frame if self._salt else frame.drop(SALT)


def _outcome(record: Record, kept: bool | None, body: bytes) -> Outcome:
    if kept is None:
        return Outcome(record, failed=True)
    return Outcome(record._replace(body=body) if kept else None)
