"""The format of log lines, for people or for machines.

::

    2026-11-21T02:45:51.123Z INFO  tunnel: connection closed peer=10.0.0.7 bytes=4711
    {"time": "2026-11-21T02:45:51.123Z", "level": "info", "logger": "tunnel", "message": "connection closed",
     "fields": {"peer": "10.0.0.7", "bytes": 4711}}                                       (all of it on one line)

A record's fields come from ``extra={"fields": {...}}``. Unprintable characters are escaped, so that no value from a
peer can begin a new line or control the terminal. Only at level debug does the text form show a traceback, on lines of
its own below the record's.
"""

import json
import logging
import os

from appliance.errors import error_text
from appliance.output import printable
from appliance.runtime.journal import JournalHandler, journal_of
from appliance.settings.values import LogFormat, LogSettings
from appliance.timestamps import utc

_ROOM_PREFIX = "appliance."
_TEXT_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}


def configure(settings: LogSettings) -> None:
    """Send the appliance's records to stderr, from ``settings.level`` on; those of libraries from warning on.

    Where stderr is systemd's journal, that gets the text, and the fields beside it.
    """
    level, is_text = settings.level.upper(), settings.format is LogFormat.TEXT
    journal = journal_of(os.environ) if is_text else None
    handler = JournalHandler(journal, _fields) if journal else logging.StreamHandler()
    formatter = TextFormatter(level == "DEBUG", has_head=not journal) if is_text else JsonFormatter(level == "DEBUG")
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("appliance").setLevel(level)


class TextFormatter(logging.Formatter):
    """A line for people; ``traceback`` adds the lines of an exception's traceback below.

    Its head is the time and the level.
    """

    def __init__(self, traceback: bool = False, *, has_head: bool = True) -> None:
        super().__init__()
        self._traceback, self._has_head = traceback, has_head

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        level = _TEXT_LEVELS.get(record.levelname, record.levelname)
        head = [f"{utc(record.created)} {level:<5}"] if self._has_head else []
        line = " ".join(
            [
                *head,
                f"{_room(record)}: {printable(record.getMessage())}",
                *(f"{name}={_quoted(str(value))}" for name, value in _fields(record).items()),
            ]
        )
        if not record.exc_info or record.exc_info[1] is None:
            return line
        line += f" error={_quoted(error_text(record.exc_info[1]))}"
        trace = printable(self.formatException(record.exc_info), keep="\n").replace("\n", "\n  ")
        return f"{line}\n  {trace}" if self._traceback else line


class JsonFormatter(logging.Formatter):
    """A JSON object for machines; ``traceback`` adds an exception's traceback as one more text."""

    def __init__(self, traceback: bool = False) -> None:
        super().__init__()
        self._traceback = traceback

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON, on one line."""
        line: dict[str, object] = {
            "time": utc(record.created),
            "level": record.levelname.lower(),
            "logger": _room(record),
            "message": record.getMessage(),
            "fields": _fields(record),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = error_text(record.exc_info[1])
            if self._traceback:
                line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _room(record: logging.LogRecord) -> str:
    return record.name.removeprefix(_ROOM_PREFIX)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields: dict[str, object] = getattr(record, "fields", {})
    return fields


def _quoted(text: str) -> str:
    """``text`` as the value of a field: quoted where it would not read as one word."""
    if text and text.isprintable() and not set(text) & set(' "='):
        return text
    backslash, quote = "\\", '"'
    return quote + printable(text.replace(backslash, backslash * 2).replace(quote, backslash + quote)) + quote
