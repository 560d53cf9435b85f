"""The settings of what the replicator shows of its work: Spark's page, its own status, the audit table, the log."""

import enum
import re
from dataclasses import dataclass

from appliance.settings.parsers import choice, listening_target, matching, seconds, whole, yes_or_no
from appliance.settings.role import EVERY_ROLE
from appliance.settings.target import Target
from appliance.settings.variable import variable

_folder = matching(
    r"(?s)((/|[a-z][a-z0-9+.-]*://?\S).*)?", "an absolute path, or a URL that Hadoop knows, such as s3a://bucket/folder"
)
_level = matching("debug|info|warning|error", "debug, info, warning or error")


def _audit_path(value: str) -> str:
    """An absolute path, or the URL of a folder in an object store; empty for none."""
    if not re.fullmatch(r"(/[^\x00-\x1f*?\[\]{}\\]*|(s3a|gs)://[^\s?#*\[\]{}\\]+)?", value):
        raise ValueError("expected an absolute path of a folder, or a URL such as s3a://bucket/folder")
    return value.rstrip("/")


@dataclass(frozen=True, slots=True)
class MonitoringSettings:
    """``ui_port`` is the first to try, 0 for any; ``event_log`` is empty if there is none."""

    ui: bool = variable("SPARK_UI", yes_or_no, "no").purpose(
        "Serve Spark's page on 127.0.0.1 while the replicator runs: yes or no."
    )
    ui_port: int = variable("SPARK_UI_PORT", whole(0, 65_500), "4040").purpose(
        "Port of Spark's page; if it is taken, the next free one; 0: any."
    )
    event_log: str = variable("SPARK_EVENT_LOG_DIR", _folder).purpose(
        "Folder of Spark's event log, for its history server: a path or a URL; empty: no log."
    )


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The address that serves the replicator's health, metrics and status; port 0 is any free one."""

    listen: Target = variable("CONSOLE_LISTEN", listening_target, "127.0.0.1:8080").purpose(
        "Address, host:port, of /health, /metrics and /status, which need no login. Port 0: a free one."
    )


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The place of the audit table, and its rows; with an empty ``path`` there is none. Times in seconds."""

    path: str = variable("AUDIT_PATH", _audit_path).purpose(
        "Folder of the audit table (docs/run/audit.md): an absolute path, or s3a://... or gs://...; empty: none."
    )
    row_seconds: float = variable("AUDIT_ROW_SECONDS", seconds(0, 3600), "10").purpose(
        "Longest time that a row of the audit table covers, in seconds; 0: a row for each transaction."
    )
    flush_seconds: float = variable("AUDIT_FLUSH_SECONDS", seconds(0.1, 3600), "60").purpose(
        "Seconds after which rows of the audit table are written to a file."
    )
    retention_days: int = variable("AUDIT_RETENTION_DAYS", whole(0, 36_500), "365").purpose(
        "Days after which files of the audit table are removed; 0: never."
    )

    @property
    def folder(self) -> str:
        """The path, if it is a folder of this host; else empty."""
        return "" if "://" in self.path else self.path


class LogFormat(enum.StrEnum):
    """The form of log lines: for people or for machines."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The form of the log, and the lowest level that it shows."""

    format: LogFormat = variable("LOG_FORMAT", choice(LogFormat), "text", EVERY_ROLE).purpose(
        "Format of the log lines: text or json."
    )
    level: str = variable("LOG_LEVEL", _level, "info", EVERY_ROLE).purpose(
        "Lowest log level: debug, info, warning or error."
    )
