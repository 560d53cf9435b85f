"""The settings of SQL in flight: the statement that records pass, and the records that it fails on."""

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from appliance.settings.parsers import choice, optional
from appliance.settings.role import Role
from appliance.settings.variable import Variable


class OnTransformError(enum.StrEnum):
    """The reaction to a record that the statement fails on."""

    STOP = "stop"
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True, slots=True)
class TransformSettings:
    """The statement's file, None if records are copied as they are; and the reaction to a record that it fails on."""

    sql_file: Annotated[
        Path | None,
        Variable(
            "REPLICA_TRANSFORM_SQL_FILE",
            "File with a SELECT over the records, which are copied as it returns them; empty: as they are.",
            Role.REPLICATOR,
            optional(Path),
            "",
        ),
    ]
    on_error: Annotated[
        OnTransformError,
        Variable(
            "ON_TRANSFORM_ERROR",
            "Reaction to a record that the SELECT fails on: stop its partition, or dead-letter (a topic of its own).",
            Role.REPLICATOR,
            choice(OnTransformError),
            "stop",
        ),
    ]

    @property
    def wanted(self) -> bool:
        """True if records pass SQL."""
        return self.sql_file is not None
