"""The link's SQL as a value: its text, the columns that it sees, and refusals that show their place in the text."""

import hashlib
from dataclasses import dataclass

from appliance.engine.model.ranges import ROOM_MAX
from appliance.errors import SettingsError
from appliance.settings.transform import TransformSettings, read_sql

RECORDS = "records"
"""The one relation of a statement."""

SALT = "salt"
"""The column with the content of REPLICA_TRANSFORM_SALT_FILE: a value in rows, so that no plan ever shows it."""

END = "_end"
"""The column that is null in records; a row in which it is not null marks the end of a range, or means nothing, and
passes unchanged."""

RANGE = "_range"
"""The column with the number of a row's range among those of its job."""

OPAQUE = "_headers"
"""The column with a record's headers as bytes, for a statement that leaves them as they are."""

TEXTS = {"key": "_key", "value": "_value"}
"""The columns with a record's key and value as strings of the same bytes, whatever they are: Spark copies no string to
read it, and each binary."""

ROOM = "_room"
"""The column with the bytes by which a record may grow."""

NO_REASON = f"Spark gives no reason: it may make over {ROOM_MAX // 10**6} MB of it"
"""The reason of a record that fails for none of Spark's."""

KEPT = "_kept"
"""The column of ``outcomes``: true for a record that the statement keeps, false for one that it leaves out, whose key,
value and headers are then null, and null for one that it fails on, or makes too large, which is unchanged, and for the
end of a range."""

OUTCOME = "_outcome"
"""The column of ``contents``: ``PASSES`` for a record that the statement keeps, null for one that it fails on,
``GROWN`` for one that has no room for what the statement makes of it, and what ``END`` was in other rows; ``LEFT_OUT``
for one that it leaves out, until that is dropped."""

LEFT_OUT, PASSES, MARK, FILLER, GROWN = range(5)
"""Of the rows that are no records, ``MARK`` ends a range, and ``FILLER`` means nothing."""

HEADERS_TYPE = "ARRAY<STRUCT<key: STRING, value: BINARY>>"

OUTPUTS = {"key": "BINARY", "value": "BINARY", "headers": HEADERS_TYPE}
"""The columns that a statement may change, with their types."""

COLUMNS = {
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "BIGINT",
    "timestamp_type": "INT",
    **OUTPUTS,
    END: "BIGINT",
}
"""The columns of the rows with their types, of which a statement does not see ``END``; a link with a salt has ``SALT``
too, a STRING. Timestamps are in milliseconds, because Kafka takes some that are no TIMESTAMP."""

INTERNAL = {END: COLUMNS[END], RANGE: "INT", OPAQUE: "BINARY", ROOM: "BIGINT"} | dict.fromkeys(TEXTS.values(), "STRING")
"""The columns that no statement sees, with their types."""

TYPES = {**COLUMNS, **INTERNAL, SALT: "STRING"}

TIMESTAMP = "timestamp_millis(timestamp)"
"""The column ``timestamp`` as a statement sees it."""

SESSION = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
"""Settings of Spark on which the answers of functions depend: the same on every host."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A link's SQL; ``name`` is its setting, for error messages. An ``earlier`` one may have a key in its text."""

    text: str
    name: str = "REPLICA_TRANSFORM_SQL_FILE"
    earlier: bool = False

    @classmethod
    def of(cls, transform: TransformSettings) -> "Statement | None":
        """That of the settings, of which the file may be gone by now; None if records are copied as they are."""
        if transform.sql_file is None:
            return None
        name = f"REPLICA_TRANSFORM_SQL_FILE={transform.sql_file}"
        try:
            return cls(read_sql(transform.sql_file), name)
        except ValueError as error:
            raise SettingsError([f"{name}: {error}"]) from error

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def refused(self, reason: str, first: int | None = None, last: int | None = None) -> "StatementRefused":
        """The refusal that shows the characters from ``first`` to ``last``, counted from 0, both included."""
        if first is None or not 0 <= first < len(self.text):
            return StatementRefused([f"{self.name}: {reason}"])
        return StatementRefused(_shown(self.name, self.text, reason, first, first if last is None else last))


class StatementRefused(SettingsError):
    """The link's SQL cannot be used. Its first line names the reason, and two more may show its place in the text."""


def _shown(name: str, text: str, reason: str, first: int, last: int) -> list[str]:
    before = text[:first]
    begin = before.rfind("\n") + 1
    line = text[begin:].split("\n", 1)[0].rstrip("\r")
    column = first - begin
    marks = "^" * max(min(last - first + 1, len(line) - column), 1)
    # A tab stays one, so that the caret stands where the terminal shows the word.
    indent = "".join("\t" if character == "\t" else " " for character in line[:column])
    head = f"{name}: line {before.count(chr(10)) + 1}, column {column + 1}: {reason}"
    return [head, f"    {line}", f"    {indent}{marks}"]
