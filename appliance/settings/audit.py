"""The settings of the audit table."""

from dataclasses import dataclass
from typing import Annotated

from appliance.settings.parsers import audit_path, seconds, whole
from appliance.settings.variable import Variable


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The place of the audit table, and its rows; with an empty ``path`` there is none. Times in seconds."""

    path: Annotated[
        str,
        Variable(
            "AUDIT_PATH",
            "Folder of the audit table (docs/audit.md): an absolute path, or s3a://... or gs://...; empty: none.",
            audit_path,
        ),
    ]
    row_seconds: Annotated[
        float,
        Variable(
            "AUDIT_ROW_SECONDS",
            "Longest time that a row of the audit table covers, in seconds; 0: a row for each transaction.",
            seconds(0, 3600),
            "10",
        ),
    ]
    flush_seconds: Annotated[
        float,
        Variable(
            "AUDIT_FLUSH_SECONDS",
            "Seconds after which rows of the audit table are written to a file.",
            seconds(0.1, 3600),
            "60",
        ),
    ]
    retention_days: Annotated[
        int,
        Variable(
            "AUDIT_RETENTION_DAYS",
            "Days after which files of the audit table are removed; 0: never.",
            whole(0, 36_500),
            "365",
        ),
    ]

    @property
    def folder(self) -> str:
        """The path, if it is a folder of this host; else empty."""
        return "" if "://" in self.path else self.path
