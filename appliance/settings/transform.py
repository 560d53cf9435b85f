"""The settings of SQL in flight: the statement that records pass, and the records that it fails on."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.parsers import choice, optional
from appliance.settings.secret import Secret
from appliance.settings.variable import variable

_SQL_MAX = 64 * 1024
"""Largest statement, in bytes."""


class OnTransformError(enum.StrEnum):
    """The reaction to a record that the statement fails on."""

    STOP = "stop"
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True, slots=True)
class TransformSettings:
    """The statement's file, None if records are copied as they are; and the reaction to a record that it fails on.

    ``salt`` is the statement's column of that name.
    """

    sql_file: Path | None = variable("REPLICA_TRANSFORM_SQL_FILE", optional(Path)).purpose(
        "File with a SELECT over the records, which are copied as it returns them; empty: as they are."
    )
    on_error: OnTransformError = variable("ON_TRANSFORM_ERROR", choice(OnTransformError), "stop").purpose(
        "Reaction to a record that the SELECT fails on: stop its partition, or dead-letter (a topic of its own)."
    )
    salt: Secret = variable("REPLICA_TRANSFORM_SALT", Secret).purpose(
        "Salt of hashes or key of ciphers, the column salt of the SELECT; better in a file of its own."
    )

    @property
    def wanted(self) -> bool:
        """True if records pass SQL."""
        return self.sql_file is not None


def read_sql(path: Path) -> str:
    """The text of a file with SQL; raises ValueError with what is expected."""
    try:
        with path.open("rb") as file:
            content = file.read(_SQL_MAX + 1)
    except OSError as error:
        raise ValueError(f"expected a readable file with SQL: {error.strerror or 'not readable'}") from error
    if len(content) > _SQL_MAX:
        raise ValueError(f"expected a file of at most {_SQL_MAX} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"expected UTF-8 text, byte {error.start} is none") from error
    if not text.strip():
        raise ValueError("expected a SELECT in it, and it is empty")
    return text


def transform_faults(transform: TransformSettings) -> Iterator[str]:
    """The fault of the file, if there is one."""
    if transform.sql_file is None:
        return
    try:
        read_sql(transform.sql_file)
    except ValueError as error:
        yield f"REPLICA_TRANSFORM_SQL_FILE={transform.sql_file}: {error}"
